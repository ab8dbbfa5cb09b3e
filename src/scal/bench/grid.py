"""A grid of cells: every one is run until its result is there, whatever happens on the way.

    FOLDER/cells/NAME.json      the result of a cell, whole or not there
    FOLDER/timing/NAME.json     how long it took, which no two runs agree on
    FOLDER/logs/NAME.txt        what its process said
    FOLDER/unfinished/NAME/     what a killed cell goes on from

A cell whose result is there is never run again. One that fails is tried again, then listed with its
reason.
"""

import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scal.bench.cell import Cell
from scal.bench.execute import Result
from scal.bench.runners import Processes, Runner

ATTEMPTS = 3


@dataclass(frozen=True)
class Event:
    """Something that happened to a cell: it is running, done or failed."""

    cell: Cell
    state: str
    reason: str = ""


class Grid:
    """Cells and the folder of their results."""

    def __init__(self, folder: Path, cells: Iterable[Cell]) -> None:
        self.folder, self.cells = folder, list(dict.fromkeys(cells))

    def result(self, cell: Cell) -> Path:
        """The file of a cell's result."""
        return self.folder / "cells" / f"{cell.name}.json"

    def missing(self) -> list[Cell]:
        """Cells without a result."""
        return [cell for cell in self.cells if not self.result(cell).exists()]

    def forget(self) -> None:
        """Let all cells be run anew."""
        for cell in self.cells:
            self.result(cell).unlink(missing_ok=True)
            shutil.rmtree(self.folder / "unfinished" / cell.name, ignore_errors=True)

    def results(self) -> list[Result]:
        """Everything that is known, in the order of the cells."""
        there = [self.result(cell) for cell in self.cells if self.result(cell).exists()]
        return [json.loads(path.read_text()) for path in there]

    def seconds(self, cell: Cell) -> float:
        """What a cell took, 0 if nobody timed it."""
        timing = self.folder / "timing" / f"{cell.name}.json"
        return float(json.loads(timing.read_text())["seconds"]) if timing.exists() else 0.0

    def steps_of(self, cell: Cell) -> int:
        """How far a running cell has come, at its last evaluation."""
        path = self.folder / "unfinished" / cell.name / "scores.json"
        try:
            scores = json.loads(path.read_text())["scores"]
        except OSError:
            scores = []
        return [0, *cell.marks][len(scores)]

    def run(self, runner: Runner | None = None) -> Iterator[Event]:
        """Run what is missing; in processes of this machine, one at a time, unless told."""
        runner = runner or Processes()
        waiting = [(cell, 1) for cell in self.missing()]
        running: dict[Any, tuple[Cell, int]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < runner.slots:
                    cell, attempt = waiting.pop(0)
                    yield Event(cell, "running")
                    running[runner.start(self.folder, cell)] = (cell, attempt)
                time.sleep(0.05)
                for job in [one for one in running if runner.ended(one)]:
                    cell, attempt = running.pop(job)
                    if self.result(cell).exists():
                        yield Event(cell, "done")
                    elif attempt < ATTEMPTS:
                        waiting.insert(0, (cell, attempt + 1))
                    else:
                        yield Event(cell, "failed", self._reason(cell))
        finally:
            for job in running:
                runner.stop(job)

    def _reason(self, cell: Cell) -> str:
        """The last thing that a failed cell said; of an exception what it was."""
        log = self.folder / "logs" / f"{cell.name}.txt"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        told = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
        return (told or lines or ["its process was killed without a word"])[-1]
