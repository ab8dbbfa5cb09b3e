"""Frames, each stored once; in a transition their numbers stand for them.

An observation is a stack of the newest k frames of an episode, its first one repeated while there
are fewer, as Gymnasium's `FrameStackObservation` has it. Every frame gets a number and a place in a
ring of bytes. What an environment shows is k numbers: a step moves them on by one, a new episode
starts them anew, so that no stack ever reaches into another episode.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass

from scal.envs.functional import Spaces

Array = jax.Array

MOST_FRAMES = 2**24
"""Places that a float32, as which a ring of transitions holds them, can tell apart."""


@register_dataclass
@dataclass(frozen=True)
class Frames:
    """A ring of frames, and which of them is seen and needed."""

    pixels: Array
    """Places × bytes of a frame."""
    written: Array
    """Frames ever written."""
    seen: Array
    """Environments × k: the numbers of the frames that each shows now, the newest last."""
    oldest: Array
    """The number of the oldest frame that each row of transitions needs."""


def init_frames(spaces: Spaces, rows: int, environments: int) -> Frames:
    """Room for the frames of so many rows of transitions, or fewer where many episodes start."""
    planes, height, width = spaces.image
    places = environments * (rows + 2 * spaces.stack + 2)
    if places > MOST_FRAMES:
        raise ValueError(
            f"replay_size is {environments * rows:,}, more frames than can be told apart; "
            f"use less than {MOST_FRAMES - environments * (2 * spaces.stack + 2):,}"
        )
    return Frames(
        pixels=jnp.zeros((places, planes * height * width), jnp.uint8),
        written=jnp.zeros((), jnp.int32),
        seen=jnp.zeros((environments, spaces.stack), jnp.int32),
        oldest=jnp.zeros(rows, jnp.int32),
    )


def places(frames: Frames) -> Array:
    """Where what is seen now is kept."""
    return frames.seen % len(frames.pixels)


def follow(frames: Frames, after: Array) -> Frames:
    """Every environment shows a frame more."""
    frames, numbers = _write(frames, after, jnp.ones(len(after), bool))
    return replace(frames, seen=jnp.concatenate([frames.seen[:, 1:], numbers[:, None]], axis=1))


def restart(frames: Frames, first: Array, started: Array) -> Frames:
    """The environments in which an episode has just started show its first frame."""
    frames, numbers = _write(frames, first, started)
    return replace(frames, seen=jnp.where(started[:, None], numbers[:, None], frames.seen))


def rows_kept(frames: Frames) -> Array:
    """How many of the newest rows of transitions have all their frames."""
    return jnp.sum(frames.oldest >= frames.written - len(frames.pixels))


def look(frames: Frames, places: Array, spaces: Spaces) -> Array:
    """The stacks (…, k·planes, height, width) at some places (…, k)."""
    planes, height, width = spaces.image
    shape = (*places.shape[:-1], places.shape[-1] * planes, height, width)
    return frames.pixels[places].reshape(shape)


def first_stack(frame: Array, spaces: Spaces) -> Array:
    """What is seen at the start of an episode, of its first observation or frame (…)."""
    if not spaces.image:
        return frame
    return jnp.concatenate([frame] * spaces.stack, axis=-3)


def next_stack(stack: Array, frame: Array, spaces: Spaces) -> Array:
    """What is seen after one more observation or frame."""
    if not spaces.image:
        return frame
    return jnp.concatenate([stack[..., spaces.image[0] :, :, :], frame], axis=-3)


def _write(frames: Frames, images: Array, which: Array) -> tuple[Frames, Array]:
    """Add some of N frames; also their numbers."""
    size = len(frames.pixels)
    numbers = frames.written + jnp.cumsum(which) - 1
    place = jnp.where(which, numbers % size, size)
    pixels = frames.pixels.at[place].set(images.reshape(len(images), -1), mode="drop")
    return replace(frames, pixels=pixels, written=frames.written + which.sum()), numbers
