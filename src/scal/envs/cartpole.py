"""CartPole-v1: push a cart left or right so that the pole on it stays up.

    f = (F + m l ω² sin θ) / (M + m)                             F = ±10 N
    α = (g sin θ − f cos θ) / (l (4/3 − m cos² θ / (M + m)))
    c = f − m l α cos θ / (M + m)

    (x, v, θ, ω) ← (x, v, θ, ω) + τ (v, c, ω, α)                 explicit Euler

Cart at x with speed v, pole at θ from upright with angular speed ω. Every step earns 1, also the
last. The end: |x| > 2.4 m or |θ| > 12°. Starts are uniform in [−0.05, 0.05]⁴.
"""

import math

import jax
import jax.numpy as jnp

from scal.envs.functional import FunctionalEnv, Key, Spaces, Transition

GRAVITY = 9.8
CART_MASS = 1.0
POLE_MASS = 0.1
TOTAL_MASS = CART_MASS + POLE_MASS
HALF_LENGTH = 0.5
FORCE = 10.0
TIME_STEP = 0.02
TRACK_END = 2.4
LARGEST_TILT = math.radians(12.0)


def reset(key: Key) -> jax.Array:
    """(x, v, θ, ω), all small."""
    return jax.random.uniform(key, (4,), jnp.float32, -0.05, 0.05)


def observe(state: jax.Array) -> jax.Array:
    """The state itself."""
    return state


def step(key: Key, state: jax.Array, action: jax.Array) -> Transition:
    """Push to the left (0) or to the right (1) for 20 ms."""
    state = state + TIME_STEP * _derivative(state, jnp.where(action == 1, FORCE, -FORCE))
    terminated = (jnp.abs(state[0]) > TRACK_END) | (jnp.abs(state[2]) > LARGEST_TILT)
    return state, jnp.float32(1.0), terminated


def _derivative(state: jax.Array, force: jax.Array) -> jax.Array:
    _, speed, tilt, spin = state
    sin, cos = jnp.sin(tilt), jnp.cos(tilt)
    leverage = POLE_MASS * HALF_LENGTH / TOTAL_MASS
    push = force / TOTAL_MASS + leverage * spin**2 * sin
    turn = (GRAVITY * sin - push * cos) / (
        HALF_LENGTH * (4.0 / 3.0 - POLE_MASS / TOTAL_MASS * cos**2)
    )
    return jnp.stack([speed, push - leverage * turn * cos, spin, turn])


CARTPOLE = FunctionalEnv("CartPole-v1", Spaces(4, 2, discrete=True), 500, reset, observe, step)
