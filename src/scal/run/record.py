"""Records of a run: one JSON object per line, TensorBoard, a progress bar, a learning curve."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from scal.run.extras import require

Record = dict[str, Any]


def write(path: Path, text: str) -> None:
    """The whole file or nothing."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def append(path: Path, line: Record) -> None:
    """Add a line to a JSONL file."""
    with open(path, "a") as stream:
        stream.write(json.dumps(line) + "\n")


def read(path: Path) -> list[Record]:
    """All lines of a JSONL file; a last line cut short by a crash is left out."""
    lines = []
    for text in path.read_text().splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            break
    return lines


def cut(path: Path, last: int) -> None:
    """Leave out the lines of a JSONL file beyond step `last`; the whole file changes or nothing."""
    kept = [line for line in read(path) if line["step"] <= last]
    write(path, "".join(json.dumps(line) + "\n" for line in kept))


@contextmanager
def tensorboard(folder: Path, done: int) -> Iterator[Callable[[Record], None]]:
    """A function that adds a record to the event files; TensorBoard hides those beyond `done`."""
    writer = require("tensorboardX", "tensorboard").SummaryWriter(
        str(folder),
        purge_step=done + 1,
        filename_suffix=f".{done}",  # two files of one second would have one name
    )

    def add(line: Record) -> None:
        for name, value in _scalars(line).items():
            writer.add_scalar(name, value, line["step"])
        writer.flush()

    try:
        yield add
    finally:
        writer.close()


def _scalars(line: Record) -> dict[str, float]:
    """The numbers of a record by name, those of a list as name/0, name/1, …"""
    scalars = {name: value for name, value in line.items() if not isinstance(value, list)}
    for name in line.keys() - scalars.keys():
        scalars |= {f"{name}/{number}": value for number, value in enumerate(line[name])}
    return {name: value for name, value in scalars.items() if value is not None and name != "step"}


def show_progress(lines: Iterator[Record], done: int, total: int) -> Iterator[Record]:
    """Pass records through, and show steps, steps per second, return and time left."""
    columns = (
        TextColumn("{task.completed:,}/{task.total:,} steps"),
        BarColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("return {task.fields[score]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as bar:
        task, score = bar.add_task("", total=total, completed=done, speed="", score="–"), "–"
        for line in lines:
            speed = bar.tasks[0].speed
            if line["return"] is not None:  # no episode may have ended since the last record
                score = f"{line['return']:.1f}"
            bar.update(
                task,
                completed=line["step"],
                speed=f"{speed:,.0f}/s" if speed else "",
                score=score,
            )
            yield line
        bar.update(task, completed=total)


def plot_curve(path: Path, lines: list[Record], title: str) -> None:
    """The training return over interactions, from the worst seed to the best, into a .png file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    seen = [line for line in lines if line["return"] is not None]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    steps = [line["step"] for line in seen]
    axes.plot(steps, [line["return"] for line in seen], color="#1f5fa8")
    spread = [[value for value in line.get("returns", []) if value is not None] for line in seen]
    if all(spread):
        axes.fill_between(
            steps, [*map(min, spread)], [*map(max, spread)], color="#1f5fa8", alpha=0.2, linewidth=0
        )
    axes.set_xlabel("interactions")
    axes.set_ylabel("return of training episodes")
    axes.set_title(title, fontsize=11)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)
