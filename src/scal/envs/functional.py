"""Environments as pure functions, for programs that are compiled as a whole.

    s ~ reset(key)        o = observe(s)        s', r, terminated = step(key, s, a)

All numbers are float32, but for the uint8 of frames, and every function works under `jit` and
`vmap`. Nothing here counts steps: whoever runs the loop cuts episodes off after `time_limit` steps.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Key = jax.Array
"""A random key of JAX, used once."""
State = Any
"""Any pytree of arrays; `step` keeps its structure, shapes and types."""
Transition = tuple[State, jax.Array, jax.Array]
"""(next state, reward, terminated)"""

SCREEN = 36
"""Pixels of the shorter side from which on an image is a screen and no board."""


class Spaces(NamedTuple):
    """What goes in and what comes out."""

    observation_size: int
    """Length of the observation, a vector, or the number of its pixels."""
    action_size: int
    """Number of actions if they are discrete, dimension of an action otherwise."""
    discrete: bool
    """Actions are whole numbers from 0 (int32) rather than float32 vectors."""
    action_scale: tuple[float, ...] = ()
    """ā for each dimension: continuous actions lie in [−ā, ā]."""
    ordered: bool = False
    """Discrete actions are amounts, each like its neighbours."""
    image: tuple[int, ...] = ()
    """Planes, height and width of a frame, if observations are frames."""
    stack: int = 1
    """So many frames, from the oldest to the newest, are one observation."""

    @property
    def screen(self) -> bool:
        """Whether observations are frames of a screen, and learning from one is a lot of work."""
        return bool(self.image) and min(self.image[1:]) >= SCREEN


class FunctionalEnv(NamedTuple):
    """An environment as pure functions of a state and a random key."""

    name: str
    """Id of the Gymnasium environment that it copies, or any name."""
    spaces: Spaces
    """Sizes and types of observations and actions."""
    time_limit: int
    """Steps after which an episode is truncated, by the loop and not by `step`."""
    reset: Callable[[Key], State]
    """A random start."""
    observe: Callable[[State], jax.Array]
    """The observation of a state, or its newest frame."""
    step: Callable[[Key, State, jax.Array], Transition]
    """One transition."""


def wrap(angle: jax.Array) -> jax.Array:
    """The same angle in [−π, π]."""
    return angle - 2.0 * jnp.pi * jnp.round(angle / (2.0 * jnp.pi))
