"""The numbers of the paper's form: a random search over four environments at once, as JSON.

    python -m benchmarks.search --settings 256       best on a GPU, where all settings run abreast

The paper leaves open μ, β, C, the learning rates, T and γ. Every setting is run on every
environment; the score of a setting is its worst environment at its worst seed, where 0 is what a
poor policy reaches and 1 the target of `benchmarks.learning`. The best are run again, on other
seeds, and ranked by those alone.
"""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import tyro
from numpy.typing import NDArray

from benchmarks.provenance import provenance
from scal.envs.compiled import functional_env
from scal.learn.config import PRESETS, Config
from scal.run import compiled

Settings = dict[str, NDArray[Any]]
"""Options, one number per setting."""


class Task(NamedTuple):
    """A budget, and the returns that score 0 and 1."""

    env: str
    steps: int
    poor: float
    good: float


TASKS = (
    Task("CartPole-v1", 20_000, 20, 495),
    Task("Acrobot-v1", 50_000, -500, -84),
    Task("Pendulum-v1", 50_000, -1_300, -150),
    Task("scal/Inventory-v0", 50_000, -18_000, -200),
)
RANGES = {
    "mu": (0.03, 3.0),
    "kappa": (2.0, 200.0),
    "slack_scale": (0.1, 3.0),
    "lr_value": (1e-4, 3e-3),
    "lr_slack": (3e-4, 1e-2),
    "lr_multiplier": (1e-4, 3e-3),
    "period": (10.0, 1_000.0),
}
"""Each drawn evenly on the logarithmic scale."""
EPISODES = 20


def draw(settings: int, seed: int) -> Settings:
    """So many settings."""
    rng = np.random.default_rng(seed)
    drawn = {
        name: np.exp(rng.uniform(*np.log(bounds), settings)) for name, bounds in RANGES.items()
    }
    period = drawn.pop("period").astype(np.int32)
    beta = drawn.pop("kappa") / drawn["mu"]
    gamma = rng.choice([0.98, 0.99], settings)
    return drawn | {
        "beta": beta, "gamma": gamma, "period_value": period, "period_multiplier": period,
    }  # fmt: skip


def scores(task: Task, config: Config, settings: Settings, first: int, seeds: int) -> NDArray[Any]:
    """Normalised returns (settings, seeds) of greedy episodes."""
    env = functional_env(task.env)
    assert env is not None
    config = dataclasses.replace(config, anneal_steps=task.steps)
    count = len(settings["mu"])
    options = {
        name: jnp.repeat(jnp.asarray(values, jnp.result_type(getattr(config, name))), seeds)
        for name, values in settings.items()
    }
    numbers = jnp.tile(jnp.arange(first, first + seeds), count)
    runs = compiled.start(numbers, options, env, config)
    runs, _ = compiled.advance(runs, options, env, config, config.warmup, learning=False)
    runs, _ = compiled.advance(runs, options, env, config, task.steps - config.warmup)
    returns = np.asarray(compiled.evaluate(runs, numbers, env, config, EPISODES)).mean(axis=1)
    reached = (returns.reshape(count, seeds) - task.poor) / (task.good - task.poor)
    return np.clip(np.nan_to_num(reached), 0.0, 1.0)


def ranked(found: NDArray[Any]) -> NDArray[Any]:
    """Settings from the best on, by scores (tasks, settings, seeds): the worst, then the mean."""
    worst = found.min(axis=(0, 2)).round(2)
    return np.lexsort((-found.mean(axis=(0, 2)), -worst))


def search(
    config: Config, settings: Settings, first: int, seeds: int, shorten: int
) -> NDArray[Any]:
    """Scores (tasks, settings, seeds)."""
    found = []
    for task in TASKS:
        start = time.perf_counter()
        task = task._replace(steps=task.steps // shorten)
        found.append(scores(task, config, settings, first, seeds))
        print(
            f"{task.env}: best {found[-1].max():.2f}, median {np.median(found[-1]):.2f}, "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )
    return np.stack(found)


def main(
    out: Path = Path("out/search.json"),
    settings: int = 256,
    seeds: int = 2,
    best: int = 16,
    again: int = 8,
    shorten: int = 1,
    n_steps: tuple[int, ...] = (1, 3),
    commit: str | None = None,
) -> None:
    """Search, print the best, and write JSON.

    Args:
        out: where the JSON goes.
        settings: how many are drawn for each length of the target.
        seeds: of each setting at first.
        best: how many of them are run again.
        again: seeds of those.
        shorten: divide all budgets by this.
        n_steps: lengths of the multi-step target.
        commit: the commit that is measured, where git cannot tell.
    """
    entries: list[dict[str, Any]] = []
    for length in n_steps:
        config = dataclasses.replace(PRESETS["paper"].discrete, n_steps=length)
        drawn = draw(settings, length)
        found = search(config, drawn, 0, seeds, shorten)
        order = ranked(found)[:best]
        chosen = {name: values[order] for name, values in drawn.items()}
        confirmed = search(config, chosen, 500, again, shorten)
        for place, number in enumerate(order):
            entries.append(
                {
                    "options": {"n_steps": length}
                    | {name: values[number].item() for name, values in drawn.items()},
                    "found": found[:, number].tolist(),
                    "confirmed": confirmed[:, place].tolist(),
                    "worst": float(confirmed[:, place].min()),
                    "mean": float(confirmed[:, place].mean()),
                }
            )
        entries.sort(key=lambda entry: (-round(entry["worst"], 2), -entry["mean"]))
        facts = provenance() | ({"commit": commit} if commit else {})
        tasks = [task._asdict() for task in TASKS]
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(facts | {"tasks": tasks, "best": entries}, indent=1) + "\n")
    for entry in entries[:5]:
        means = np.mean(entry["confirmed"], axis=1).round(2).tolist()
        print(f"worst {entry['worst']:.2f}, means {means}: {entry['options']}")


if __name__ == "__main__":
    tyro.cli(main)
