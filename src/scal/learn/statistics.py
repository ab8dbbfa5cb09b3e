"""Running statistics that are part of the agent: scales of rewards, TD errors and observations."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array

OBSERVATION_LIMIT = 10.0


class Statistics(NamedTuple):
    """Everything the learner has measured about its problem."""

    steps: Array
    """Interactions of all environments."""
    returns: Array
    """Discounted return so far of every environment's episode."""
    return_mean: Array
    return_variance: Array
    reward_low: Array
    reward_high: Array
    """Smallest and largest reward seen, 0 among them."""
    td_rms: Array
    observation_mean: Array
    observation_variance: Array


def init_statistics(observation_size: int, environments: int) -> Statistics:
    """Nothing seen yet."""
    zero = jnp.zeros(())
    return Statistics(
        steps=jnp.zeros((), jnp.int32),
        returns=jnp.zeros(environments),
        return_mean=zero,
        return_variance=jnp.ones(()),
        reward_low=zero,
        reward_high=zero,
        td_rms=jnp.ones(()),
        observation_mean=jnp.zeros(observation_size),
        observation_variance=jnp.ones(observation_size),
    )


def see(
    stats: Statistics, observation: Array, reward: Array, ended: Array, gamma: float
) -> Statistics:
    """Take one step of all environments into account."""
    steps = stats.steps + len(reward)
    rate = jnp.maximum(len(reward) / steps, 1e-4)
    returns = reward + gamma * stats.returns
    mean, variance = _track(stats.return_mean, stats.return_variance, returns, rate)
    slow = jnp.maximum(len(reward) / steps, 1e-5)
    center, spread = _track(stats.observation_mean, stats.observation_variance, observation, slow)
    return stats._replace(
        steps=steps,
        returns=jnp.where(ended, 0.0, returns),
        return_mean=mean,
        return_variance=variance,
        reward_low=jnp.minimum(stats.reward_low, reward.min()),
        reward_high=jnp.maximum(stats.reward_high, reward.max()),
        observation_mean=center,
        observation_variance=spread,
    )


def see_td_errors(stats: Statistics, errors: Array, weights: Array, updates: Array) -> Statistics:
    """Follow the root mean square of TD errors; in the first 500 updates take the batch's own."""
    mean_square = jnp.sum(weights * errors**2) / jnp.maximum(jnp.sum(weights), 1e-6)
    rms = jnp.maximum(jnp.sqrt(mean_square), 1e-3)
    followed = jnp.sqrt(0.99 * stats.td_rms**2 + 0.01 * rms**2)
    return stats._replace(td_rms=jnp.where(updates < 500, rms, jnp.maximum(followed, 1e-3)))


def reward_scale(stats: Statistics) -> Array:
    """Divide rewards by the deviation of the discounted return: multiply by this."""
    return jax.lax.rsqrt(stats.return_variance + 1e-4)


def normalize(stats: Statistics, observation: Array) -> Array:
    """Centre and scale, clipped to ±10."""
    scaled = (observation - stats.observation_mean) * jax.lax.rsqrt(
        stats.observation_variance + 1e-8
    )
    return jnp.clip(scaled, -OBSERVATION_LIMIT, OBSERVATION_LIMIT)


def _track(mean: Array, variance: Array, samples: Array, rate: Array) -> tuple[Array, Array]:
    """Exponentially weighted mean and variance over the first axis of `samples`."""
    batch = samples.mean(axis=0)
    new = mean + rate * (batch - mean)
    deviation = ((samples - mean) * (samples - new)).mean(axis=0)
    return new, variance + rate * (deviation - variance)
