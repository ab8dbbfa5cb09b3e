"""How much memory a replay takes: refused if it is not there, and said if it is of frames."""

import os
from functools import partial
from pathlib import Path

import jax

from scal.envs.functional import Spaces
from scal.learn.config import Config
from scal.learn.replay import init_replay
from scal.learn.scal import INITIAL_STATES


def announce(spaces: Spaces, config: Config, seeds: int = 1) -> str | None:
    """A line on the memory that frames will take, if there are any; ValueError if it is missing."""
    needed, free = seeds * replay_bytes(spaces, config), available_bytes()
    each = f"{seeds} × " if seeds > 1 else ""
    what = f"{each}{config.replay_size:,} {_kind(spaces)}"
    if needed > free:
        raise ValueError(
            f"a replay of {what} takes {_words(needed)} and {_words(free)} of memory are free; "
            "use a smaller --replay-size"
        )
    return f"replay: {what}, {_words(needed)}" if spaces.image else None


def _kind(spaces: Spaces) -> str:
    if not spaces.image:
        return "transitions"
    planes, height, width = spaces.image
    return f"frames of {height}×{width}" + (f"×{planes}" if planes > 1 else "")


def replay_bytes(spaces: Spaces, config: Config) -> int:
    """All arrays of the replay."""
    init = partial(init_replay, spaces, config.replay_size, config.environments, INITIAL_STATES)
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(init)))


def available_bytes() -> int:
    """Memory that is free on the device that learns."""
    stats = jax.devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return 1024 * int(facts["MemAvailable"].split()[0])
    except (OSError, KeyError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _words(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
