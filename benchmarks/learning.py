"""What SCAL learns, on every seed: a table against its targets, and the JSON behind it.

    python -m benchmarks.learning                        the table, from the committed results
    python -m benchmarks.learning --run all              measure everything anew
    python -m benchmarks.learning --run Acrobot-v1       measure one environment anew
    python -m benchmarks.learning --run all --missing    measure only what has not been measured
    python -m benchmarks.learning --run all --variant paper

Nothing is tuned to an environment: every run has the options of its variant, and every seed counts.
A score is the mean undiscounted return of 20 greedy episodes, of 100 where they are compiled and
cheap, or, where the MDP is known, the exact loss of the greedy policy.
"""

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.provenance import provenance

RESULTS = Path(__file__).parent / "results" / "learning.json"
INTERRUPTED = Path("out/learning")
FIRST_SEED = 5_000
EPISODES, COMPILED_EPISODES = 20, 100
EVALUATIONS = 10
"""Per run, evenly spaced."""


class Task(NamedTuple):
    """Runs of an environment, and what their seeds should reach on average and at worst."""

    env: str
    steps: int
    mean: float
    worst: float
    seeds: int = 5
    compiled: bool = False

    @property
    def name(self) -> str:
        """How results are filed."""
        return f"{self.env} {self.steps}"

    @property
    def loss(self) -> bool:
        """Whether less is better."""
        return self.env == "scal/Inventory-v0"


TASKS = (
    Task("CartPole-v1", 20_000, 495, 475, 10, True),
    Task("Acrobot-v1", 50_000, -84, -90, 10, True),
    Task("Pendulum-v1", 50_000, -150, -175, 10, True),
    Task("scal/Inventory-v0", 50_000, 0.01, 0.03, 10, True),
    Task("HalfCheetah-v5", 100_000, 4_000, 3_000),
    Task("Hopper-v5", 100_000, 2_500, 1_500),
    Task("Walker2d-v5", 100_000, 1_500, 800),
    Task("Ant-v5", 100_000, 500, 200),
    Task("HalfCheetah-v5", 1_000_000, 9_000, 7_000),
    Task("Hopper-v5", 1_000_000, 3_300, 2_700),
    Task("Walker2d-v5", 1_000_000, 4_500, 3_500),
    Task("Ant-v5", 1_000_000, 4_500, 3_000),
)

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"preset": "paper"},
}
"""Arguments of the agent."""

Curve = list[float]
"""Scores of one seed."""


def learn_compiled(task: Task, variant: str) -> dict[int, Curve]:
    """All seeds in one program."""
    from scal.run.exact import compare
    from scal.run.seeds import Seeds

    seeds = Seeds(task.env, task.seeds, FIRST_SEED, **VARIANTS[variant])
    scores = []
    for _ in seeds.iterate(task.steps, task.steps // EVALUATIONS):
        if task.loss:
            found = (compare(seeds.agent(number)) for number in range(task.seeds))
            scores.append([one.relative_gap for one in found if one])
        else:
            scores.append(seeds.evaluate(COMPILED_EPISODES).mean(axis=1).tolist())
    return {FIRST_SEED + n: list(curve) for n, curve in enumerate(zip(*scores, strict=True))}


def learn_seed(task: Task, variant: str, seed: int) -> dict[int, Curve]:
    """One seed in its Gymnasium environment; one that was interrupted goes on."""
    import scal

    folder = _folder(task, variant) / str(seed)
    so_far, every = folder / "curve.json", task.steps // EVALUATIONS
    try:
        agent = scal.SCAL.load(folder)
        curve = json.loads(so_far.read_text())[: agent.steps // every]
    except (OSError, ValueError):
        agent, curve = scal.SCAL(task.env, seed, **VARIANTS[variant]), []
    for _ in agent.iterate(task.steps - agent.steps, every):
        curve.append(float(agent.evaluate(EPISODES).mean()))
        folder.mkdir(parents=True, exist_ok=True)
        so_far.write_text(json.dumps(curve))
        agent.save(folder)
    return {seed: curve}


def measure(
    tasks: list[Task], variant: str, missing: bool, workers: int, console: Console
) -> dict[str, Any]:
    """Every seed of every task, saved as soon as it is known."""
    results = load()
    filed = results.setdefault(variant, {})
    with ProcessPoolExecutor(workers, get_context("spawn"), max_tasks_per_child=1) as pool:
        jobs = {}
        for task in tasks:
            known = filed.get(task.name, {}).get("seeds", {}) if missing else {}
            filed[task.name] = {"seeds": known}
            if not missing:
                shutil.rmtree(_folder(task, variant), ignore_errors=True)
            if task.compiled and not known:
                jobs[pool.submit(learn_compiled, task, variant)] = task
            elif not task.compiled:
                for seed in range(FIRST_SEED, FIRST_SEED + task.seeds):
                    if str(seed) not in known:
                        jobs[pool.submit(learn_seed, task, variant, seed)] = task
        for job in as_completed(jobs):
            task, measured = jobs[job], provenance()
            for seed, curve in job.result().items():
                filed[task.name]["seeds"][str(seed)] = {"curve": curve, "measured": measured}
                console.print(f"{task.name} seed {seed}: {curve[-1]:,.4g}")
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return results


def load() -> dict[str, Any]:
    """The results so far."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def curves(results: dict[str, Any], variant: str, task: Task) -> np.ndarray:
    """Scores (seeds, evaluations) that are known."""
    seeds = results.get(variant, {}).get(task.name, {}).get("seeds", {})
    return np.array([seeds[seed]["curve"] for seed in sorted(seeds)])


COLUMNS = ("environment", "steps", "seeds", "mean", "std", "worst", "paper's form", "targets", "")


def table(results: dict[str, Any]) -> Table:
    """Every target with what was measured."""
    lines = Table(title="SCAL, default options, all seeds")
    for title in COLUMNS:
        side = "left" if title in ("environment", "") else "right"
        lines.add_column(title, justify=side, no_wrap=True)
    for row in rows(results):
        lines.add_row(*row)
    return lines


def readme_table(results: dict[str, Any]) -> str:
    """The same for the README, without the targets."""
    shown = COLUMNS[:7]
    lines = [list(shown), ["---"] * 7, *(row[:7] for row in rows(results))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rows(results: dict[str, Any]) -> Iterator[list[str]]:
    """The cells of the table."""
    for task in TASKS:
        found = curves(results, "default", task)
        if not len(found):
            continue
        literal = curves(results, "paper", task)
        shown = "{:.2%}" if task.loss else "{:,.1f}"
        yield [
            task.env,
            f"{task.steps:,}",
            str(len(found)),
            *(shown.format(number) for number in (found[:, -1].mean(), found[:, -1].std())),
            shown.format(_worst(task, found)),
            shown.format(literal[:, -1].mean()) if len(literal) else "–",
            f"{task.mean:g} / {task.worst:g}",
            verdict(task, found),
        ]


def verdict(task: Task, found: np.ndarray) -> str:
    """Whether mean and worst seed reach their targets, and whether the mean stays at its peak."""
    sign = -1.0 if task.loss else 1.0
    course = sign * found.mean(axis=0)
    reached = course[-1] >= sign * task.mean and sign * _worst(task, found) >= sign * task.worst
    fallen = not task.loss and course[-3:].mean() < course.max() - 0.1 * abs(course.max())
    words = ["met" if reached else "missed"]
    words += [f"{len(found)} of {task.seeds} seeds"] if len(found) < task.seeds else []
    words += ["below its peak"] if fallen else []
    return ", ".join(words)


def _folder(task: Task, variant: str) -> Path:
    return INTERRUPTED / variant / task.name.replace(" ", "-")


def _worst(task: Task, found: np.ndarray) -> float:
    return float(found[:, -1].max() if task.loss else found[:, -1].min())


def main(run: str = "", variant: str = "default", missing: bool = False, workers: int = 2) -> None:
    """Print the table; `run` names an environment or a task (ENV STEPS) to measure, or all."""
    console = Console()
    chosen = [task for task in TASKS if run in (task.env, task.name, "all")]
    if run and not chosen:
        names = ", ".join(sorted({task.env for task in TASKS}))
        raise SystemExit(f"no environment {run!r}; use all or one of {names}")
    if variant not in VARIANTS:
        raise SystemExit(f"no variant {variant!r}; use one of {', '.join(VARIANTS)}")
    os.environ["XLA_FLAGS"] = (
        "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 "
        + os.environ.get("XLA_FLAGS", "")
    )
    results = measure(chosen, variant, missing, workers, console) if chosen else load()
    console.print(table(results))


if __name__ == "__main__":
    tyro.cli(main)
