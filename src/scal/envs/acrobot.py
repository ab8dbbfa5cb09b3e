"""Acrobot-v1: swing two links up by a motor u ∈ {−1, 0, 1} in the joint between them.

    d₁ = 7/2 + cos θ₂                                           d₂ = 5/4 + ½ cos θ₂
    φ₂ = ½ g sin(θ₁ + θ₂)
    φ₁ = φ₂ + 3/2 g sin θ₁ − (½ ω₂² + ω₁ ω₂) sin θ₂
    α₂ = (u + d₂/d₁ φ₁ − ½ ω₁² sin θ₂ − φ₂) / (5/4 − d₂²/d₁)
    α₁ = −(d₂ α₂ + φ₁) / d₁

These are the equations of Sutton and Barto's book with masses, lengths and moments of inertia of
one and centres of mass in the middle of each link; θ₁ is measured from hanging, θ₂ from the first
link. One step is one Runge-Kutta step of 0.2 s, after which |ω₁| is cut to 4π and |ω₂| to 9π. It
costs 1, unless it lifts the tip above the bar, −cos θ₁ − cos(θ₁ + θ₂) > 1, which is the end.
Starts are uniform in [−0.1, 0.1]⁴.
"""

import math

import jax
import jax.numpy as jnp

from scal.envs.functional import FunctionalEnv, Key, Spaces, Transition, wrap

GRAVITY = 9.8
TIME_STEP = 0.2
LARGEST_SPIN_1 = 4.0 * math.pi
LARGEST_SPIN_2 = 9.0 * math.pi


def reset(key: Key) -> jax.Array:
    """(θ₁, θ₂, ω₁, ω₂), hanging almost still."""
    return jax.random.uniform(key, (4,), jnp.float32, -0.1, 0.1)


def observe(state: jax.Array) -> jax.Array:
    """Cosine and sine of either angle, then both speeds."""
    first, second, *spins = state
    return jnp.stack([jnp.cos(first), jnp.sin(first), jnp.cos(second), jnp.sin(second), *spins])


def step(key: Key, state: jax.Array, action: jax.Array) -> Transition:
    """Apply the torque `action` − 1 for 0.2 s."""
    first, second, spin1, spin2 = _runge_kutta(state, action - 1)
    first, second = wrap(first), wrap(second)
    spin1 = jnp.clip(spin1, -LARGEST_SPIN_1, LARGEST_SPIN_1)
    spin2 = jnp.clip(spin2, -LARGEST_SPIN_2, LARGEST_SPIN_2)
    state = jnp.stack([first, second, spin1, spin2])
    terminated = over(state)
    return state, terminated.astype(jnp.float32) - 1.0, terminated


def over(state: jax.Array) -> jax.Array:
    """Whether the tip is above the bar."""
    return -jnp.cos(state[0]) - jnp.cos(state[0] + state[1]) > 1.0


def _runge_kutta(state: jax.Array, torque: jax.Array) -> jax.Array:
    k1 = _derivative(state, torque)
    k2 = _derivative(state + TIME_STEP / 2.0 * k1, torque)
    k3 = _derivative(state + TIME_STEP / 2.0 * k2, torque)
    k4 = _derivative(state + TIME_STEP * k3, torque)
    return state + TIME_STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def _derivative(state: jax.Array, torque: jax.Array) -> jax.Array:
    first, second, spin1, spin2 = state
    sin, cos = jnp.sin(second), jnp.cos(second)
    d1, d2 = 3.5 + cos, 1.25 + 0.5 * cos
    phi2 = 0.5 * GRAVITY * jnp.sin(first + second)
    phi1 = phi2 + 1.5 * GRAVITY * jnp.sin(first) - (0.5 * spin2 + spin1) * spin2 * sin
    pull = torque + d2 / d1 * phi1 - 0.5 * spin1**2 * sin - phi2
    turn2 = pull / (1.25 - d2**2 / d1)
    return jnp.stack([spin1, spin2, -(d2 * turn2 + phi1) / d1, turn2])


ACROBOT = FunctionalEnv("Acrobot-v1", Spaces(6, 3, discrete=True), 500, reset, observe, step)
