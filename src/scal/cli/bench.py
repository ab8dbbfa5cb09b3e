"""`scal bench` and `scal report`."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from scal.cli.targets import check_folder, check_target


@dataclass(frozen=True)
class Bench:
    """Run experiments of the paper, against Stable-Baselines3's rivals; run again, it goes on."""

    suite: tyro.conf.Positional[str]
    """inventory, discrete, continuous, multistep, gradient, paper (all of these),
    ablation or smoke."""
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
        from scal.bench import runners, series, show, suites
        from scal.bench.grid import Grid

        if self.suite not in suites.SUITES:
            raise ValueError(f"suite is {self.suite!r}; use one of {', '.join(suites.SUITES)}")
        if self.runner not in runners.RUNNERS:
            raise ValueError(f"runner is {self.runner!r}; use one of {', '.join(runners.RUNNERS)}")
        if self.address and self.runner != "ray":
            raise ValueError("--address is for --runner ray; leave one out or name the other")
        if any(number is not None and number < 1 for number in (self.workers, self.seeds)):
            raise ValueError("--workers and --seeds are whole numbers of at least 1")
        seeds = {} if self.seeds is None else {"seeds": self.seeds}
        grid = Grid(self.out or Path("bench") / self.suite, suites.SUITES[self.suite](**seeds))
        console = Console()
        if self.dry_run:
            console.print(show.plan(grid, self.workers or 1))
            return 0
        check_folder(grid.folder)
        runner = (
            runners.Processes(self.workers or 1)
            if self.runner == "local"
            else runners.Ray(self.address, self.workers)
        )
        failed = show.Board(grid, runner.slots).follow(grid.run(runner))
        if grid.results():
            console.print(show.summary(series.gather(series.read([grid.folder]))))
        for event in failed:
            console.print(f"failed: {event.cell.name}: {event.reason}")
        return 1 if failed else 0


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
