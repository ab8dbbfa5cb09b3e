"""Pendulum-v1: swing a rod up and hold it there by a torque u ∈ [−2, 2] too weak to lift it.

    r  = −θ² − ω²/10 − u²/1000                                   θ in [−π, π], 0 is upright
    ω' = ω + τ (3/2 g sin θ + 3 u), cut to [−8, 8]               mass and length one, g = 10
    θ' = θ + τ ω'                                                τ = 0.05 s

Episodes never terminate. Starts are uniform, θ in [−π, π] and ω in [−1, 1].
"""

import jax
import jax.numpy as jnp
import numpy as np

from scal.envs.functional import FunctionalEnv, Key, Spaces, Transition, wrap

GRAVITY = 10.0
TIME_STEP = 0.05
LARGEST_TORQUE = 2.0
LARGEST_SPIN = 8.0
LARGEST_START = np.array([np.pi, 1.0], dtype=np.float32)


def reset(key: Key) -> jax.Array:
    """(θ, ω), anywhere but slow."""
    return jax.random.uniform(key, (2,), jnp.float32, -LARGEST_START, LARGEST_START)


def observe(state: jax.Array) -> jax.Array:
    """Cosine and sine of the angle, and the speed."""
    angle, spin = state
    return jnp.stack([jnp.cos(angle), jnp.sin(angle), spin])


def step(key: Key, state: jax.Array, action: jax.Array) -> Transition:
    """Apply a torque for 50 ms; the reward is that of the state before."""
    angle, spin = state
    torque = jnp.clip(action[0], -LARGEST_TORQUE, LARGEST_TORQUE)
    reward = -(wrap(angle) ** 2) - 0.1 * spin**2 - 0.001 * torque**2
    faster = spin + TIME_STEP * (1.5 * GRAVITY * jnp.sin(angle) + 3.0 * torque)
    spin = jnp.clip(faster, -LARGEST_SPIN, LARGEST_SPIN)
    return jnp.stack([angle + TIME_STEP * spin, spin]), reward, jnp.array(False)


PENDULUM = FunctionalEnv(
    "Pendulum-v1", Spaces(3, 1, False, (LARGEST_TORQUE,)), 200, reset, observe, step
)
