"""A grid of cells: every one is run until its result is there, whatever happens on the way.

    FOLDER/cells/NAME.json      the result of a cell, whole or not there
    FOLDER/timing/NAME.json     how long it took, which no two runs agree on
    FOLDER/logs/NAME.txt        what its process said
    FOLDER/unfinished/NAME/     what a killed cell goes on from

A cell whose result is there is never run again. One that fails is tried again, then listed with its
reason. Every cell has a process of its own, with one thread.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

from scal.bench.cell import Cell
from scal.bench.execute import Result, run, write_json

ATTEMPTS = 3
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


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

    def steps_of(self, cell: Cell) -> int:
        """How far a running cell has come, at its last evaluation."""
        path = self.folder / "unfinished" / cell.name / "scores.json"
        try:
            scores = json.loads(path.read_text())
        except OSError:
            scores = []
        return [0, *cell.marks][len(scores)]

    def run(self, workers: int = 1) -> Iterator[Event]:
        """Run what is missing in processes of this machine, as many at a time as `workers`."""
        waiting = [(cell, 1) for cell in self.missing()]
        running: dict[subprocess.Popen[bytes], tuple[Cell, int]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    cell, attempt = waiting.pop(0)
                    yield Event(cell, "running")
                    running[self._start(cell)] = (cell, attempt)
                time.sleep(0.05)
                for process in [one for one in running if one.poll() is not None]:
                    cell, attempt = running.pop(process)
                    if self.result(cell).exists():
                        yield Event(cell, "done")
                    elif attempt < ATTEMPTS:
                        waiting.insert(0, (cell, attempt + 1))
                    else:
                        yield Event(cell, "failed", self._reason(cell))
        finally:
            for process in running:
                process.kill()

    def _start(self, cell: Cell) -> "subprocess.Popen[bytes]":
        log = self.folder / "logs" / f"{cell.name}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "scal.bench.grid", str(self.folder), _text(cell)]
        with open(log, "wb") as stream:
            return subprocess.Popen(
                command,
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD},
            )

    def _reason(self, cell: Cell) -> str:
        """The last thing that a failed cell said."""
        log = self.folder / "logs" / f"{cell.name}.txt"
        lines = log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its process was killed without a word"


def work(folder: Path, cell: Cell) -> None:
    """Run one cell in this process and file its result, unless another process has."""
    mine, target = folder / "unfinished" / cell.name, folder / "cells" / f"{cell.name}.json"
    with _alone(folder / "unfinished" / f"{cell.name}.lock"):
        if target.exists():
            return
        begun = time.monotonic()
        result = run(cell, mine)
        seconds = time.monotonic() - begun
        write_json(folder / "timing" / f"{cell.name}.json", {"seconds": seconds})
        write_json(target, result)
        shutil.rmtree(mine, ignore_errors=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process works on a cell; the system frees what a killed one held."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _end_with(parent: int) -> None:
    """Stop as soon as the grid that started this process is gone."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _text(cell: Cell) -> str:
    return json.dumps(asdict(cell))


if __name__ == "__main__":
    Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    work(Path(sys.argv[1]), Cell.read(json.loads(sys.argv[2])))
