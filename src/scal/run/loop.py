"""The interaction loop with Gymnasium environments: one compiled call per step of all of them.

Python steps the environments; `advance` stores the transitions, updates the learner and chooses the
next actions in one XLA program. No environment resets itself: an `Episode` is reset when it ended,
with a seed of its own, so that no transition leads from one episode into another, and seed and
actions determine it: an interrupted episode is replayed, not lost.
"""

from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from scal.envs.functional import Spaces
from scal.learn import algorithms, policy, replay, scal
from scal.learn.config import Config
from scal.learn.metrics import Metrics
from scal.learn.replay import Transition
from scal.learn.scal import Learner

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


@partial(jax.jit, static_argnames=("spaces", "config"))
def begin(learner: Learner, observation: Array, spaces: Spaces, config: Config) -> Carry:
    """The very first observations (environments, …)."""
    started = jnp.ones(len(observation), bool)
    learner = learner._replace(replay=replay.store_initial(learner.replay, observation, started))
    learner, choice = scal.act(learner, observation, spaces, config)
    return Carry(learner, observation, choice, no_totals())


@partial(jax.jit, static_argnames=("spaces", "config", "updates"), donate_argnums=0)
def advance(
    carry: Carry,
    reward: Array,
    after: Array,
    terminated: Array,
    ended: Array,
    start: Array,
    spaces: Spaces,
    config: Config,
    updates: int,
) -> Carry:
    """Store what the actions led to, learn, and choose the next actions at `start`.

    All arrays have the environments as their first axis. `after` is what the steps returned,
    `start` the same or, where an episode ended, the first observation of the next one.
    """
    row = Transition(carry.observation, *carry.choice, reward, after, terminated, ended)
    learner, totals = scal.observe(carry.learner, row, start, config), carry.totals
    if updates:
        learner, metrics = algorithms.updates(learner, updates, spaces, config)
        totals = totals + jnp.append(metrics, updates)
    learner, choice = scal.act(learner, start, spaces, config)
    return Carry(learner, start, choice, totals)


class Episode:
    """An environment in the middle of an episode that its seed and its actions determine."""

    def __init__(self, env: gym.Env[Any, Any], name: str, seed: int, lane: int = 0) -> None:
        self.env, self.name, self.seed, self.lane, self.number = env, name, seed, lane, 0
        self.actions: list[Any] = []
        self.total = 0.0

    def reset(self) -> np.ndarray:
        """Start episode `number`; its seed depends on it, the lane and the run's seed only."""
        sequence = np.random.SeedSequence([self.seed, self.lane, self.number])
        observation, _ = self.env.reset(seed=int(sequence.generate_state(1)[0]))
        self.actions, self.total = [], 0.0
        return self._checked(observation)

    def replay(self, actions: list[Any]) -> np.ndarray:
        """Bring a fresh environment to where these actions lead."""
        observation = self.reset()
        for action in actions:
            observation = self.step(action)[0]
        return observation

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool]:
        """One step: observation, reward, terminated, ended."""
        try:
            observation, pay, terminated, truncated, _ = self.env.step(action)
        except Exception as error:
            raise RuntimeError(
                f"{self.name} raised {type(error).__name__} at step {len(self.actions)} of episode "
                f"{self.number}: {error}; what was saved before is kept"
            ) from error
        reward = float(pay)
        if not np.isfinite(reward):
            raise RuntimeError(
                f"{self.name} returned the reward {reward} at step {len(self.actions)} of episode "
                f"{self.number}; rewards must be finite"
            )
        self.actions.append(action)
        self.total += reward
        ended = bool(terminated or truncated)
        return self._checked(observation), reward, bool(terminated), ended

    def _checked(self, observation: Any) -> np.ndarray:
        array = np.asarray(observation)
        if array.dtype == np.uint8:
            return array
        if not np.isfinite(array).all():
            where = int(np.flatnonzero(~np.isfinite(array))[0])
            raise RuntimeError(
                f"{self.name} returned {array.flat[where]} as observation [{where}] at step "
                f"{len(self.actions)} of episode {self.number}; observations must be finite"
            )
        return array
