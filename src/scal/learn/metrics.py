"""What an update saw: the numbers of a record, and where some of them should settle."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from scal.learn import statistics
from scal.learn.config import Config
from scal.learn.replay import Transition
from scal.learn.statistics import Statistics

Array = jax.Array


class Metrics(NamedTuple):
    """What an update saw, values in the units of rewards; an update gives it as an array."""

    primal_value: Array
    """E[V(s₀)]"""
    dual_value: Array
    """E[x r] / (1 − γ), over replayed actions"""
    violation: Array
    """E[y − V]₊"""
    complementarity: Array
    """E[x h]"""
    mass: Array
    """E[x]"""
    mass_predicted: Array
    """What E[x] is at the fixed point."""
    td_rms: Array
    slack: Array
    """E[h], in units of the TD error"""
    log_ratio: Array
    """E|log π/π_b|"""


def measure(
    first: Transition,
    target: Array,
    V: Array,
    V0: Array,
    h: Array,
    x: Array,
    x_replayed: Array,
    log_pi: Array,
    stats: Statistics,
    config: Config,
) -> Array:
    """The metrics of a batch; where x is at own actions, `x_replayed` is not."""
    scale = statistics.reward_scale(stats) if config.scale_rewards else jnp.ones(())
    seen = Metrics(
        primal_value=V0 / scale,
        dual_value=x_replayed * first.reward,
        violation=jnp.maximum(target - V, 0.0) / scale,
        complementarity=x * h,
        mass=x,
        mass_predicted=jnp.where(first.terminated, 0.0, x),
        td_rms=((target - V) / scale) ** 2,
        slack=h,
        log_ratio=jnp.abs(log_pi - first.log_prob),
    )
    mean = Metrics(*jnp.stack(seen).mean(axis=1))
    share = mean.mass / jnp.maximum(x_replayed.mean(), 1e-12)  # 1 unless x is at own actions
    metrics = mean._replace(
        dual_value=share * mean.dual_value / (1.0 - config.gamma),
        mass_predicted=predicted_mass(config, mean.mass_predicted / mean.mass),
        td_rms=jnp.sqrt(mean.td_rms),
    )
    return jax.lax.stop_gradient(jnp.stack(metrics))


def predicted_mass(config: Config, survival: Array) -> Array:
    """E[x] at the fixed point of the update, where ∇L̂ vanishes along constant V.

    There (1 − γ·flow) − E[F] + γ·flow·E[x·1{not terminated}] = 0 with F = x for the regression step
    and F = x (2κ − 1)/(κ − 1) for the penalty step; `survival` is the share of x not terminated.
    """
    kept = config.gamma * config.flow
    k = config.kappa
    shrinkage = 1.0 if config.theta_step == "regression" else (2.0 * k - 1.0) / (k - 1.0)
    return (1.0 - kept) / (shrinkage - kept * survival)
