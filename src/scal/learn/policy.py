"""From the second head of x to actions and their probabilities (paper, section 6.1).

    discrete      π = softmax(x₂),         behaviour π_b = (1 − ε)π + ε/A
    continuous    u ~ N(x₂, σ²), a = ā tanh(u),   behaviour π_b = π

A continuous action is carried as u: its density needs no inverse of tanh, and in the ratio π/π_b
the Jacobian of tanh cancels.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from scal.envs.functional import Spaces
from scal.learn.config import Config

Array = jax.Array

LOG_FLOOR = -4.0
"""log π_b is floored here in the ratio of discrete actions."""

LOG_RATIO_CEILING = 2.3
"""log π/π_b of continuous actions is clipped here."""


class Choice(NamedTuple):
    """An action with the log-probability that the behaviour gave it."""

    action: Array
    """An index, or u."""
    log_prob: Array


def behave(key: Array, head: Any, spaces: Spaces, config: Config) -> Choice:
    """Sample the behaviour policy."""
    if not spaces.discrete:
        return sample(key, head, spaces)
    floor = jnp.log(config.epsilon / spaces.action_size + 1e-30)
    mixed = jnp.logaddexp(jnp.log1p(-config.epsilon) + jax.nn.log_softmax(head), floor)
    return _pick(key, mixed)


def sample(key: Array, head: Any, spaces: Spaces) -> Choice:
    """Sample the policy itself."""
    if spaces.discrete:
        return _pick(key, jax.nn.log_softmax(head))
    u = head.mean + head.sigma * jax.random.normal(key, head.mean.shape)
    return Choice(u, log_prob(head, u, spaces))


def _pick(key: Array, log_pi: Array) -> Choice:
    action = jax.random.categorical(key, log_pi).astype(jnp.int32)
    return Choice(action, jnp.take_along_axis(log_pi, action[..., None], axis=-1)[..., 0])


def greedy(head: Any, spaces: Spaces) -> Array:
    """The most likely action."""
    return jnp.argmax(head, axis=-1).astype(jnp.int32) if spaces.discrete else head.mean


def log_prob(head: Any, action: Array, spaces: Spaces) -> Array:
    """log π(a|s), of u for continuous actions."""
    if spaces.discrete:
        log_pi = jax.nn.log_softmax(head)
        return jnp.take_along_axis(log_pi, action[..., None], axis=-1)[..., 0]
    deviation = (action - head.mean) / head.sigma
    constant = jnp.log(head.sigma) + 0.5 * jnp.log(2.0 * jnp.pi)
    return -jnp.sum(0.5 * deviation**2 + constant, axis=-1)


def divergence(head: Any, other: Any, spaces: Spaces) -> Array:
    """KL(π‖π̄)."""
    if spaces.discrete:
        log_pi, log_other = jax.nn.log_softmax(head), jax.nn.log_softmax(other)
        return jnp.sum(jnp.exp(log_pi) * (log_pi - log_other), axis=-1)
    ratio = head.sigma / other.sigma
    shift = (head.mean - other.mean) / other.sigma
    return jnp.sum(0.5 * (ratio**2 + shift**2 - 1.0) - jnp.log(ratio), axis=-1)


def multiplier(
    mass: Array, log_pi: Array, log_pi_b: Array, action: Array, spaces: Spaces, config: Config
) -> Array:
    """x(s, a): x₁·π/π_b, clipped, or the paper's density x₁·π."""
    if config.multiplier == "ratio":
        if spaces.discrete:
            return mass * jnp.exp(log_pi - jnp.maximum(log_pi_b, LOG_FLOOR))
        return mass * jnp.exp(jnp.minimum(log_pi - log_pi_b, LOG_RATIO_CEILING))
    if spaces.discrete:
        return mass * jnp.exp(log_pi)
    return mass * jnp.exp(log_pi - jnp.sum(log_tanh_slope(action), axis=-1))


def log_tanh_slope(u: Array) -> Array:
    """log(1 − tanh²u), stable for large |u|."""
    return 2.0 * (jnp.log(2.0) - u - jax.nn.softplus(-2.0 * u))


def environment_action(action: Array, spaces: Spaces) -> Array:
    """What the environment is given: the index, or ā tanh(u)."""
    return action if spaces.discrete else jnp.asarray(spaces.action_scale) * jnp.tanh(action)
