"""One episode as a film: every frame goes from the environment straight into the file."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from scal.run.evaluate import LONGEST
from scal.run.extras import require

Frame = NDArray[np.uint8]
Act = Callable[[Any], Any]
"""From an observation to an action, both as the environment has them."""


os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pictures are drawn for a file, not a screen


def film(path: Path, env: gym.Env[Any, Any], act: Act, seed: int) -> None:
    """Play the episode of that seed into an .mp4 or .gif file, which is there whole or not."""
    kind = path.suffix.lower()
    if kind not in WRITERS:
        raise ValueError(f"file {path} is of no known kind; name it {' or '.join(WRITERS)}")
    partial = path.with_name(f"{path.name}.partial{kind}")
    try:
        WRITERS[kind](partial, play(env, act, seed), env.metadata.get("render_fps", 30))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
        env.close()


def play(env: gym.Env[Any, Any], act: Act, seed: int) -> Iterator[Frame]:
    """What an episode looks like, before its first step and after each, `LONGEST` at most."""
    observation, _ = env.reset(seed=seed)
    yield _draw(env)
    for _ in range(LONGEST):
        observation, _, terminated, truncated, _ = env.step(act(observation))
        yield _draw(env)
        if terminated or truncated:
            break


def write_gif(path: Path, frames: Iterator[Frame], rate: float) -> None:
    """Frames into a .gif file that plays for ever."""
    from PIL import Image

    images = (Image.fromarray(frame) for frame in frames)
    first = next(images)
    first.save(path, save_all=True, append_images=images, duration=round(1000 / rate), loop=0)


def write_mp4(path: Path, frames: Iterator[Frame], rate: float) -> None:
    """Frames into an .mp4 file; H.264 takes even sizes only, so an odd row or column is cut off."""
    ffmpeg = require("imageio_ffmpeg", "video").get_ffmpeg_exe()
    first = next(frames)
    height, width = first.shape[:2]
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(rate)]
    even = ["-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p"]
    command = [ffmpeg, "-loglevel", "error", "-y", *source, "-i", "-", *even, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    with suppress(BrokenPipeError), process:  # its exit code says that it stopped
        assert process.stdin
        for frame in chain([first], frames):
            process.stdin.write(frame.tobytes())
    if process.returncode:
        raise RuntimeError(f"ffmpeg could not write {path}; its exit code is {process.returncode}")


WRITERS: dict[str, Callable[[Path, Iterator[Frame], float], None]] = {
    ".gif": write_gif,
    ".mp4": write_mp4,
}


def _draw(env: gym.Env[Any, Any]) -> Frame:
    try:
        return np.asarray(env.render(), dtype=np.uint8)
    except gym.error.DependencyNotInstalled as error:
        raise ValueError(f"{_name(env)} cannot be drawn: {error}") from None
    except Exception as error:  # whatever a graphics library raises without a display
        raise RuntimeError(f"{_name(env)} cannot be drawn here: {error}") from error


def _name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec else str(env)
