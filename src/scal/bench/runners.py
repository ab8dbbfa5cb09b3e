"""Where the cells of a grid are run: in processes of this machine, or as tasks of a Ray cluster.

Both start the same process, `python -m scal.bench.work`, one per cell and with one thread,
so that a result does not depend on where it comes from.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from scal.bench.cell import Cell
from scal.bench.execute import write_json
from scal.run.extras import require

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""NPROC is the size of XLA's pool, a thread per processor otherwise; with sixteen in each, two
cells on two processors take 1.6 times as long."""
OBJECT_STORE = 100 * 2**20
"""Bytes: results are small."""
LOST_WORKERS = 100
"""So often a task is begun again when the process or the machine under it is gone."""


class Runner(Protocol):
    """Starts cells and notices when they end."""

    slots: int
    """Cells at a time."""

    def start(self, folder: Path, cell: Cell) -> Any:
        """Begin a cell whose results belong into `folder`; returns a job."""

    def ended(self, job: Any) -> bool:
        """Whether a job is over, its result filed if it has one."""

    def stop(self, job: Any) -> None:
        """Give a job up."""


class Processes:
    """The processors of this machine; each cell of several seeds may have `helpers`."""

    def __init__(self, workers: int = 1, helpers: int = 0) -> None:
        self.slots, self.helpers = workers, helpers

    def start(self, folder: Path, cell: Cell) -> "subprocess.Popen[bytes]":
        """A process that works in the folder itself, and ends with this one."""
        return start_process(folder, cell, self.helpers)

    def ended(self, job: "subprocess.Popen[bytes]") -> bool:
        """Whether it exited."""
        return job.poll() is not None

    def stop(self, job: "subprocess.Popen[bytes]") -> None:
        """Kill it."""
        job.kill()


class Ray:
    """A Ray cluster, which needs neither the folder nor anything but scal on its machines.

    Without an address one is started on this machine, for as long as this process lives.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.ray = require("ray", "ray")
        local: Mapping[str, Any] = {
            "num_cpus": workers,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE,
        }
        given = local if address is None else {"address": address}
        os.environ.setdefault("RAY_worker_niceness", "0")  # as willing as local processes
        with warnings.catch_warnings():  # of JAX, about the processes that Ray starts
            warnings.simplefilter("ignore")
            self.ray.init(log_to_driver=False, logging_level="error", **given)
        self.slots = workers or max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        task = self.ray.remote(num_cpus=1, max_calls=1, max_retries=LOST_WORKERS)
        self._elsewhere: Callable[..., Any] = task(elsewhere).remote
        self._folders: dict[Any, tuple[Path, str]] = {}

    def start(self, folder: Path, cell: Cell) -> Any:
        """A task, in a fresh worker."""
        job = self._elsewhere(asdict(cell))
        self._folders[job] = folder, cell.name
        return job

    def ended(self, job: Any) -> bool:
        """Whether its files are here."""
        if not self.ray.wait([job], timeout=0)[0]:
            return False
        folder, name = self._folders.pop(job)
        try:
            files = self.ray.get(job)
        except self.ray.exceptions.RayError as error:
            files = {f"logs/{name}.txt": f"Ray gave up: {str(error).splitlines()[0]}"}
        for path, text in files.items():
            if path.endswith(".json"):
                write_json(folder / path, json.loads(text))
            else:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
        return True

    def stop(self, job: Any) -> None:
        """Cancel it."""
        self.ray.cancel(job, force=True)


RUNNERS = ("local", "ray")


def elsewhere(facts: dict[str, Any]) -> dict[str, str]:
    """Run a cell on any machine; returns the files that belong into the folder of its grid."""
    cell, folder = Cell.read(facts), Path(tempfile.mkdtemp(prefix="scal-"))
    try:
        start_process(folder, cell).wait()
        wanted = [f"timing/{cell.name}.json", f"logs/{cell.name}.txt", f"cells/{cell.name}.json"]
        there = [path for path in wanted if (folder / path).exists()]
        return {path: (folder / path).read_text(errors="replace") for path in there}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start_process(folder: Path, cell: Cell, helpers: int = 0) -> "subprocess.Popen[bytes]":
    """A process for one cell, which ends with this one."""
    log = folder / "logs" / f"{cell.name}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    task, parent = json.dumps(asdict(cell)), str(os.getpid())
    command = [sys.executable, "-m", "scal.bench.work", str(folder), task, parent, str(helpers)]
    with open(log, "wb") as stream:
        return subprocess.Popen(
            command,
            stdout=stream,
            stderr=stream,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
        )
