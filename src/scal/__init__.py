"""Markov decision processes solved as the linear programs they are."""

from scal.envs import Inventory
from scal.mdp import (
    Certificate,
    FiniteMDP,
    Solution,
    certify,
    policy_from_multipliers,
    policy_from_values,
    random_mdp,
    solve,
)

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "FiniteMDP",
    "Inventory",
    "Solution",
    "certify",
    "policy_from_multipliers",
    "policy_from_values",
    "random_mdp",
    "solve",
]
