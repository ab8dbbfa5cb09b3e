"""`scal bench` and `scal report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.console import Console

from scal.cli.targets import check_folder, check_target

if TYPE_CHECKING:
    from scal.bench.cell import Cell

ENVIRONMENT_STEPS = 50_000
WIDE = 140
"""Columns of text."""


@dataclass(frozen=True)
class Bench:
    """Run experiments of the paper, against Stable-Baselines3's rivals; run again, it goes on.

    Instead of a suite an environment may be named, and SCAL meets its rivals there.
    """

    suite: tyro.conf.Positional[str]
    """inventory, discrete, continuous, multistep, gradient, paper (all of these),
    ablation or smoke; or the id of an environment."""
    steps: int | None = None
    """Interactions of every run in an environment that is named; 50,000 if left out."""
    algorithms: tuple[str, ...] = ()
    """Only these: scal, dqn, ppo, trpo, sac."""
    envs: tuple[str, ...] = ()
    """Only these of the suite's environments."""
    out: Path | None = None
    """Folder of the results; bench/SUITE if left out."""
    seeds: int | None = None
    """Seeds per algorithm and environment."""
    runner: str = "local"
    """local (processes of this machine), or ray (tasks of a cluster)."""
    address: str | None = None
    """Of the Ray cluster; without it one is started on this machine."""
    workers: int | None = None
    """Cells at a time, each in a process with one thread; one if local, all that Ray has."""
    dry_run: bool = False
    """Only say what would be run."""

    def run(self) -> int:
        """Run what is missing, show the results, and say what failed."""
        from scal.bench import runners, series, show
        from scal.bench.baselines import check_rivals
        from scal.bench.grid import Grid

        if self.runner not in runners.RUNNERS:
            raise ValueError(f"runner is {self.runner!r}; use one of {', '.join(runners.RUNNERS)}")
        if self.address and self.runner != "ray":
            raise ValueError("--address is for --runner ray; leave one out or name the other")
        numbers = (self.workers, self.seeds, self.steps)
        if any(number is not None and number < 1 for number in numbers):
            raise ValueError("--workers, --seeds and --steps are whole numbers of at least 1")
        grid = Grid(self.out or Path("bench") / self.suite.replace("/", "-"), self._cells())
        console = Console()
        if not console.is_terminal:  # a file or a pipe has no width that tables must fit
            console = Console(width=WIDE)
        if self.dry_run:
            console.print(show.plan(grid, self.workers or 1))
            return 0
        check_folder(grid.folder)
        if not self.address:  # a cluster has what it has
            check_rivals(cell.algorithm for cell in grid.missing())
        runner = (
            runners.Processes(self.workers or 1)
            if self.runner == "local"
            else runners.Ray(self.address, self.workers)
        )
        failed = show.Board(grid, runner.slots).follow(grid.run(runner))
        if grid.results():
            console.print()
            console.print(show.summary(series.gather(series.read([grid.folder]))))
        for event in failed:
            console.print(f"failed: {event.cell.name}: {event.reason}")
        return 1 if failed else 0

    def _cells(self) -> "list[Cell]":
        from scal.bench import suites
        from scal.run.spaces import make

        seeds = {} if self.seeds is None else {"seeds": self.seeds}
        if self.suite in suites.SUITES:
            if self.steps is not None:
                raise ValueError(
                    f"--steps is for an environment that is named; those of suite {self.suite} are "
                    "the paper's"
                )
            cells = suites.SUITES[self.suite](**seeds)
        else:
            try:
                make(self.suite)
            except ValueError as error:
                raise ValueError(
                    f"suite is {self.suite!r}; use one of {', '.join(suites.SUITES)}, or an "
                    f"environment ({error})"
                ) from None
            steps = ENVIRONMENT_STEPS if self.steps is None else self.steps
            cells = suites.versus(self.suite, steps, **seeds)
        for kind, asked, there in (
            ("algorithm", self.algorithms, {cell.algorithm for cell in cells}),
            ("environment", self.envs, {cell.env for cell in cells}),
        ):
            for name in asked:
                if name not in there:
                    raise ValueError(
                        f"{kind} is {name!r}; {self.suite} has {', '.join(sorted(there))}"
                    )
        return suites.part(cells, self.algorithms, self.envs)


@dataclass(frozen=True)
class Report:
    """Turn results of `scal bench` into one HTML page."""

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of results, or files of experiments/results that are called like a suite."""
    out: str = "report.html"
    """The page."""
    figures: Path | None = None
    """Folder for the figures as SVG and PNG files."""

    def run(self) -> int:
        """Write the page and say where."""
        from scal.bench import report

        check_target(self.out, {".html"})
        if self.figures is not None:
            check_folder(self.figures)
        if not self.folders:
            raise ValueError("no folder of results is named; use scal report bench/SUITE")
        print(f"wrote {report.write(self.folders, Path(self.out))}")
        if self.figures is not None:
            written = report.write_figures(self.folders, self.figures)
            print(f"wrote {len(written)} files into {self.figures}")
        return 0
