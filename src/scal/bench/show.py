"""A grid in a terminal: its plan, its progress, its results."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from time import monotonic

from rich.live import Live
from rich.table import Table

from scal.bench.cell import Cell
from scal.bench.grid import Event, Grid
from scal.bench.panels import groups
from scal.bench.series import Series
from scal.bench.standings import HEADS, standings
from scal.envs.compiled import functional_env

SPEED = {"scal": 430, "dqn": 1_500, "ppo": 700, "trpo": 1_200, "sac": 170}
COMPILED_SPEED = {"default": 500, "replayed": 2_000, "paper": 2_000}
"""Interactions of a seed per second of one core, roughly; what a grid has timed counts more."""
BEGINNING = 20.0
"""Seconds before a process has imported and compiled everything."""


def estimate(grid: Grid) -> dict[Cell, float]:
    """Seconds that the missing cells will take, one at a time."""
    timed: dict[tuple[str, str, bool], float] = {}
    for cell in grid.cells:
        seconds = grid.seconds(cell)
        if seconds:  # none where nobody timed it
            timed[_kind(cell)] = cell.seeds * cell.steps / seconds
    return {
        cell: BEGINNING + cell.seeds * cell.steps / timed.get(_kind(cell), _speed(cell))
        for cell in grid.missing()
    }


def plan(grid: Grid, workers: int) -> Table:
    """What would be run."""
    times = estimate(grid)
    alike: dict[tuple[str, str, str, int], list[Cell]] = defaultdict(list)
    for cell in grid.cells:
        alike[cell.env, cell.algorithm, cell.settings, cell.steps].append(cell)
    table = Table(title=f"{len(grid.cells)} cells, {len(times)} of them missing")
    for title in ("environment", "algorithm", "settings", "steps", "seeds", "missing", "about"):
        table.add_column(
            title, justify="left" if title in ("environment", "algorithm") else "right"
        )
    for (env, algorithm, settings, steps), cells in alike.items():
        seeds = str(sum(cell.seeds for cell in cells))
        left = [cell for cell in cells if cell in times]
        about = _time(sum(times[cell] for cell in left))
        table.add_row(env, algorithm, settings, f"{steps:,}", seeds, str(len(left)), about)
    total = _time(sum(times.values()) / workers)
    table.caption = f"about {total} with {workers} at a time, by rough speeds of one core"
    return table


class Board:
    """Cells as they come and go; drawn anew whenever the terminal asks."""

    def __init__(self, grid: Grid, workers: int) -> None:
        self.grid, self.workers, self.begun = grid, workers, monotonic()
        self.left = estimate(grid)
        self.running: dict[Cell, float] = {}
        self.failed: list[Event] = []

    def follow(self, events: Iterator[Event]) -> list[Event]:
        """Show all events; returns the failures."""
        with Live(get_renderable=lambda: self.__rich__()):
            for event in events:
                if event.state == "running":
                    self.running[event.cell] = monotonic()
                else:
                    self.running.pop(event.cell, None)
                    self.left.pop(event.cell, None)
                    self.failed += [event] * (event.state == "failed")
        return self.failed

    def __rich__(self) -> Table:
        done = len(self.grid.cells) - len(self.left) - len(self.failed)
        table = Table(
            title=f"{done} of {len(self.grid.cells)} cells done, {len(self.failed)} failed",
            caption=f"{_time(monotonic() - self.begun)} so far, "
            f"about {_time(sum(self.left.values()) / self.workers)} to go",
        )
        for title in ("cell", "state", "steps", "steps/s", "for"):
            table.add_column(title, justify="left" if title in ("cell", "state") else "right")
        for cell, since in list(self.running.items()):
            seconds, steps = monotonic() - since, self.grid.steps_of(cell)
            speed = f"{steps / seconds:,.0f}" if steps else ""
            table.add_row(cell.name, "running", f"{steps:,}", speed, _time(seconds))
        for event in self.failed:
            table.add_row(event.cell.name, "failed", "", "", event.reason)
        return table


def summary(series: Iterable[Series]) -> Table:
    """The last scores of every algorithm in every environment."""
    table = Table(title="greedy returns at the end, all seeds")
    lines = [(*key, one) for key, group in groups(list(series)) for one in standings(group)]
    shown = len(HEADS) if any(one.gap for *_, one in lines) else len(HEADS) - 1
    for title in ("environment", "steps", *HEADS[:shown]):
        names = title in ("environment", "who")
        table.add_column(title, justify="left" if names else "right", overflow="fold")
    for env, steps, one in lines:
        style = "bold" if one.best else ""
        table.add_row(env, f"{steps:,}", *one.words[:shown], style=style)
    return table


def _kind(cell: Cell) -> tuple[str, str, bool]:
    """What cells of about one speed have in common."""
    compiled = cell.algorithm == "scal" and functional_env(cell.env) is not None
    return cell.algorithm, cell.settings, compiled


def _speed(cell: Cell) -> float:
    if _kind(cell)[2]:
        return COMPILED_SPEED[cell.settings]
    return SPEED[cell.algorithm]


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
