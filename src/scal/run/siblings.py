"""Several seeds of any Gymnasium environment side by side: two compiled calls per step of them all.

siblings = Siblings("HalfCheetah-v5", 5)
for line in siblings.iterate(100_000):
    print(line["step"], line["return"])
siblings.evaluate(10).mean(axis=1)

On a GPU, whose time goes into starting small operations, the updates of many seeds take as long as
those of one. The environments are stepped by `workers` other processes, or by this one; these are
spawned, so that a script that asks for them needs `if __name__ == "__main__":`.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from scal.envs.functional import Spaces
from scal.learn import replay, scal
from scal.learn.algorithms import algorithm
from scal.learn.config import Config
from scal.learn.metrics import Metrics
from scal.run import checkpoint, loop, memory
from scal.run.agent import SCAL
from scal.run.course import to_the_end
from scal.run.evaluate import ABREAST, EVALUATION, LONGEST, check_episodes
from scal.run.loop import Carry
from scal.run.options import (
    annealed,
    check_budget,
    check_finite,
    check_number,
    check_seeds,
    configure,
)
from scal.run.record import Record
from scal.run.spaces import adapt, arguments_of, make, unbounded
from scal.run.stage import (
    Lanes,
    Memory,
    Outcome,
    Stages,
    Words,
    came_back,
    environment_actions,
    from_json,
    in_json,
    observed,
    staged,
)

Array = jax.Array


class Siblings:
    """Learners that differ in nothing but their seed, in environments made by their id.

    Parameters
    ----------
    env : id of a Gymnasium environment.
    seeds : how many.
    seed : the first; the others follow it.
    preset, options : those of `scal.SCAL`.
    workers : processes that step the environments; 0: this one does.
    """

    def __init__(
        self,
        env: str,
        seeds: int,
        seed: int = 0,
        preset: str = "default",
        workers: int = 0,
        **options: Any,
    ) -> None:
        check_seeds(seeds, seed)
        if workers < 0:
            raise ValueError(f"workers is {workers}; use a whole number of at least 0")
        self.name, self.env = env, make(env)
        self.arguments = arguments_of(self.env)
        self.env_id = self.env.spec.id if self.env.spec else env
        self.seeds, self.seed, self.preset, self.workers = seeds, seed, preset, workers
        self.spaces = adapt(self.env)[1]
        self.config = configure(preset, options, self.spaces, unbounded(self.env))
        self.memory = memory.announce(self.spaces, self.config, seeds=seeds)
        """A line on the memory that frames take."""
        self.steps = 0
        self.finished: list[list[float]] = [[] for _ in range(seeds)]
        """Returns of the whole episodes that ended since the last record, of every seed."""
        self.lanes = self._lanes(
            [(one, lane) for one in self._numbers() for lane in range(self.config.environments)],
            first=self.config.first_episode,
        )
        self._audience: dict[int, Lanes] = {}
        self._carry: Carry | None = None
        self._left: list[Memory] | None = None
        """The episodes of seeds that were loaded, until they learn on."""

    def learn(self, steps: int, **options: Any) -> "Siblings":
        """`iterate` to its end; the options are those of `scal.SCAL.learn`."""
        return to_the_end(self, steps, **options)

    def iterate(self, steps: int, every: int = 1_000) -> Iterator[Record]:
        """Interact at least `steps` times per seed; a record for each multiple of `every` reached.

        With several environments the number of steps is rounded up to a multiple of theirs.
        """
        steps = check_budget(steps, every)
        self.config = annealed(self.config, self.steps, steps)
        carry = self._on_stage()
        last, copies = self.steps + steps, self.config.environments
        actions = np.asarray(carry.choice.action)
        everyone = np.ones(self.seeds * copies, bool)
        while self.steps < last:
            outcome, totals = self.lanes.step(self._given(actions), everyone)
            for lane in np.flatnonzero(~np.isnan(totals)):
                self.finished[lane // copies].append(float(totals[lane]))
            before, self.steps = self.steps, self.steps + copies
            parted = Outcome(*map(self._parted, outcome))
            carry = self._carry = _follow(carry, parted, self.spaces, self.config)
            actions = np.asarray(carry.choice.action)
            if due := loop.updates_due(self.config, before, self.steps):
                carry = self._carry = _learn(carry, self.spaces, self.config, due)
            if self.steps // every > before // every:
                yield self._record()
                carry = self._begun()

    def evaluate(self, episodes: int = 10) -> NDArray[np.float64]:
        """Undiscounted returns (seeds, episodes) of the greedy policies, in the episodes of SCAL's
        `evaluate`.
        """
        check_episodes(episodes)
        abreast = min(ABREAST, episodes)
        if abreast not in self._audience:
            words = [(one, EVALUATION) for one in self._numbers() for _ in range(abreast)]
            self._audience[abreast] = self._lanes(words, stacked=True)
        parts = [
            self._play(self._audience[abreast], np.arange(first, first + abreast), episodes)
            for first in range(0, episodes, abreast)
        ]
        return np.concatenate(parts, axis=1)[:, :episodes]

    def _play(self, lanes: Lanes, numbers: NDArray[np.int64], episodes: int) -> NDArray[np.float64]:
        """Returns (seeds, numbers) of some evaluation episodes, of those below `episodes`."""
        playing = np.tile(numbers < episodes, self.seeds)
        returns = np.zeros(len(playing))
        seen = lanes.begin([(number, []) for number in numbers.tolist()] * self.seeds)
        learner = self._begun().learner
        sums = np.zeros(len(playing))
        for _ in range(LONGEST):
            actions = _greedy(learner, self._parted(seen), self.spaces, self.config)
            outcome, totals = lanes.step(self._given(np.asarray(actions)), playing)
            seen, sums = outcome.after, sums + outcome.reward
            returns[outcome.ended] = totals[outcome.ended]
            playing &= ~outcome.ended
            if not playing.any():
                break
        returns[playing] = sums[playing]  # given up
        return returns.reshape(self.seeds, -1)

    def agent(self, number: int) -> SCAL:
        """What seed + `number` has learned so far, as an agent of its own; it begins episodes."""
        check_number(number, self.seeds)
        options = dataclasses.asdict(self.config)
        agent = SCAL(self.name, self.seed + number, self.preset, **options)
        agent.steps = self.steps
        learner = jax.tree.map(lambda leaf: leaf[number], self._begun().learner)
        agent._learner = learner._replace(replay=replay.cut(learner.replay))
        return agent

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint into the folder `path`; the last two are kept."""
        carry = self._begun()
        facts = {
            "steps": self.steps,
            "env": self.name,
            "siblings": self.seeds,
            "seed": self.seed,
            "preset": self.preset,
            "workers": self.workers,
            "config": dataclasses.asdict(self.config),
            "memories": in_json(self.lanes.memories() if self._left is None else self._left),
            "finished": self.finished,
        }
        return checkpoint.save(Path(path), checkpoint.apart(carry, self.seeds), facts)

    @classmethod
    def load(cls, path: str | Path, workers: int | None = None) -> "Siblings":
        """The seeds of the newest whole checkpoint in a folder, ready to go on exactly.

        They have as many workers as before, unless told.
        """
        arrays, facts = checkpoint.latest(Path(path))
        if "siblings" not in facts:
            raise ValueError(f"folder {path} holds no siblings; load it with scal.SCAL.load")
        again = cls(
            facts["env"],
            facts["siblings"],
            facts["seed"],
            facts["preset"],
            facts["workers"] if workers is None else workers,
            **facts["config"],
        )
        again.steps, again.finished = facts["steps"], facts["finished"]
        copies = again.config.environments
        seen = observed(adapt(again.env)[0], (again.seeds, copies))
        begin = partial(_begin, spaces=again.spaces, config=again.config)
        template = jax.eval_shape(begin, np.array(again._numbers()), seen)
        again._carry = checkpoint.restore_abreast(template, arrays, again.seeds)
        again._left = from_json(facts["memories"], again.spaces)
        return again

    def _numbers(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    def _lanes(
        self, words: Sequence[Words], stacked: bool = False, first: int | None = None
    ) -> Lanes:
        if not self.workers:
            return staged(self.name, self.arguments, words, stacked, first)
        return Stages(self.name, self.arguments, words, self.workers, stacked, first)

    def _parted(self, of_lanes: NDArray[Any]) -> NDArray[Any]:
        """What all lanes have in a row, by seed."""
        return of_lanes.reshape(self.seeds, -1, *of_lanes.shape[1:])

    def _given(self, actions: NDArray[Any]) -> list[Any]:
        """What the lanes of all seeds are given, in a row."""
        return environment_actions(actions.reshape(-1, *actions.shape[2:]), self.spaces)

    def _begun(self) -> Carry:
        if self._carry is None:
            seen = self.lanes.begin([(0, [])] * (self.seeds * self.config.environments))
            seeds = np.array(self._numbers())
            self._carry = _begin(seeds, self._parted(seen), self.spaces, self.config)
        return self._carry

    def _on_stage(self) -> Carry:
        """Where learning goes on, with the environments brought back to it."""
        carry = self._begun()
        if self._left is not None:
            seen = self._parted(self.lanes.begin(self._left))
            came_back(self.name, seen, carry.observation)
            self._left = None
        return carry

    def _record(self) -> Record:
        """Means over the seeds, with the return of each."""
        carry = self._begun()
        totals = np.asarray(carry.totals)
        check_finite(totals, self.steps)
        returns = [float(np.mean(some)) if some else None for some in self.finished]
        self.finished = [[] for _ in range(self.seeds)]
        known = [one for one in returns if one is not None]
        line: Record = {"step": self.steps, "return": float(np.mean(known)) if known else None}
        means = totals[:, :-1] / np.maximum(totals[:, -1:], 1.0)
        line |= Metrics(*means.mean(axis=0).tolist())._asdict()
        self._carry = carry._replace(totals=jax.numpy.zeros_like(carry.totals))
        return line | {"returns": returns}


@partial(jax.jit, static_argnames=("spaces", "config"))
def _begin(seeds: Array, seen: Array, spaces: Spaces, config: Config) -> Carry:
    """Fresh learners that look at their first observations."""

    def one(seed: Array, seen: Array) -> Carry:
        learner = algorithm(config).init(jax.random.PRNGKey(seed), spaces, config)
        return loop.started(learner, seen, spaces, config)

    return jax.vmap(one)(seeds, seen)


@partial(jax.jit, static_argnames=("spaces", "config"), donate_argnums=0)
def _follow(carries: Carry, outcome: Outcome, spaces: Spaces, config: Config) -> Carry:
    """`loop.follow` of all seeds."""
    return jax.vmap(partial(loop.followed, spaces=spaces, config=config))(carries, outcome)


@partial(jax.jit, static_argnames=("spaces", "config", "updates"), donate_argnums=0)
def _learn(carries: Carry, spaces: Spaces, config: Config, updates: int) -> Carry:
    """`loop.learn` of all seeds."""
    one = partial(loop.learned, spaces=spaces, config=config, updates=updates)
    return jax.vmap(one)(carries)


@partial(jax.jit, static_argnames=("spaces", "config"))
def _greedy(learners: Any, seen: Array, spaces: Spaces, config: Config) -> Array:
    return jax.vmap(partial(scal.greedy, spaces=spaces, config=config))(learners, seen)
