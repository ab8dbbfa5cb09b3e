"""Known, finite MDPs: the exact side of scal."""

from scal.mdp.certificate import Certificate, certify
from scal.mdp.model import FiniteMDP
from scal.mdp.policies import policy_from_multipliers, policy_from_values
from scal.mdp.random import random_mdp
from scal.mdp.solve import METHODS, Solution, solve

__all__ = [
    "METHODS",
    "Certificate",
    "FiniteMDP",
    "Solution",
    "certify",
    "policy_from_multipliers",
    "policy_from_values",
    "random_mdp",
    "solve",
]
