"""The process of one cell: `python -m scal.bench.work FOLDER CELL PARENT HELPERS`."""

import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from scal.bench.cell import Cell
from scal.bench.execute import run, write_json


def work(folder: Path, cell: Cell, helpers: int = 0) -> None:
    """Run one cell in this process and file its result, unless another process has.

    `helpers` are further processes that step the environments of several seeds.
    """
    mine, target = folder / "unfinished" / cell.name, folder / "cells" / f"{cell.name}.json"
    with _alone(folder / "unfinished" / f"{cell.name}.lock"):
        if target.exists():
            return
        result, seconds = run(cell, mine, helpers)
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
    """Stop as soon as the process that started this one is gone."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with, args=[int(sys.argv[3])], daemon=True).start()
    work(Path(sys.argv[1]), Cell.read(json.loads(sys.argv[2])), int(sys.argv[4]))
