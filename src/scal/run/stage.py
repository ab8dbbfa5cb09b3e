"""Episodes that are stepped together, in this process or spread over several.

No environment resets itself: an `Episode` is reset when it ended, with a seed of its own, so that
no transition leads from one episode into another, and its seed and its actions determine it: an
interrupted episode is replayed, not lost.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from scal.envs.functional import Spaces
from scal.run.spaces import adapt, make

Words = tuple[int, ...]
"""What sets the episodes of a lane apart from all others."""
Memory = tuple[int, list[Any]]
"""The number of an episode and the actions taken in it."""


class LostPlaceError(ValueError):
    """Environments cannot be brought back to where they were left."""


class Outcome(NamedTuple):
    """What a step led to; every field has the lanes as its first axis."""

    reward: NDArray[np.float32]
    after: NDArray[Any]
    """What the step returned."""
    terminated: NDArray[np.bool_]
    ended: NDArray[np.bool_]
    start: NDArray[Any]
    """The same as `after` or, where an episode ended, the first observation of the next one."""


Stepped = tuple[Outcome, NDArray[np.float64]]
"""What a step led to, and the returns of episodes that ended by themselves, NaN elsewhere."""


class Lanes(Protocol):
    """Episodes side by side."""

    def begin(self, memories: Sequence[Memory]) -> NDArray[Any]:
        """Bring every lane to where these actions lead; returns the observations."""

    def step(self, actions: Any, playing: NDArray[np.bool_]) -> Stepped:
        """One step of the lanes that are `playing`; the others stay where they are."""

    def memories(self) -> list[Memory]:
        """What brings every lane back to where it is."""


class Episode:
    """An environment in the middle of an episode that its seed and its actions determine."""

    def __init__(
        self, env: gym.Env[Any, Any], name: str, words: Words, first: int | None = None
    ) -> None:
        self.env, self.name, self.words, self.first, self.number = env, name, words, first, 0
        self.actions: list[Any] = []
        self.total = 0.0
        self.observation: NDArray[Any] = np.zeros(0)

    def reset(self) -> NDArray[Any]:
        """Start episode `number`; its seed depends on it and the lane's words only."""
        sequence = np.random.SeedSequence([*self.words, self.number])
        self.actions, self.total = [], 0.0
        with self._blamed():
            observation, _ = self.env.reset(seed=int(sequence.generate_state(1)[0]))
        return self._checked(observation)

    @property
    def cut(self) -> bool:
        """Whether it is long enough: `first` steps, and twice as many in every further episode."""
        return self.first is not None and len(self.actions) >= self.first << self.number

    def replay(self, number: int, actions: list[Any]) -> NDArray[Any]:
        """Bring the environment to where these actions lead in an episode."""
        self.number = number
        observation = self.reset()
        for place, action in enumerate(actions):
            observation, _, _, ended = self.step(action)
            if ended:
                raise LostPlaceError(
                    f"episode {number} of {self.name} ended after {place + 1} of {len(actions)} "
                    "actions that it did not end with before; learning cannot go on from here"
                )
        return observation

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool]:
        """One step: observation, reward, terminated, ended."""
        with self._blamed():
            observation, pay, terminated, truncated, _ = self.env.step(action)
        try:
            reward = float(pay)
        except (TypeError, ValueError):
            reward = np.nan
        if not np.isfinite(reward):
            raise RuntimeError(
                f"{self.name} returned the reward {pay} at step {len(self.actions)} of episode "
                f"{self.number}; rewards must be finite numbers"
            )
        self.actions.append(action)
        self.total += reward
        ended = bool(terminated or truncated)
        return self._checked(observation), reward, bool(terminated), ended

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Failures of the environment, told as such."""
        try:
            yield
        except Exception as error:
            raise RuntimeError(
                f"{self.name} raised {type(error).__name__} at step {len(self.actions)} of episode "
                f"{self.number}: {error}; what was saved before is kept"
            ) from error

    def _checked(self, observation: Any) -> NDArray[Any]:
        # a copy: some environments return one and the same array at every step
        array = self.observation = np.array(observation)
        shape = self.env.observation_space.shape
        if array.shape != shape:
            raise RuntimeError(
                f"{self.name} returned an observation of shape {array.shape} at step "
                f"{len(self.actions)} of episode {self.number}; its space promises {shape}"
            )
        if array.dtype == np.uint8:
            return array
        if not np.isfinite(array).all():
            where = int(np.flatnonzero(~np.isfinite(array))[0])
            raise RuntimeError(
                f"{self.name} returned {array.flat[where]} as observation [{where}] at step "
                f"{len(self.actions)} of episode {self.number}; observations must be finite"
            )
        return array


class Stage:
    """Lanes in this process."""

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.episodes = episodes

    @property
    def blank(self) -> NDArray[Any]:
        """Something of the shape that the observations of all lanes have."""
        return observed(self.episodes[0].env, (len(self.episodes),))

    def begin(self, memories: Sequence[Memory]) -> NDArray[Any]:
        """Bring every lane to where these actions lead; returns the observations."""
        pairs = zip(self.episodes, memories, strict=True)
        return np.stack([episode.replay(*memory) for episode, memory in pairs])

    def step(self, actions: Any, playing: NDArray[np.bool_]) -> Stepped:
        """One step of the lanes that are `playing`; the others stay where they are."""
        outcomes = [
            self._step(episode, action) if plays else _nothing(episode)
            for episode, action, plays in zip(self.episodes, actions, playing, strict=True)
        ]
        reward, after, terminated, ended, start, total = zip(*outcomes, strict=True)
        outcome = Outcome(
            np.array(reward, np.float32),
            np.stack(after),
            np.array(terminated),
            np.array(ended),
            np.stack(start),
        )
        return outcome, np.array(total)

    def memories(self) -> list[Memory]:
        """What brings every lane back to where it is."""
        return [(episode.number, episode.actions) for episode in self.episodes]

    def _step(self, episode: Episode, action: Any) -> tuple[Any, ...]:
        after, reward, terminated, ended = episode.step(action)
        if not (ended or episode.cut):
            return reward, after, terminated, False, after, np.nan
        total = episode.total if ended else np.nan
        episode.number += 1
        return reward, after, terminated, True, episode.reset(), total


def _nothing(episode: Episode) -> tuple[Any, ...]:
    return 0.0, episode.observation, False, False, episode.observation, np.nan


class Stages:
    """Lanes of an environment that Gymnasium can make by its id, spread over processes."""

    def __init__(
        self,
        env: str,
        arguments: dict[str, Any],
        words: Sequence[Words],
        processes: int,
        stacked: bool = False,
        first: int | None = None,
    ) -> None:
        context = get_context("spawn")
        cuts = [len(words) * part // processes for part in range(processes + 1)]
        self.parts = [slice(a, b) for a, b in pairwise(cuts) if a < b]
        self.pipes = []
        with _on_processors():
            for part in self.parts:
                here, there = context.Pipe()
                task = (there, env, arguments, words[part], stacked, first)
                context.Process(target=_serve, args=task, daemon=True).start()
                there.close()
                self.pipes.append(here)

    def begin(self, memories: Sequence[Memory]) -> NDArray[Any]:
        """Bring every lane to where these actions lead; returns the observations."""
        return np.concatenate(self._ask("begin", memories))

    def step(self, actions: Any, playing: NDArray[np.bool_]) -> Stepped:
        """One step of the lanes that are `playing`; the others stay where they are."""
        outcomes, totals = zip(*self._ask("step", actions, playing), strict=True)
        fields = zip(*outcomes, strict=True)
        return Outcome(*map(np.concatenate, fields)), np.concatenate(totals)

    def memories(self) -> list[Memory]:
        """What brings every lane back to where it is."""
        return [memory for part in self._ask("memories") for memory in part]

    def _ask(self, method: str, *of_lanes: Any) -> list[Any]:
        try:
            for pipe, part in zip(self.pipes, self.parts, strict=True):
                pipe.send((method, [each[part] for each in of_lanes]))
            answers = [pipe.recv() for pipe in self.pipes]  # all of them, whatever one may say
        except (EOFError, OSError):
            raise RuntimeError(
                "a process that steps environments is gone; what was saved before is kept"
            ) from None
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers


@contextmanager
def _on_processors() -> Iterator[None]:
    """Processes that are started here leave the GPU to this one."""
    before = os.environ.get("JAX_PLATFORMS")
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        yield
    finally:
        del os.environ["JAX_PLATFORMS"]
        if before is not None:
            os.environ["JAX_PLATFORMS"] = before


def staged(
    env: str,
    arguments: dict[str, Any],
    words: Sequence[Words],
    stacked: bool = False,
    first: int | None = None,
) -> Stage:
    """Lanes of an environment that Gymnasium can make by its id, in this process."""
    made = [adapt(make(env, **arguments), stacked)[0] for _ in words]
    return Stage([Episode(one, env, lane, first) for one, lane in zip(made, words, strict=True)])


def _serve(
    pipe: Any,
    env: str,
    arguments: dict[str, Any],
    words: Sequence[Words],
    stacked: bool,
    first: int | None,
) -> None:
    """Step some lanes for another process, for as long as it asks."""
    os.setsid()  # signals are for the other process, which decides when to stop
    stage = None
    with suppress(EOFError, OSError):
        while True:
            method, given = pipe.recv()
            try:
                stage = stage or staged(env, arguments, words, stacked, first)
                answer = getattr(stage, method)(*given)
            except LostPlaceError as error:
                answer = error
            except Exception as error:
                answer = RuntimeError(str(error))
            pipe.send(answer)


def observed(env: gym.Env[Any, Any], lanes: tuple[int, ...]) -> NDArray[Any]:
    """Something of the shape that observations of an adapted environment have in so many lanes."""
    space = env.observation_space
    return np.zeros((*lanes, *(space.shape or ())), space.dtype)


def came_back(name: str, seen: NDArray[Any], left: Any) -> None:
    """Raise LostPlaceError unless environments show again what they showed when they were left."""
    if not np.array_equal(np.asarray(left), seen):
        raise LostPlaceError(
            f"{name} does not come back to where it was: its episodes are not determined by seed "
            "and actions, or were played elsewhere, so learning cannot go on from here exactly"
        )


def environment_actions(actions: NDArray[Any], spaces: Spaces) -> list[Any]:
    """What environments are given: indices, or vectors between −1 and 1."""
    return actions.tolist() if spaces.discrete else list(np.tanh(actions))


def in_json(memories: list[Memory]) -> list[Any]:
    """The episodes in progress."""
    return [
        [number, [np.asarray(action).tolist() for action in actions]]
        for number, actions in memories
    ]


def from_json(memories: list[Any], spaces: Spaces) -> list[Memory]:
    """The episodes that `in_json` wrote."""
    as_given = int if spaces.discrete else partial(np.asarray, dtype=np.float32)
    return [(number, [as_given(action) for action in actions]) for number, actions in memories]
