"""The course of learning: from record to record, and interrupted only between two of them.

A signal in the middle of a step would leave some environments an action ahead of the learner. So it
is noted, and the agent stops at its next record, from where it can be saved and go on exactly.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from scal.run.record import Record, show_progress


class Learning(Protocol):
    """An agent, or several that learn side by side."""

    steps: int
    env_id: Any

    def iterate(self, steps: int, every: int) -> Iterator[Record]:
        """Learn `steps` more; a record for each multiple of `every` that is reached."""

    def save(self, path: Path) -> Path:
        """Write a checkpoint into the folder."""


Agent = TypeVar("Agent", bound=Learning)


def to_the_end(
    agent: Agent,
    steps: int,
    progress: bool = False,
    record: Callable[[Record], None] | None = None,
    every: int = 1_000,
) -> Agent:
    """The agent once it has learned so much more; see `scal.SCAL.learn`."""
    lines = agent.iterate(steps, every)
    if progress:
        lines = show_progress(lines, agent.steps, agent.steps + steps)
    with noted(signal.SIGINT) as interrupted:
        for line in lines:
            if record:
                record(line)
            if interrupted:
                raise KeyboardInterrupt
    return agent


@contextmanager
def noted(*numbers: int) -> Iterator[list[int]]:
    """Signals that came, instead of what they do; a second one does it.

    Outside of the main thread, where Python knows no signals, there are none.
    """
    received: list[int] = []
    before: dict[int, Any] = {}

    def note(number: int, _: Any) -> None:
        received.append(number)
        restore()
        print("\nstopping at the next record; Ctrl-C again stops at once", file=sys.stderr)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield received
    finally:
        restore()
