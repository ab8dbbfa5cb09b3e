"""The replay buffer D: a window of transitions and a store of initial states (paper, section 4.2).

Everything is an array of fixed shape, so that the buffer lives inside one compiled program. Time is
the first axis, parallel environments the second: the successor of row t is row t + 1, unless an
episode ended there or nothing newer has been stored.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from scal.envs.functional import Spaces

Array = jax.Array

Weigh = Callable[[Any], Array]
"""Transitions → weights."""

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
    """What the step led to, before any reset."""
    terminated: Array
    """The MDP ended: nothing to bootstrap from."""
    ended: Array
    """Terminated or truncated: the next row belongs to another episode."""


class Replay(NamedTuple):
    """A ring of rows, and a ring of initial states."""

    rows: Transition
    stored: Array
    """Rows ever stored."""
    initial: Array
    initial_stored: Array


class Batch(NamedTuple):
    """b windows of l consecutive transitions; `valid[:, j]` says that row j follows row 0."""

    window: Transition
    valid: Array
    starts: Array
    """b states in the place of s₀."""


def init_replay(spaces: Spaces, capacity: int, environments: int, initial_states: int) -> Replay:
    """An empty buffer of `capacity` transitions in all."""
    time = max(capacity // environments, 1)
    shape = (time, environments)
    observation = jnp.zeros((*shape, spaces.observation_size))
    action = (
        jnp.zeros(shape, jnp.int32) if spaces.discrete else jnp.zeros((*shape, spaces.action_size))
    )
    flags, numbers = jnp.zeros(shape, bool), jnp.zeros(shape)
    rows = Transition(observation, action, numbers, numbers, observation, flags, flags)
    return Replay(
        rows=rows,
        stored=jnp.zeros((), jnp.int32),
        initial=jnp.zeros((initial_states, spaces.observation_size)),
        initial_stored=jnp.zeros((), jnp.int32),
    )


def store(replay: Replay, row: Transition) -> Replay:
    """Add one row, over the oldest if the window is full."""
    place = replay.stored % replay.rows.reward.shape[0]
    rows = jax.tree.map(lambda ring, new: ring.at[place].set(new), replay.rows, row)
    return replay._replace(rows=rows, stored=replay.stored + 1)


def store_initial(replay: Replay, observation: Array, started: Array) -> Replay:
    """Add the observations (N, …) of the environments in which an episode has just started."""
    offset = jnp.cumsum(started) - 1
    size = replay.initial.shape[0]
    place = jnp.where(started, (replay.initial_stored + offset) % size, size)
    return replay._replace(
        initial=replay.initial.at[place].set(observation, mode="drop"),
        initial_stored=replay.initial_stored + started.sum(),
    )


def sample(
    key: Array, replay: Replay, size: int, steps: int, s0_mix: float, weigh: Weigh | None = None
) -> Batch:
    """Draw windows evenly, or in proportion to `weigh(transitions)` among 16 times as many.

    The exact proportional draw would price every stored transition at every update. Drawing evenly
    first and choosing among the candidates has the same distribution up to the sampling error of
    the candidates' total weight, at a cost that does not grow with the buffer.

    A share `s0_mix` of the starts are the replayed states themselves, the others initial states.
    """
    time, environments = replay.rows.reward.shape
    kept = jnp.minimum(replay.stored, time)
    draws = size if weigh is None else CANDIDATES * size
    # one draw of random numbers for everything: drawing is what sampling costs
    age, lane, initial, mix = jax.random.uniform(key, (4, draws))
    ages, lanes = _below(age, kept), _below(lane, environments)
    if weigh is not None:
        weights = weigh(_rows(replay, ages, lanes))
        floor = 1e-2 * weights.mean() + 1e-6
        choose_key = jax.random.fold_in(key, 1)
        chosen = jax.random.categorical(choose_key, jnp.log(weights + floor), shape=(size,))
        ages, lanes = ages[chosen], lanes[chosen]
    ahead = ages[:, None] + jnp.arange(steps)
    window = _rows(replay, ahead, lanes[:, None])
    broken = jnp.cumsum(window.ended, axis=1) - window.ended
    valid = (ahead < kept) & (broken == 0)
    initial_kept = jnp.minimum(replay.initial_stored, replay.initial.shape[0])
    initials = replay.initial[_below(initial[:size], initial_kept)]
    replayed = (mix[:size] < s0_mix)[:, None]
    return Batch(window, valid, jnp.where(replayed, window.observation[:, 0], initials))


def _below(uniform: Array, bound: Array | int) -> Array:
    """Whole numbers 0 ≤ n < bound from numbers in [0, 1)."""
    return jnp.minimum((uniform * bound).astype(jnp.int32), jnp.maximum(bound, 1) - 1)


def _rows(replay: Replay, ages: Array, lanes: Array) -> Transition:
    """The transitions of some ages, 0 being the oldest kept."""
    time = replay.rows.reward.shape[0]
    oldest = jnp.maximum(replay.stored - time, 0)
    place = (oldest + ages) % time
    return jax.tree.map(lambda ring: ring[place, lanes], replay.rows)
