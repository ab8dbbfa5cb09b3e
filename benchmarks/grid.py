"""What a grid costs, and what it survives.

    python -m benchmarks.grid              overhead per cell, local and Ray
    python -m benchmarks.grid --chaos 64   so many short cells on Ray, while its workers are killed

The overhead of a cell is what passes between its start and its end besides the seconds that it
counts itself: starting Python, importing, filing the result.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from scal.bench.cell import Cell
from scal.bench.grid import Grid
from scal.bench.runners import Processes, Ray, Runner
from scal.bench.series import read
from scal.bench.suites import continuous

RESULTS = Path(__file__).parent / "results" / "grid.json"
CELLS = [cell for cell in continuous(seeds=1) if cell.algorithm == "scal"][:1]
"""One of the paper's longest suite."""
SHORT = (("batch_size", 16), ("warmup", 100), ("width", 16))


def overhead(runner: Runner) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        begun = time.monotonic()
        states = [event.state for event in Grid(Path(name), CELLS).run(runner)]
        wall = time.monotonic() - begun
        assert states.count("done") == len(CELLS)
        counted = sum(seconds for _, seconds in read([Path(name)]))
    lost = wall - counted
    return {"seconds per cell": lost / len(CELLS), "share": lost / wall}


def chaos(count: int) -> dict[str, Any]:
    cells = [
        Cell("scal", "CartPole-v1", 400, seed, options=SHORT, evaluations=1, episodes=1)
        for seed in range(count)
    ]
    over, chance, killed = threading.Event(), random.Random(0), 0

    def kill() -> None:
        nonlocal killed
        while not over.wait(chance.uniform(10.0, 30.0)):
            found = subprocess.run(["pgrep", "-f", "ray::elsewhere"], capture_output=True).stdout
            if found:
                os.kill(int(chance.choice(found.split())), signal.SIGKILL)
                killed += 1

    with tempfile.TemporaryDirectory() as name:
        grid = Grid(Path(name), cells)
        killer = threading.Thread(target=kill)
        killer.start()
        events = list(grid.run(Ray(workers=os.cpu_count())))
        over.set()
        killer.join()
        return {
            "cells": count,
            "results": len(grid.results()),
            "failed": sum(event.state == "failed" for event in events),
            "workers killed": killed,
        }


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--chaos", type=int, metavar="CELLS")
    given = options.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if given.chaos:
        found["chaos"] = chaos(given.chaos)
    else:
        found["overhead"] = {"local": overhead(Processes(1)), "ray": overhead(Ray(workers=1))}
    found["provenance"] = provenance()
    print(json.dumps(found, indent=1))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
