"""What SCAL learns, on every seed: a table against its targets, and the JSON behind it.

    python -m benchmarks.learning                        the table, from the committed results
    python -m benchmarks.learning --run all              measure everything anew
    python -m benchmarks.learning --run Acrobot-v1       measure one environment anew
    python -m benchmarks.learning --run all --missing    measure only what has not been measured
    python -m benchmarks.learning --run all --variant paper
    python -m benchmarks.learning --run "Hopper-v5 100000" --variant sac
    python -m benchmarks.learning --run all --abreast --helpers 4     for a machine with a GPU

Nothing is tuned to an environment: every run has the options of its variant, and every seed counts.
A score is the mean undiscounted return of 20 greedy episodes, of 500 where they are compiled and
cheap, or, where the MDP is known, the exact loss of the greedy policy.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.contenders import LOCOMOTION
from benchmarks.provenance import provenance
from scal.bench.cell import Cell, together
from scal.bench.execute import write_json
from scal.bench.grid import Grid
from scal.bench.runners import Processes

RESULTS = Path(__file__).parent / "results" / "learning.json"
FOLDER = Path("out/learning")
FIRST_SEED = 10_000
FIRST_VALUE = 0.95
"""Share of V*(0) that V^π(0) should be, where the MDP is known."""


class Task(NamedTuple):
    """Runs of an environment, and what their seeds should reach on average and at worst."""

    env: str
    steps: int
    mean: float
    worst: float
    seeds: int = 5
    compiled: bool = False
    evaluations: int = 10

    @property
    def name(self) -> str:
        """How results are filed."""
        return f"{self.env} {self.steps}"

    @property
    def loss(self) -> bool:
        """Whether less is better."""
        return self.env == "scal/Inventory-v0"

    @property
    def score(self) -> str:
        """What of a cell's result counts."""
        return "gaps" if self.loss else "returns"


TASKS = (
    Task("CartPole-v1", 20_000, 495, 475, 10, True),
    Task("Acrobot-v1", 50_000, -84, -90, 10, True),
    Task("Pendulum-v1", 50_000, -150, -175, 10, True),
    Task("scal/Inventory-v0", 50_000, 0.01, 0.03, 10, True),
    Task("scal/Catch-v0", 20_000, 0.95, 0.95, 5, True),
    Task("HalfCheetah-v5", 100_000, 4_000, 3_000),
    Task("Hopper-v5", 100_000, 2_500, 1_500),
    Task("Walker2d-v5", 100_000, 1_500, 800),
    Task("Ant-v5", 100_000, 500, 200),
    Task("HalfCheetah-v5", 1_000_000, 9_000, 7_000, evaluations=5),
    Task("Hopper-v5", 1_000_000, 3_300, 2_700, evaluations=5),
    Task("Walker2d-v5", 1_000_000, 4_500, 3_500, evaluations=5),
    Task("Ant-v5", 1_000_000, 4_500, 3_000, evaluations=5),
)

VARIANTS = ("default", "replayed", "paper")
"""Presets; of those after the first the table has the mean."""
RIVALS = ("sac", "ppo", "trpo")
"""With RL-Zoo's values; they have a table of their own."""
AT_EQUAL_STEPS = tuple(f"{env} 100000" for env in LOCOMOTION)
"""Tasks that they are measured at."""
COMPARED = ("environment", "steps", "SCAL", *map(str.upper, RIVALS))


def cells(task: Task, variant: str) -> list[Cell]:
    """What has to be run: all seeds in one program, or each by itself."""
    facts = {"settings": variant, "evaluations": task.evaluations}
    algorithm = "scal"
    if variant in RIVALS:
        algorithm, facts["settings"] = variant, "zoo"
    elif task.compiled:
        return [Cell("scal", task.env, task.steps, FIRST_SEED, task.seeds, episodes=500, **facts)]
    seeds = range(FIRST_SEED, FIRST_SEED + task.seeds)
    return [Cell(algorithm, task.env, task.steps, seed, episodes=20, **facts) for seed in seeds]


def measure(
    tasks: list[Task],
    variant: str,
    runner: Processes,
    console: Console,
    missing: bool = False,
    abreast: bool = False,
) -> dict[str, Any]:
    """Every seed of every task, filed as soon as it is known."""
    measured = provenance()
    wanted = {cell: task for task in tasks for cell in cells(task, variant)}
    # seed by seed: a run that is cut off has measured as much of every task
    wanted = dict(sorted(wanted.items(), key=lambda each: each[0].seed))
    if missing:
        known = {task: _entry(load(), variant, task)["seeds"] for task in tasks}
        wanted = {
            cell: task
            for cell, task in wanted.items()
            if any(str(cell.seed + n) not in known[task] for n in range(cell.seeds))
        }
    if abreast:
        wanted = {cell: wanted[parts[0]] for cell, parts in together(wanted).items()}
    grid = Grid(FOLDER, wanted)
    if not missing:
        grid.forget()
        forget(tasks, variant)
    for cell in set(wanted) - set(grid.missing()):  # done, but a run before this one was cut off
        file(grid, cell, wanted[cell], variant, measured, console)
    for event in grid.run(runner):
        if event.state == "failed":
            console.print(f"{event.cell.name} failed: {event.reason}")
            give_up(event.cell, wanted[event.cell], variant, measured, event.reason)
        if event.state == "done":
            file(grid, event.cell, wanted[event.cell], variant, measured, console)
    return load()


def forget(tasks: list[Task], variant: str) -> None:
    """What was measured of some tasks."""
    results = load()
    results[variant] = results.get(variant, {}) | {task.name: {"seeds": {}} for task in tasks}
    write_json(RESULTS, results)


def file(
    grid: Grid,
    cell: Cell,
    task: Task,
    variant: str,
    measured: dict[str, Any],
    console: Console,
) -> None:
    """Add the curves of a cell to the results, which others may have changed meanwhile."""
    results, result = load(), json.loads(grid.result(cell).read_text())
    entry = _entry(results, variant, task) | {"measured": measured}
    entry["config"] = result.get("config", {})
    facts = {name: result.get(name) for name in ("commit", "clean")}
    for place, curve in enumerate(result[task.score]):
        seed = cell.seed + place
        entry["seeds"][str(seed)] = {"curve": curve, **facts}
        entry.get("failed", {}).pop(str(seed), None)
        if "first_values" in result:
            entry["seeds"][str(seed)]["first_values"] = result["first_values"][place][-1]
        console.print(f"{task.name} seed {seed}: {curve[-1]:,.4g}")
    results.setdefault(variant, {})[task.name] = entry
    write_json(RESULTS, results)


def give_up(cell: Cell, task: Task, variant: str, measured: dict[str, Any], reason: str) -> None:
    """Note why the seeds of a cell could not be measured."""
    results = load()
    entry = _entry(results, variant, task) | {"measured": measured}
    seeds = map(str, range(cell.seed, cell.seed + cell.seeds))
    entry["failed"] = entry.get("failed", {}) | dict.fromkeys(seeds, reason)
    results.setdefault(variant, {})[task.name] = entry
    write_json(RESULTS, results)


def _entry(results: dict[str, Any], variant: str, task: Task) -> dict[str, Any]:
    """What is known of a task, of the seeds that it has now."""
    entry = results.get(variant, {}).get(task.name, {"seeds": {}})
    present = map(str, range(FIRST_SEED, FIRST_SEED + task.seeds))
    known = entry["seeds"]
    return entry | {"seeds": {seed: known[seed] for seed in present if seed in known}}


def load() -> dict[str, Any]:
    """The results so far."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def curves(results: dict[str, Any], variant: str, task: Task) -> np.ndarray:
    """Scores (seeds, evaluations) that are known."""
    seeds = results.get(variant, {}).get(task.name, {"seeds": {}})["seeds"]
    return np.array([seeds[seed]["curve"] for seed in sorted(seeds)])


def compared(results: dict[str, Any]) -> list[list[str]]:
    """SCAL and the rivals after as many steps: mean and, in brackets, the worst seed."""
    lines = []
    for task in [task for task in TASKS if task.name in AT_EQUAL_STEPS]:
        found = [curves(results, who, task) for who in ("default", *RIVALS)]
        if any(map(len, found[1:])):
            shown = [f"{one[:, -1].mean():,.0f} ({_worst(task, one):,.0f})" if len(one) else "–"
                     for one in found]  # fmt: skip
            lines.append([task.env, f"{task.steps:,}", *shown])
    return lines


def first_values(results: dict[str, Any], task: Task) -> np.ndarray:
    """V^π(0)/V*(0) at the end, of the seeds of which it is known."""
    seeds = results.get("default", {}).get(task.name, {"seeds": {}})["seeds"].values()
    return np.array([seed["first_values"] for seed in seeds if "first_values" in seed])


COLUMNS = ("environment", "steps", "seeds", "mean", "std", "worst")


def table(results: dict[str, Any]) -> Table:
    """Every target with what was measured."""
    lines = Table(title="SCAL, default options, all seeds")
    for title in (*COLUMNS, *VARIANTS[1:], "targets", ""):
        side = "left" if title in ("environment", "") else "right"
        lines.add_column(title, justify=side, no_wrap=True)
    for row in rows(results):
        lines.add_row(*row)
    return lines


def readme_table(results: dict[str, Any]) -> str:
    """The same for the README, without other variants and targets."""
    width = len(COLUMNS)
    lines = [list(COLUMNS), ["---"] * width, *(row[:width] for row in rows(results))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rows(results: dict[str, Any]) -> Iterator[list[str]]:
    """The cells of the table."""
    for task in TASKS:
        found = curves(results, "default", task)
        if not len(found):
            continue
        shown = "{:.2%}" if task.loss else "{:,.1f}"
        yield [
            task.env,
            f"{task.steps:,}",
            str(len(found)),
            *(shown.format(number) for number in (found[:, -1].mean(), found[:, -1].std())),
            shown.format(_worst(task, found)),
            *(_mean(results, variant, task, shown) for variant in VARIANTS[1:]),
            f"{task.mean:g} / {task.worst:g}",
            verdict(task, found),
        ]


def _mean(results: dict[str, Any], variant: str, task: Task, shown: str) -> str:
    found = curves(results, variant, task)
    if len(found):
        few = f" ({len(found)} of {task.seeds} seeds)" if len(found) < task.seeds else ""
        return shown.format(found[:, -1].mean()) + few
    return "failed" if results.get(variant, {}).get(task.name, {}).get("failed") else "–"


def verdict(task: Task, found: np.ndarray) -> str:
    """Whether mean and worst seed reach their targets, and whether the mean stays at its peak."""
    sign = -1.0 if task.loss else 1.0
    course = sign * found.mean(axis=0)
    reached = course[-1] >= sign * task.mean and sign * _worst(task, found) >= sign * task.worst
    late = course[max(course.argmax(), len(course) - 3) :]  # since the peak, three at most
    fallen = not task.loss and late.mean() < course.max() - 0.1 * abs(course.max())
    words = ["met" if reached else "missed"]
    words += [f"{len(found)} of {task.seeds} seeds"] if len(found) < task.seeds else []
    words += ["below its peak"] if fallen else []
    return ", ".join(words)


def _worst(task: Task, found: np.ndarray) -> float:
    return float(found[:, -1].max() if task.loss else found[:, -1].min())


def main(
    run: str = "",
    variant: str = "default",
    missing: bool = False,
    abreast: bool = False,
    workers: int = 2,
    helpers: int = 0,
) -> None:
    """Print the table; `run` names an environment or a task (ENV STEPS) to measure, or all.

    `workers` are runs at a time. All seeds of a task may be run `abreast`, their environments
    stepped by so many `helpers` in processes of their own.
    """
    console = Console(width=max(Console().width, 150))
    chosen = [task for task in TASKS if run in (task.env, task.name, "all")]
    if variant in RIVALS:
        chosen = [task for task in chosen if task.name in AT_EQUAL_STEPS]
    if run and not chosen:
        names = AT_EQUAL_STEPS if variant in RIVALS else sorted({task.env for task in TASKS})
        raise SystemExit(f"no environment {run!r}; use all or one of {', '.join(names)}")
    if variant not in VARIANTS + RIVALS:
        raise SystemExit(f"no variant {variant!r}; use one of {', '.join(VARIANTS + RIVALS)}")
    if helpers and not abreast:
        raise SystemExit("--helpers step the environments of seeds side by side; add --abreast")
    runner = Processes(workers, helpers)
    results = measure(chosen, variant, runner, console, missing, abreast) if chosen else load()
    console.print(table(results))
    for task in TASKS:
        if len(shares := first_values(results, task)):
            console.print(
                f"{task.env}: V^π(0) is {shares.mean():.1%} of V*(0) on average, "
                f"{shares.min():.1%} at worst (asked: {FIRST_VALUE:.0%} on average)"
            )
    if lines := compared(results):
        beside = Table(*COMPARED, title="At equal steps, RL-Zoo's values: mean (worst seed)")
        for line in lines:
            beside.add_row(*line)
        console.print(beside)


if __name__ == "__main__":
    tyro.cli(main)
