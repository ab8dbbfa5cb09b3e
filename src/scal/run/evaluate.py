"""Whole episodes of a policy, several side by side: one compiled call per step of all of them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

ABREAST = 16
"""Episodes at a time, at most."""
LONGEST = 108_000
"""Steps of an episode, at most, since a greedy policy may go round in circles for ever; a game of
Atari ends after as many frames."""
EVALUATION = 0xE7A1
"""In the place of a lane, of which there are not so many."""

Act = Callable[[NDArray[Any], NDArray[np.int64], NDArray[np.int64]], Sequence[Any]]
"""Observations, the episodes they belong to and the steps taken in them → actions."""


def play(envs: Sequence[gym.Env[Any, Any]], act: Act, seeds: Sequence[int]) -> NDArray[np.float64]:
    """Undiscounted returns of one episode per seed, in no more environments than seeds.

    `act` always sees as many observations, those of episodes that are over among them. An episode
    is given up after `LONGEST` steps. The environments are closed at the end.
    """
    with ExitStack() as stack:
        for env in envs:
            stack.callback(env.close)
        return _play(envs, act, seeds)


def _play(envs: Sequence[gym.Env[Any, Any]], act: Act, seeds: Sequence[int]) -> NDArray[np.float64]:
    returns = np.zeros(len(seeds))
    numbers, ages = np.arange(len(envs)), np.zeros(len(envs), np.int64)
    observations = [env.reset(seed=seeds[i])[0] for i, env in enumerate(envs)]
    begun, playing = len(envs), set(range(len(envs)))
    while playing:
        actions = act(np.stack(observations), numbers, ages)
        for lane in sorted(playing):
            step = envs[lane].step(actions[lane])
            observations[lane] = step[0]
            returns[numbers[lane]] += float(step[1])
            ages[lane] += 1
            if not (step[2] or step[3] or ages[lane] >= LONGEST):
                continue
            if begun == len(seeds):
                playing.remove(lane)
                continue
            observations[lane] = envs[lane].reset(seed=seeds[begun])[0]
            numbers[lane], ages[lane], begun = begun, 0, begun + 1
    return returns


def evaluation_seeds(seed: int, number: int) -> tuple[int, int]:
    """Of the environment and of the policy, in an episode that training never sees."""
    words = np.random.SeedSequence([seed, EVALUATION, number]).generate_state(2)
    return int(words[0]), int(words[1])


def check_episodes(episodes: int) -> None:
    """Raise ValueError if nobody can play so many."""
    if not isinstance(episodes, int | np.integer) or episodes < 1:
        raise ValueError(f"episodes is {episodes!r}; use a whole number of at least 1")
