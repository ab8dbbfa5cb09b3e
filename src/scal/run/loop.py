"""The interaction loop with a Gymnasium environment: one compiled call per step.

Python steps the environment; `advance` stores the transition, updates the learner and chooses the
next action in one XLA program. Every episode is reset with a seed of its own, so that seed and
actions determine it: an interrupted episode is replayed, not lost.
"""

from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from scal.envs.functional import Spaces
from scal.learn import policy, replay, scal
from scal.learn.config import Config
from scal.learn.replay import Transition
from scal.learn.scal import Learner, Metrics

Array = jax.Array


class Carry(NamedTuple):
    """A learner, what it sees, and what it is about to do."""

    learner: Learner
    observation: Array
    choice: policy.Choice
    totals: Array
    """Sums of the metrics since the last record."""


def no_totals() -> Array:
    """Sums of nothing."""
    return jnp.zeros(len(Metrics._fields))


@partial(jax.jit, static_argnames=("spaces", "config"))
def begin(learner: Learner, observation: Array, spaces: Spaces, config: Config) -> Carry:
    """The very first observation."""
    started = jnp.ones(1, bool)
    learner = learner._replace(
        replay=replay.store_initial(learner.replay, observation[None], started)
    )
    learner, choice = scal.act(learner, observation[None], spaces, config)
    return Carry(learner, observation[None], choice, no_totals())


@partial(jax.jit, static_argnames=("spaces", "config", "learning"), donate_argnums=0)
def advance(
    carry: Carry,
    reward: Array,
    after: Array,
    terminated: Array,
    ended: Array,
    start: Array,
    spaces: Spaces,
    config: Config,
    learning: bool,
) -> Carry:
    """Store what the action led to, learn, and choose the next action at `start`.

    `after` is what the step returned, `start` the same or, if the episode ended, the first
    observation of the next one.
    """
    row = Transition(
        carry.observation,
        *carry.choice,
        reward[None],
        after[None],
        terminated[None],
        ended[None],
    )
    learner, totals = scal.observe(carry.learner, row, start[None], config), carry.totals
    if learning:
        learner, metrics = scal.update(learner, spaces, config)
        totals = totals + metrics
    learner, choice = scal.act(learner, start[None], spaces, config)
    return Carry(learner, start[None], choice, totals)


class Episode:
    """An environment in the middle of an episode that its seed and its actions determine."""

    def __init__(self, env: gym.Env[Any, Any], name: str, seed: int, number: int = 0) -> None:
        self.env, self.name, self.seed, self.number = env, name, seed, number
        self.actions: list[Any] = []
        self.total = 0.0

    def reset(self) -> np.ndarray:
        """Start episode `number`; its seed depends on it and on the run's seed only."""
        sequence = np.random.SeedSequence([self.seed, self.number])
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
        array = np.asarray(observation, dtype=np.float32)
        if not np.isfinite(array).all():
            where = int(np.flatnonzero(~np.isfinite(array))[0])
            raise RuntimeError(
                f"{self.name} returned {array.flat[where]} as observation [{where}] at step "
                f"{len(self.actions)} of episode {self.number}; observations must be finite"
            )
        return array
