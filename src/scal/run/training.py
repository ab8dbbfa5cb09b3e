"""A training run in a folder: records, checkpoints, and a clean end whenever it is stopped.

DIR/run.json           where the run should end
DIR/log.jsonl          a line every 1,000 steps
DIR/tensorboard/       the same for TensorBoard, if asked for
DIR/checkpoints/       the last two
DIR/curve.png          at the end
"""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from scal.run import checkpoint, record
from scal.run.agent import SCAL
from scal.run.record import Record
from scal.run.seeds import Seeds
from scal.run.siblings import Siblings

EVERY = 1_000
FURTHER = 50_000
"""Steps by which a finished run is extended."""
CHECKPOINT_EVERY = 10_000


class Learning(Protocol):
    """What a run needs of what learns in it."""

    steps: int
    env_id: Any

    def iterate(self, steps: int, every: int) -> Iterator[Record]:
        """Learn `steps` more; a record for each multiple of `every` that is reached."""

    def save(self, path: Path) -> Path:
        """Write a checkpoint into the folder."""


def check_free(path: Path) -> Path:
    """The folder of a new run; one that holds something already is refused."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"folder {path} is a file; name another with --out")
    if path.exists() and any(path.iterdir()):
        raise ValueError(
            f"folder {path} is not empty; choose another with --out, or use scal resume {path}"
        )
    return path


def load_run(path: Path) -> SCAL | Seeds | Siblings:
    """The agent of a run, or its seeds, at the newest checkpoint."""
    if (path / "run.json").exists() and not (path / checkpoint.RUNS).exists():
        raise ValueError(f"run {path} was cut off before its first checkpoint; train anew")
    _, facts = checkpoint.latest(path)
    if "siblings" in facts:
        return Siblings.load(path)
    return Seeds.load(path) if "seeds" in facts else SCAL.load(path)


def steps_left(path: Path, agent: Learning) -> int:
    """Steps to the end that a run was stopped before; if it got there, `FURTHER`."""
    return max(_until(path) - agent.steps, 0) or FURTHER


def _until(path: Path) -> int:
    """Where the run should end, 0 if nobody can tell."""
    try:
        return int(json.loads((path / "run.json").read_text())["until"])
    except (OSError, ValueError, KeyError):
        return 0


def open_run(path: Path) -> SCAL | Seeds | Siblings:
    """A run to go on with: its records are cut back to where its checkpoint is."""
    agent = load_run(path)
    log = path / "log.jsonl"
    if log.exists():
        record.cut(log, agent.steps)
    return agent


def train(
    agent: Learning, steps: int, folder: Path, progress: bool, tensorboard: bool = False
) -> bool:
    """Learn `steps` more, on record; False if a signal stopped it, with everything saved."""
    log, checkpoints = folder / "log.jsonl", folder / checkpoint.RUNS
    events = (
        record.tensorboard(folder / "tensorboard", agent.steps) if tensorboard else nullcontext()
    )
    lines = agent.iterate(steps, EVERY)
    if progress:
        lines = record.show_progress(lines, agent.steps, agent.steps + steps)
    finished, saved = True, agent.steps
    with events as add_event, _signals() as stopped:
        folder.mkdir(parents=True, exist_ok=True)
        until = max(agent.steps + steps, _until(folder))
        (folder / "run.json").write_text(json.dumps({"until": until}) + "\n")
        for line in lines:
            record.append(log, line)
            if add_event:
                add_event(line)
            if agent.steps // CHECKPOINT_EVERY > saved // CHECKPOINT_EVERY:
                agent.save(checkpoints)
                saved = agent.steps
            if stopped:
                finished = False
                break
        if saved != agent.steps or not checkpoints.exists():
            agent.save(checkpoints)
    if log.exists():
        record.plot_curve(folder / "curve.png", record.read(log), str(agent.env_id))
    return finished


def digest(folder: Path) -> str:
    """sha256 of the arrays of the newest checkpoint."""
    return str(checkpoint.latest(folder)[1]["sha256"])


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGINT or SIGTERM instead of dying of it: the run ends at its next record.

    A second one is not collected.
    """
    received: list[int] = []

    def note(number: int, _: Any) -> None:
        received.append(number)
        restore()
        print("\nstopping at the next record; Ctrl-C again stops at once", file=sys.stderr)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        restore()
