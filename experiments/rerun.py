"""Run a suite of section 7 again and draw its figure, or only draw what is committed.

python -m experiments.fig5_discrete                draws experiments/results/discrete.json
python -m experiments.fig5_discrete --run          runs what is missing, then packs and draws
python -m experiments.fig5_discrete --run --anew   runs everything
python -m experiments.fig6_continuous --run --algorithms ppo trpo --workers 2
                                                   runs a part of what is missing
python -m experiments.fig6_continuous --run --together --helpers 4
                                                   all seeds of SCAL side by side, on a GPU

A suite may be measured in parts, on several machines: what the file holds is not run again, and
every result names the commit it was measured at.
"""

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from rich.console import Console

from scal.bench import figures, show
from scal.bench.cell import Cell, apart, together
from scal.bench.execute import Result, outdated, write_json
from scal.bench.grid import Grid
from scal.bench.panels import Panel, panels
from scal.bench.runners import Processes
from scal.bench.series import gather, pack, read
from scal.bench.suites import SUITES, part

ROOT = Path(__file__).parents[1]
RESULTS, FIGURES = ROOT / "experiments" / "results", ROOT / "docs" / "figures"


def main(
    suite: str, figure: str | None, wanted: Callable[[Panel], bool] = lambda panel: True
) -> None:
    """`wanted` says which panels of the suite the figure has, if there is one."""
    options = argparse.ArgumentParser(description=SUITES[suite].__doc__)
    options.add_argument("--run", action="store_true", help="run what is missing first")
    options.add_argument("--anew", action="store_true", help="with --run, run all of it")
    options.add_argument("--algorithms", nargs="+", help="with --run, run only theirs")
    options.add_argument("--envs", nargs="+", help="with --run, run only these")
    options.add_argument("--workers", type=int, default=1, help="cells at a time")
    options.add_argument("--folder", type=Path, default=ROOT / "out" / "experiments")
    options.add_argument("--together", action="store_true", help="seeds of SCAL side by side")
    options.add_argument("--helpers", type=int, default=0, help="processes that step their lanes")
    given = options.parse_args()
    if given.helpers and not given.together:
        options.error("--helpers step the environments of seeds side by side; add --together")
    packed, facts = RESULTS / f"{suite}.json", provenance()
    if given.run:
        whole = Grid(given.folder, SUITES[suite]())
        grid = Grid(given.folder, part(whole.cells, given.algorithms, given.envs))
        runner = Processes(given.workers, given.helpers)
        if packed.exists():
            adopt(whole, packed)
        if given.anew:
            grid.forget()
            # whoever goes on later knows what is to be measured
            pack_up(whole, suite, facts, packed)
        merged = together(grid.missing()) if given.together else {}
        to_run = Grid(given.folder / "together", merged) if given.together else grid
        if given.anew:
            to_run.forget()
        for event in show.Board(to_run, runner.slots).follow(to_run.run(runner)):
            print(f"failed: {event.cell.name}: {event.reason}")
        file_apart(to_run, merged, grid)
        pack_up(whole, suite, facts, packed)
    if not packed.exists():
        raise SystemExit(f"the suite {suite} has not been measured yet; use --run")
    results = read([packed])
    warn(result for result, _ in results)
    series = gather(results)
    Console().print(show.summary(one for one in series if not one.gradients))
    if figure:
        chosen = [panel for panel in panels(series) if wanted(panel)]
        print(f"wrote {figures.write(FIGURES / f'{figure}.svg', chosen)}")


def warn(results: Iterable[Result]) -> None:
    """Say so if options of SCAL have changed since, or if a result does not tell them."""
    of_scal = [result for result in results if result["cell"]["algorithm"] == "scal"]
    options = sorted(set().union(*map(outdated, of_scal)))
    if options:
        print(f"shown as they were before {', '.join(options)} changed; --run --anew measures anew")
    untold = sorted({result["commit"][:7] for result in of_scal if "config" not in result})
    if untold:
        print(f"some do not tell their options, which are those of commit {', '.join(untold)}")


def file_apart(many: Grid, merged: dict[Cell, list[Cell]], grid: Grid) -> None:
    """What was learned side by side, as the results of single cells, with a share of the time."""
    for whole, parts in merged.items():
        if not many.result(whole).exists():
            continue
        result = json.loads(many.result(whole).read_text())
        timing = json.loads((many.folder / "timing" / f"{whole.name}.json").read_text())
        for cell in parts:
            share = {"seconds": timing["seconds"] / len(parts)}
            write_json(grid.folder / "timing" / f"{cell.name}.json", share)
            write_json(grid.result(cell), apart(result, cell))


def adopt(grid: Grid, packed: Path) -> None:
    """File the results that are known and missing in the folder."""
    missing = set(grid.missing())
    for result, seconds in read([packed]):
        cell = Cell.read(result["cell"])
        if cell in missing:
            write_json(grid.folder / "timing" / f"{cell.name}.json", {"seconds": seconds})
            write_json(grid.result(cell), result)


def pack_up(grid: Grid, suite: str, facts: dict[str, Any], packed: Path) -> None:
    """All results in one file; each says itself at which commit it was measured."""
    found = {"provenance": facts, "suite": suite, "cells": pack(_of(grid))}
    packed.write_text(json.dumps(found, separators=(",", ":")) + "\n")


def _of(grid: Grid) -> list[tuple[Result, float]]:
    """Results of its own cells; other suites may have theirs in the same folder."""
    return [(result, grid.seconds(Cell.read(result["cell"]))) for result in grid.results()]
