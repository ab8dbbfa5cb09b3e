"""The replay buffer D: a window of transitions and a store of initial states (paper, section 4.2).

The ring is one array, so that the buffer lives inside one compiled program and a transition is read
and written at once. Time is its first axis, parallel environments the second: the successor of row
t is row t + 1, unless an episode ended there or nothing newer has been stored. Where observations
are frames, the ring holds where they are kept (`scal.learn.frames`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass

from scal.envs.functional import Spaces
from scal.learn import frames as film
from scal.learn.frames import Frames

Array = jax.Array

Weigh = Callable[[Any], Array]
"""Transitions → weights."""

RECENT = 10_000
CANDIDATES = 16
"""Uniform draws per sample that proportional sampling chooses among."""


class Transition(NamedTuple):
    """One step of N environments; every field has N as its first axis (after time, in a window)."""

    observation: Array
    action: Array
    """As the policy carries it: an index, or u before the tanh."""
    log_prob: Array
    """log π_b of the action."""
    reward: Array
    next_observation: Array
    """What the step led to, before any reset; when it is stored, the newest frame of it."""
    terminated: Array
    """The MDP ended: nothing to bootstrap from."""
    ended: Array
    """Terminated or truncated: the next row belongs to another episode."""


@register_dataclass
@dataclass(frozen=True)
class Replay:
    """A ring of transitions, and a ring of initial states."""

    ring: Array
    """Time × environments × all fields of a transition side by side."""
    stored: Array
    """Rows ever stored."""
    initial: Array
    """Observations, or frames."""
    initial_stored: Array
    frames: Frames | None
    spaces: Spaces = field(metadata={"static": True})


class Batch(NamedTuple):
    """b windows of l consecutive transitions; `valid[:, j]` says that row j follows row 0."""

    window: Transition
    valid: Array
    starts: Array
    """b states in the place of s₀."""
    noise: Array | None = None
    """ε of b actions that the policy would choose now."""


def init_replay(spaces: Spaces, capacity: int, environments: int, initial_states: int) -> Replay:
    """An empty buffer of `capacity` transitions in all."""
    time = max(capacity // environments, 1)
    width = 2 * _entries(spaces) + (1 if spaces.discrete else spaces.action_size) + 4
    pixels = math.prod(spaces.image)
    return Replay(
        ring=jnp.zeros((time, environments, width)),
        stored=jnp.zeros((), jnp.int32),
        initial=jnp.zeros((initial_states, pixels), jnp.uint8)
        if spaces.image
        else jnp.zeros((initial_states, spaces.observation_size)),
        initial_stored=jnp.zeros((), jnp.int32),
        frames=film.init_frames(spaces, time, environments) if spaces.image else None,
        spaces=spaces,
    )


def store(replay: Replay, row: Transition) -> Replay:
    """Add one row, over the oldest if the window is full."""
    place = replay.stored % replay.ring.shape[0]
    if replay.frames is not None:
        before = replay.frames
        after = film.follow(before, row.next_observation)
        row = row._replace(observation=film.places(before), next_observation=film.places(after))
        oldest = after.oldest.at[place].set(before.seen.min())
        replay = replace(replay, frames=replace(after, oldest=oldest))
    ring = jax.lax.dynamic_update_index_in_dim(replay.ring, _pack(row), place, axis=0)
    return replace(replay, ring=ring, stored=replay.stored + 1)


def cut(replay: Replay) -> Replay:
    """Let nothing that is stored from now on follow what is stored."""
    last = (replay.stored - 1) % replay.ring.shape[0]
    return replace(replay, ring=replay.ring.at[last, :, -1].set(1.0))


def store_initial(replay: Replay, observation: Array, started: Array) -> Replay:
    """Add the observations (N, …) of the environments in which an episode has just started.

    Frames of them are the first that these environments show.
    """
    if replay.frames is not None:
        replay = replace(replay, frames=film.restart(replay.frames, observation, started))
        observation = observation.reshape(len(observation), -1)
    offset = jnp.cumsum(started) - 1
    size = replay.initial.shape[0]
    place = jnp.where(started, (replay.initial_stored + offset) % size, size)
    return replace(
        replay,
        initial=replay.initial.at[place].set(observation, mode="drop"),
        initial_stored=replay.initial_stored + started.sum(),
    )


def current(replay: Replay, observation: Array) -> Array:
    """What the environments show now: their observations, or the stacks of their frames."""
    if replay.frames is None:
        return observation
    return film.look(replay.frames, film.places(replay.frames), replay.spaces)


def sample(
    key: Array,
    replay: Replay,
    size: int,
    steps: int,
    s0_mix: float,
    share: float = 1.0,
    weigh: Weigh | None = None,
) -> Batch:
    """Draw windows evenly, or in proportion to `weigh(transitions)` among 16 times as many.

    They are drawn from the last `share` of all transitions so far, and from at least `RECENT`, as
    far as these are kept.

    The exact proportional draw would price every stored transition at every update. Drawing evenly
    first and choosing among the candidates has the same distribution up to the sampling error of
    the candidates' total weight, with arithmetic that does not grow with the buffer.

    A share `s0_mix` of the starts are the replayed states themselves, the others initial states.
    """
    environments = replay.ring.shape[1]
    kept = _kept(replay)
    draws = size if weigh is None else CANDIDATES * size
    # one draw of random numbers for everything: drawing is what sampling costs
    age, lane, initial, mix = jax.random.uniform(key, (4, draws))
    last = jnp.maximum(share * replay.stored, RECENT // environments).astype(jnp.int32)
    last = jnp.minimum(last, kept)
    ages, lanes = kept - last + _below(age, last), _below(lane, environments)
    if weigh is not None:
        weights = weigh(_rows(replay, ages, lanes))
        chosen = _drawn(jax.random.fold_in(key, 1), weights + 1e-2 * weights.mean() + 1e-6, size)
        ages, lanes = ages[chosen], lanes[chosen]
    ahead = ages[:, None] + jnp.arange(steps)
    window = _rows(replay, ahead, lanes[:, None])
    broken = jnp.cumsum(window.ended, axis=1) - window.ended
    valid = (ahead < kept) & (broken == 0)
    initial_kept = jnp.minimum(replay.initial_stored, replay.initial.shape[0])
    initials = replay.initial[_below(initial[:size], initial_kept)]
    if replay.frames is not None:
        frame = initials.reshape(size, *replay.spaces.image)
        initials = film.first_stack(frame, replay.spaces)
    replayed = (mix[:size] < s0_mix).reshape(size, *[1] * (initials.ndim - 1))
    return Batch(window, valid, jnp.where(replayed, window.observation[:, 0], initials))


def _drawn(key: Array, weights: Array, size: int) -> Array:
    """Indices in proportion to weights: where even draws fall among their cumulative sums."""
    sums = jnp.cumsum(weights)
    places = jax.random.uniform(key, (size,), maxval=sums[-1])
    return jnp.minimum(jnp.searchsorted(sums, places, side="right"), len(weights) - 1)


def _entries(spaces: Spaces) -> int:
    """Numbers that stand for an observation: its own, or the places of its frames."""
    return spaces.stack if spaces.image else spaces.observation_size


def _kept(replay: Replay) -> Array:
    """Rows that can be read; a row of frames goes when the first of them is written over."""
    rows = jnp.minimum(replay.stored, replay.ring.shape[0])
    return rows if replay.frames is None else jnp.minimum(rows, film.rows_kept(replay.frames))


def _below(uniform: Array, bound: Array | int) -> Array:
    """Whole numbers 0 ≤ n < bound from numbers in [0, 1)."""
    return jnp.minimum((uniform * bound).astype(jnp.int32), jnp.maximum(bound, 1) - 1)


def _rows(replay: Replay, ages: Array, lanes: Array) -> Transition:
    """The transitions of some ages, 0 being the oldest kept."""
    time = replay.ring.shape[0]
    oldest = replay.stored - _kept(replay)
    rows = _unpack(replay.ring[(oldest + ages) % time, lanes], replay.spaces)
    if replay.frames is None:
        return rows
    return rows._replace(
        observation=_stacks(replay, rows.observation),
        next_observation=_stacks(replay, rows.next_observation),
    )


def _stacks(replay: Replay, places: Array) -> Array:
    assert replay.frames is not None
    return film.look(replay.frames, places.astype(jnp.int32), replay.spaces)


def _pack(row: Transition) -> Array:
    parts = [part if part.ndim > 1 else part[:, None] for part in row]
    return jnp.concatenate([part.astype(jnp.float32) for part in parts], axis=-1)


def _unpack(packed: Array, spaces: Spaces) -> Transition:
    entries = _entries(spaces)
    action_end = entries + (1 if spaces.discrete else spaces.action_size)
    next_end = action_end + 2 + entries
    action = packed[..., entries:action_end]
    return Transition(
        observation=packed[..., :entries],
        action=action[..., 0].astype(jnp.int32) if spaces.discrete else action,
        log_prob=packed[..., action_end],
        reward=packed[..., action_end + 1],
        next_observation=packed[..., action_end + 2 : next_end],
        terminated=packed[..., next_end] > 0,
        ended=packed[..., next_end + 1] > 0,
    )
