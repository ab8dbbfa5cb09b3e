"""The interaction loop with Gymnasium environments, two XLA programs per step of all of them.

    follow    store what the actions led to, and choose the next ones
    learn     the updates that are due

Actions are chosen before the updates, so that JAX makes these while Python steps the environments
(`scal.run.stage`).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from scal.envs.functional import Spaces
from scal.learn import algorithms, policy, replay, scal
from scal.learn.config import Config
from scal.learn.metrics import Metrics
from scal.learn.replay import Replay, Transition
from scal.learn.scal import Learner
from scal.run.stage import Outcome

Array = jax.Array


class Carry(NamedTuple):
    """A learner, what it sees, and what it is about to do."""

    learner: Learner
    observation: Array
    choice: policy.Choice
    totals: Array
    """Sums of the metrics since the last record, and the number of updates."""


def no_totals() -> Array:
    """Sums of nothing."""
    return jnp.zeros(len(Metrics._fields) + 1)


def started(learner: Learner, observation: Array, spaces: Spaces, config: Config) -> Carry:
    """The very first observations (environments, …)."""
    started = jnp.ones(len(observation), bool)
    learner = learner._replace(replay=replay.store_initial(learner.replay, observation, started))
    learner, choice = scal.act(learner, observation, spaces, config)
    return Carry(learner, observation, choice, no_totals())


def followed(carry: Carry, outcome: Outcome, spaces: Spaces, config: Config) -> Carry:
    """Store what the actions led to, and choose the next ones."""
    reward, after, terminated, ended, start = map(jnp.asarray, outcome)
    row = Transition(carry.observation, *carry.choice, reward, after, terminated, ended)
    learner = scal.observe(carry.learner, row, start, config)
    learner, choice = scal.act(learner, start, spaces, config)
    return Carry(learner, start, choice, carry.totals)


def learned(carry: Carry, spaces: Spaces, config: Config, updates: int) -> Carry:
    """Some updates."""
    learner, metrics = algorithms.updates(carry.learner, updates, spaces, config)
    return carry._replace(learner=learner, totals=carry.totals + jnp.append(metrics, updates))


follow = jax.jit(followed, static_argnames=("spaces", "config"), donate_argnums=0)
learn = jax.jit(learned, static_argnames=("spaces", "config", "updates"), donate_argnums=0)


def begin(learner: Learner, observation: Array, spaces: Spaces, config: Config) -> Carry:
    """`started`, compiled; the learner's buffer is moved, not copied, and is gone from it."""
    empty: Any = None
    return _begin(learner._replace(replay=empty), learner.replay, observation, spaces, config)


@partial(jax.jit, static_argnames=("spaces", "config"), donate_argnums=1)
def _begin(
    learner: Learner, replay: Replay, observation: Array, spaces: Spaces, config: Config
) -> Carry:
    return started(learner._replace(replay=replay), observation, spaces, config)


def updates_due(config: Config, before: int, after: int) -> int:
    """How many updates belong to the interactions from `before` to `after`."""
    every = config.update_every
    times = after // every - before // every if after > config.warmup else 0
    return config.updates * times
