"""What SCAL learns, on every seed: a table against its targets, and the JSON behind it.

    python -m benchmarks.learning                  the table, from the committed results
    python -m benchmarks.learning --run all        measure everything anew
    python -m benchmarks.learning --run Acrobot-v1 measure one environment anew

Nothing is tuned to an environment: every run has the default options, and every seed counts. A
score is the mean undiscounted return of 20 greedy episodes, of 100 where they are compiled and
cheap, or, where the MDP is known, the exact loss of the greedy policy.
"""

import json
import os
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
FIRST_SEED = 1_000
EPISODES, COMPILED_EPISODES = 20, 100


class Task(NamedTuple):
    """An environment, how long and how often to learn it."""

    env: str
    steps: int
    every: int
    seeds: int
    compiled: bool


TASKS = (
    Task("CartPole-v1", 50_000, 5_000, 10, True),
    Task("Acrobot-v1", 50_000, 5_000, 10, True),
    Task("Pendulum-v1", 50_000, 5_000, 10, True),
    Task("scal/Inventory-v0", 50_000, 5_000, 10, True),
    Task("HalfCheetah-v5", 100_000, 20_000, 5, False),
    Task("Hopper-v5", 100_000, 20_000, 5, False),
    Task("Walker2d-v5", 100_000, 20_000, 5, False),
    Task("Ant-v5", 100_000, 20_000, 5, False),
)


class Target(NamedTuple):
    """A score after so many steps: the mean over seeds, and that of the worst seed."""

    env: str
    steps: int
    mean: float
    worst: float


TARGETS = (
    Target("CartPole-v1", 20_000, 495, 475),
    Target("CartPole-v1", 25_000, 495, 475),
    Target("Acrobot-v1", 50_000, -84, -90),
    Target("Pendulum-v1", 50_000, -150, -175),
    Target("scal/Inventory-v0", 50_000, 0.01, 0.03),
    Target("HalfCheetah-v5", 100_000, 4_000, 3_000),
    Target("Hopper-v5", 100_000, 2_500, 1_500),
    Target("Walker2d-v5", 100_000, 1_500, 800),
    Target("Ant-v5", 100_000, 500, 200),
)

Curve = list[float]
"""Scores of one seed."""


def learn_compiled(task: Task) -> list[Curve]:
    """All seeds in one program."""
    from scal.run.exact import compare
    from scal.run.seeds import Seeds

    seeds = Seeds(task.env, task.seeds, FIRST_SEED)
    known, scores = compare(seeds.agent(0)) is not None, []
    for _ in seeds.iterate(task.steps, task.every):
        if known:
            found = (compare(seeds.agent(number)) for number in range(task.seeds))
            scores.append([one.relative_gap for one in found if one])
        else:
            scores.append(seeds.evaluate(COMPILED_EPISODES).mean(axis=1).tolist())
    return np.transpose(scores).tolist()


def learn_seed(task: Task, number: int) -> Curve:
    """One seed in its Gymnasium environment."""
    import scal

    agent = scal.SCAL(task.env, seed=FIRST_SEED + number)
    lines = agent.iterate(task.steps, task.every)
    return [float(agent.evaluate(EPISODES).mean()) for _ in lines]


def measure(task: Task, pool: ProcessPoolExecutor, console: Console) -> list[Curve]:
    """The curves of all seeds."""
    if task.compiled:
        return pool.submit(learn_compiled, task).result()
    jobs = {pool.submit(learn_seed, task, n): n for n in range(task.seeds)}
    curves: list[Curve] = [[] for _ in jobs]
    for job in as_completed(jobs):
        curves[jobs[job]] = job.result()
        console.print(f"{task.env} seed {FIRST_SEED + jobs[job]}: {job.result()[-1]:,.4g}")
    return curves


COLUMNS = ("environment", "steps", "seeds", "mean", "std", "worst", "targets", "")


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
    lines = [list(COLUMNS[:6]), ["---"] * 6, *(row[:6] for row in rows(results))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rows(results: dict[str, Any]) -> Iterator[list[str]]:
    """The cells of the table."""
    for target in TARGETS:
        found = results["environments"].get(target.env)
        if found is None:
            continue
        scores = np.array(found["curves"])[:, found["steps"].index(target.steps)]
        loss = target.env == "scal/Inventory-v0"
        worst = scores.max() if loss else scores.min()
        sign = -1.0 if loss else 1.0
        met = sign * scores.mean() >= sign * target.mean and sign * worst >= sign * target.worst
        shown = "{:.2%}" if loss else "{:,.1f}"
        yield [
            target.env,
            f"{target.steps:,}",
            str(len(scores)),
            *(shown.format(number) for number in (scores.mean(), scores.std(), worst)),
            f"{target.mean:g} / {target.worst:g}",
            "met" if met else "missed",
        ]


def main(run: str = "", workers: int = 2) -> None:
    """Print the table; `run` names an environment to measure anew, or all."""
    console = Console()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"environments": {}}
    os.environ["XLA_FLAGS"] = (
        "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 "
        + os.environ.get("XLA_FLAGS", "")
    )
    chosen = [task for task in TASKS if run in (task.env, "all")]
    if run and not chosen:
        raise SystemExit(f"no environment {run!r}; use all or {', '.join(t.env for t in TASKS)}")
    with ProcessPoolExecutor(workers, get_context("spawn"), max_tasks_per_child=1) as pool:
        for task in chosen:
            curves = measure(task, pool, console)
            results["environments"][task.env] = {
                "steps": list(range(task.every, task.steps + 1, task.every)),
                "first_seed": FIRST_SEED,
                "curves": curves,
                "measured": provenance(),
            }
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    console.print(table(results))


if __name__ == "__main__":
    tyro.cli(main)
