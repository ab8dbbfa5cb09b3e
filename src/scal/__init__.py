"""Markov decision processes solved as the linear programs they are."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from scal.run.agent import SCAL

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`scal.SCAL` on first use: the exact side does without JAX and starts faster."""
    if name == "SCAL":
        from scal.run.agent import SCAL

        return SCAL
    raise AttributeError(f"module 'scal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


__all__ = [
    "SCAL",
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
