"""The MDPs of the studies, and what is common to networks."""

from dataclasses import replace
from typing import Any

import jax

from scal.envs import Inventory
from scal.mdp import FiniteMDP, random_mdp
from scal.mdp.policies import check_weights
from scal.mdp.types import Array

DIMENSION = 8
"""d, of the vectors that stand for states and for actions."""

WIDTHS = tuple(4**power for power in range(2, 8))
"""m: 16 to 16,384."""


def tables(gamma: float) -> dict[str, FiniteMDP]:
    """A random MDP and a small inventory, with rewards of at most 1 in size."""
    return {
        "random": random_mdp(12, 3, 4, seed=1, gamma=gamma),
        "inventory": _unit(Inventory(capacity=8, demand=3.0).mdp(gamma)),
    }


def small() -> dict[str, FiniteMDP]:
    """MDPs whose V and x are of order one, so that networks need not move far: γ = 1/2."""
    return {
        "random": random_mdp(8, 2, 3, seed=0, gamma=0.5),
        "inventory": _unit(Inventory(capacity=4, demand=2.0).mdp(0.5)),
    }


def uniform(mdp: FiniteMDP) -> Array:
    """w = 1/(SA)."""
    return check_weights(mdp)


def keys_of(seed: int, count: int) -> Any:
    """Independent random keys."""
    return jax.random.split(jax.random.key(seed), count)


def _unit(mdp: FiniteMDP) -> FiniteMDP:
    return replace(mdp, R=mdp.R / mdp.largest_reward)
