"""A training run in a folder: records, checkpoints, and a clean end whenever it is stopped.

DIR/log.jsonl          a line every 1,000 steps
DIR/checkpoints/       the last two
DIR/curve.png          at the end
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scal.run import checkpoint, record
from scal.run.agent import SCAL

EVERY = 1_000
CHECKPOINT_EVERY = 10_000


def check_free(path: Path) -> Path:
    """The folder of a new run; one that holds something already is refused."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            f"folder {path} is not empty; choose another with --out, or use scal resume {path}"
        )
    return path


def open_run(path: Path) -> SCAL:
    """The agent of a run, and its records cut back to where the agent is."""
    if not (path / "checkpoints").is_dir():
        raise ValueError(f"folder {path} holds no run; start one with scal train")
    agent = SCAL.load(path / "checkpoints")
    log = path / "log.jsonl"
    lines = record.read(log) if log.exists() else []
    log.write_text("")
    for line in lines:
        if line["step"] <= agent.steps:
            record.append(log, line)
    return agent


def train(agent: SCAL, steps: int, folder: Path, progress: bool) -> bool:
    """Learn `steps` more, on record; False if a signal stopped it, with everything saved."""
    folder.mkdir(parents=True, exist_ok=True)
    log, checkpoints = folder / "log.jsonl", folder / "checkpoints"
    lines: Iterator[dict[str, Any]] = agent.iterate(steps, EVERY)
    if progress:
        lines = record.show_progress(lines, agent.steps, agent.steps + steps)
    finished = True
    with _signals() as stopped:
        for line in lines:
            record.append(log, line)
            if agent.steps % CHECKPOINT_EVERY == 0:
                agent.save(checkpoints)
            if stopped:
                finished = False
                break
        agent.save(checkpoints)
    if log.exists():
        record.plot_curve(folder / "curve.png", record.read(log), f"SCAL on {agent.env_id}")
    return finished


def digest(folder: Path) -> str:
    """sha256 of the arrays of the newest checkpoint."""
    return str(checkpoint.read(checkpoint.latest(folder / "checkpoints"))[1]["sha256"])


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying of them: the run ends at its next record."""
    received: list[int] = []

    def note(number: int, _: Any) -> None:
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
