"""Several seeds side by side in one compiled program, for environments in JAX.

seeds = Seeds("CartPole-v1", 8)
for line in seeds.iterate(25_000):
    print(line["step"], line["return"])
seeds.evaluate(10).mean(axis=1)
"""

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from scal.envs.compiled import FUNCTIONAL, functional_env
from scal.envs.functional import FunctionalEnv
from scal.envs.stepped import as_gymnasium
from scal.learn import replay
from scal.learn.metrics import Metrics
from scal.run import checkpoint, compiled, memory
from scal.run.agent import SCAL
from scal.run.compiled import Run, Trace
from scal.run.course import to_the_end
from scal.run.evaluate import check_episodes
from scal.run.options import (
    annealed,
    check_budget,
    check_finite,
    check_number,
    check_seeds,
    configure,
)
from scal.run.record import Record
from scal.run.spaces import make, unbounded


class Seeds:
    """Learners that differ in nothing but their seed.

    Parameters
    ----------
    env : id of an environment in `scal.envs.compiled.FUNCTIONAL`, or a `FunctionalEnv` of yours.
        Of that no bounds are known, so that observations are centred and scaled as they come;
        `normalize_observations="no"` leaves them as they are.
    seeds : how many.
    seed : the first; the others follow it.
    preset, options : those of `scal.SCAL`.
    """

    def __init__(
        self,
        env: str | FunctionalEnv,
        seeds: int,
        seed: int = 0,
        preset: str = "default",
        **options: Any,
    ) -> None:
        if isinstance(env, FunctionalEnv) and functional_env(env.name) is env:
            env = env.name
        if not isinstance(env, str | FunctionalEnv):
            raise ValueError(f"env is {env!r}; pass the id of an environment or a FunctionalEnv")
        copy = functional_env(env) if isinstance(env, str) else env
        if copy is None:
            make(str(env))  # says so if there is no such environment
            raise ValueError(
                f"environment {env!r} has no compiled form, which only "
                f"{', '.join(sorted(FUNCTIONAL))} have; use scal.run.siblings.Siblings"
            )
        check_seeds(seeds, seed)
        self.env, self.env_id, self.given = copy, copy.name, env
        self.seeds, self.seed, self.preset = seeds, seed, preset
        self.config = configure(preset, options, copy.spaces, unbounded(self._stepped()))
        self.memory = memory.announce(copy.spaces, self.config, seeds=seeds)
        """A line on the memory that frames take."""
        self.steps = 0
        self.runs: Run = compiled.start(self._numbers(), {}, self.env, self.config)

    def learn(self, steps: int, **options: Any) -> "Seeds":
        """`iterate` to its end; the options are those of `scal.SCAL.learn`."""
        return to_the_end(self, steps, **options)

    def iterate(self, steps: int, every: int = 1_000) -> Iterator[Record]:
        """Interact at least `steps` times per seed; a record for each multiple of `every` reached.

        With several environments, or several steps per update, their number is rounded up to a
        multiple of these. All stretches have one length, so that one program learns and one fills
        the buffer.
        """
        steps = check_budget(steps, every)
        self.config = annealed(self.config, self.steps, steps)
        stride = compiled.stride(self.config)
        steps, warmup = (stride * -(-n // stride) for n in (steps, self.config.warmup))
        stretch = math.gcd(steps, every, self.steps, warmup)
        stretch = stretch if stretch % stride == 0 else stride
        traces: list[Trace] = []
        for _ in range(steps // stretch):
            learning = self.steps >= warmup
            self.runs, trace = compiled.advance(
                self.runs, {}, self.env, self.config, stretch, learning
            )
            before, self.steps = self.steps, self.steps + stretch
            traces.append(trace if learning else trace._replace(metrics=None))
            if self.steps // every > before // every:
                yield self._record(traces)
                traces = []

    def evaluate(self, episodes: int = 10) -> NDArray[np.float64]:
        """Undiscounted returns (seeds, episodes) of the greedy policies."""
        check_episodes(episodes)
        returns = compiled.evaluate(self.runs, self._numbers(), self.env, self.config, episodes)
        return np.asarray(returns, np.float64)

    def agent(self, number: int) -> SCAL:
        """What seed + `number` has learned so far, as an agent in the Gymnasium environment."""
        check_number(number, self.seeds)
        options = dataclasses.asdict(self.config)
        again = self.env_id if isinstance(self.given, str) else self._stepped
        agent = SCAL(again, self.seed + number, self.preset, **options)
        agent.steps = self.steps
        learner = jax.tree.map(lambda leaf: leaf[number], self.runs.learner)
        agent._learner = learner._replace(replay=replay.cut(learner.replay))
        return agent

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint into the folder `path`; the last two are kept."""
        facts = {
            "steps": self.steps,
            "env": self.env_id,
            "listed": isinstance(self.given, str),
            "spaces": self.env.spaces._asdict(),
            "seeds": self.seeds,
            "seed": self.seed,
            "preset": self.preset,
            "config": dataclasses.asdict(self.config),
        }
        return checkpoint.save(Path(path), checkpoint.apart(self.runs, self.seeds), facts)

    @classmethod
    def load(cls, path: str | Path, env: FunctionalEnv | None = None) -> "Seeds":
        """The seeds of the newest whole checkpoint in a folder, ready to go on exactly.

        Where they learn in a `FunctionalEnv` of yours, `env` has to be that again.
        """
        arrays, facts = checkpoint.latest(Path(path))
        if "seeds" not in facts:
            raise ValueError(f"folder {path} holds one agent; load it with scal.SCAL.load")
        if env is None and not facts["listed"]:
            raise ValueError(
                f"folder {path} holds seeds in {facts['env']}, whose functions no checkpoint has; "
                "pass it as env to scal.run.seeds.Seeds.load"
            )
        given = facts["env"] if env is None else env
        if env is not None:
            promised = json.loads(json.dumps(env.spaces._asdict()))
            if (env.name, promised) != (facts["env"], facts["spaces"]):
                raise ValueError(
                    f"{env.name} is not what the seeds of folder {path} learn in, which is "
                    f"{facts['env']} with {facts['spaces']}; pass that one as env"
                )
        again = cls(given, facts["seeds"], facts["seed"], facts["preset"], **facts["config"])
        again.steps = facts["steps"]
        again.runs = checkpoint.restore_abreast(again.runs, arrays, again.seeds)
        return again

    def _stepped(self) -> gym.Env[Any, Any]:
        """The environment as Python steps it."""
        return make(self.given) if isinstance(self.given, str) else as_gymnasium(self.given)

    def _numbers(self) -> jax.Array:
        return jnp.arange(self.seed, self.seed + self.seeds)

    def _record(self, traces: list[Trace]) -> Record:
        """Means over the seeds, with the return of each."""
        returned = np.stack([np.asarray(trace.training_return) for trace in traces], axis=1)
        returns = [_mean(row[~np.isnan(row)]) for row in returned]
        learned = [trace.metrics for trace in traces if trace.metrics]
        check_finite([np.asarray(metrics) for metrics in learned], self.steps)
        line: Record = {"step": self.steps}
        line["return"] = _mean([value for value in returns if value is not None])
        for name in Metrics._fields:
            line[name] = _mean([np.mean(getattr(m, name)) for m in learned]) or 0.0
        return line | {"returns": returns}


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None
