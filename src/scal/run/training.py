"""A training run in a folder: records, checkpoints, and a clean end whenever it is stopped.

DIR/run.json           where the run should end
DIR/log.jsonl          a line every 1,000 steps
DIR/tensorboard/       the same for TensorBoard, if asked for
DIR/checkpoints/       the last two
DIR/curve.png          at the end
"""

import json
import signal
from contextlib import nullcontext
from pathlib import Path

from scal.run import checkpoint, record
from scal.run.agent import SCAL
from scal.run.course import Learning, noted
from scal.run.seeds import Seeds
from scal.run.siblings import Siblings

EVERY = 1_000
FURTHER = 50_000
"""Steps by which a finished run is extended."""
CHECKPOINT_EVERY = 10_000


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
    with events as add_event, noted(signal.SIGINT, signal.SIGTERM) as stopped:
        folder.mkdir(parents=True, exist_ok=True)
        until = max(agent.steps + steps, _until(folder))
        record.write(folder / "run.json", json.dumps({"until": until}) + "\n")
        if not checkpoints.exists():  # killed at any time, the run can be resumed
            agent.save(checkpoints)
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
        if saved != agent.steps:
            agent.save(checkpoints)
    if log.exists():
        record.plot_curve(folder / "curve.png", record.read(log), str(agent.env_id))
    return finished


def digest(folder: Path) -> str:
    """sha256 of the arrays of the newest checkpoint."""
    return str(checkpoint.latest(folder)[1]["sha256"])
