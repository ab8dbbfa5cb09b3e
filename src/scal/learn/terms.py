"""What the objective is made of: y, V(s), h(s, a), x(s, a), and the units that they count in.

    y = r + γV̄(s')     x = x₁·π/π_b     h = [V − y − x̄/μ]₊     δ = (y − V)/unit

Both algorithms take their terms from here.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from scal import objective
from scal.envs.functional import Spaces
from scal.learn import networks as nets
from scal.learn import policy, statistics
from scal.learn.config import Config
from scal.learn.networks import Parameters
from scal.learn.replay import Batch, Transition
from scal.learn.statistics import Statistics

if TYPE_CHECKING:
    from scal.learn.scal import Learner

Array = jax.Array


def perceive(stats: Statistics, observation: Array, config: Config) -> Array:
    """What the networks see of an observation; of frames, bytes as numbers from 0 to 1."""
    if observation.dtype == jnp.uint8:
        return observation.astype(jnp.float32) / 255.0
    normal = config.normalize_observations == "yes"
    return statistics.normalize(stats, observation) if normal else observation


def multi_step_target(learner: "Learner", batch: Batch, spaces: Spaces, config: Config) -> Array:
    """y = r + γV̄(s'), plus Σ_j w_j (r_j + γV̄(s'_j) − V̄(s_j)) with w_j = Π γ·min(1, π/π_b).

    Without cuts the sum telescopes to the paper's Σ_{j<m} γ^j r_j + γ^m V̄, where m ≤ l counts the
    steps up to the end of the episode or of the data.
    """
    window, stats = batch.window, learner.statistics
    scale = statistics.reward_scale(stats) if config.scale_rewards else 1.0
    after = nets.value(learner.value_target, window.next_observation)
    if config.clip_targets:
        low, high = stats.reward_low, stats.reward_high
        after = jnp.clip(after, scale * low / (1 - config.gamma), scale * high / (1 - config.gamma))
    after = jax.lax.stop_gradient(after)
    one_step = scale * window.reward + config.gamma * jnp.where(window.terminated, 0.0, after)
    weight = batch.valid[:, 1:].astype(jnp.float32) * config.gamma
    if config.cuts and config.n_steps > 1:
        later = jax.tree.map(lambda field: field[:, 1:], window)
        _, head = nets.heads(learner.networks.multiplier, later.observation, spaces, config)
        log_pi = policy.log_prob(head, later.action, spaces)
        weight *= jnp.exp(jnp.minimum(log_pi - later.log_prob, 0.0))
    weight = jnp.cumprod(weight, axis=1)
    correction = weight * (one_step[:, 1:] - after[:, :-1])
    return jax.lax.stop_gradient(one_step[:, 0] + correction.sum(axis=1))


def violation(learner: "Learner", config: Config, rows: Transition) -> Array:
    """[r + γV̄(s') − V(s)]₊, what proportional sampling weighs by (paper, section 6.2)."""
    see = partial(perceive, learner.statistics, config=config)
    scale = statistics.reward_scale(learner.statistics) if config.scale_rewards else 1.0
    after = nets.value(learner.value_target, see(rows.next_observation))
    before = nets.value(learner.networks.value, see(rows.observation))
    target = scale * rows.reward + config.gamma * jnp.where(rows.terminated, 0.0, after)
    return jnp.maximum(target - before, 0.0)


def values(phi: Parameters, batch: Batch, config: Config) -> tuple[Array, Array, Array, Array]:
    """V(s), V(s'), V(s₀) and the spread at s, in one pass."""
    states = [batch.window.observation[:, 0], batch.window.next_observation[:, 0], batch.starts]
    if _is_one(config.s0_mix):
        states.pop()  # the starts are the observations
    found, spreads = nets.value_and_spread(phi, jnp.concatenate(states))
    V, V_next, *other = jnp.split(found, len(states))
    return V, V_next, other[0] if other else V, spreads[: len(V)]


def multiplier(
    theta: Parameters, rows: Transition, spaces: Spaces, config: Config
) -> tuple[Array, Array]:
    """x(s, a) and log π(a|s) of some transitions."""
    mass, head = nets.heads(theta, rows.observation, spaces, config)
    log_pi = policy.log_prob(head, rows.action, spaces)
    return policy.multiplier(mass, log_pi, rows.log_prob, rows.action, spaces, config), log_pi


def slack(
    psi: Parameters,
    rows: Transition,
    x: Array,
    target: Array,
    V: Array,
    spaces: Spaces,
    config: Config,
) -> Array:
    """h(s, a) of some transitions: the network's, or its closed form at x, y and V, in units."""
    if config.slack != "network":
        return jax.lax.stop_gradient(objective.closed_slack(config.mu, x, target, V))
    return nets.slack(psi, rows.observation, rows.action, spaces.discrete, config.slack_scale)


def td_unit(stats: Statistics, log_spread: Array, config: Config) -> Array:
    """What TD errors count in."""
    unit = jnp.ones(()) if config.units == "raw" else stats.td_rms
    if config.units == "state":
        unit = unit * jax.lax.stop_gradient(jnp.exp(log_spread))
    return unit


def in_units(v: Array, unit: Array) -> Array:
    """v / unit, with the gradient of v: dividing it too would only rescale V's steps."""
    fixed = jax.lax.stop_gradient
    return fixed(v) / unit + (v - fixed(v))


def spread_loss(error: Array, log_spread: Array) -> Array:
    """−log density of N(0, spread²) at the error: smallest where the spread is its deviation."""
    return log_spread + 0.5 * error**2 * jnp.exp(-2.0 * log_spread)


def _is_one(option: Any) -> bool:
    """Whether an option is the constant 1, not a number of a sweep."""
    return isinstance(option, int | float) and option == 1.0
