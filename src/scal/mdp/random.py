"""Random sparse MDPs (Garnet problems) of any size: the test bed of the exact solvers."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from scal.mdp.model import FiniteMDP

CHUNK = 1 << 17


def random_mdp(
    states: int, actions: int, successors: int, seed: int = 0, gamma: float = 0.99
) -> FiniteMDP:
    """Every pair (s, a) leads to `successors` distinct random states; rewards uniform in [0, 1).

    >>> random_mdp(5, 2, 3, seed=1).P.shape
    (10, 5)
    """
    for name, value in (("states", states), ("actions", actions), ("successors", successors)):
        if value < 1:
            raise ValueError(f"{name} is {value}; use a whole number of at least 1")
    if states >= 2**31:
        raise ValueError(f"states is {states}; use fewer than 2**31")
    if successors > states:
        raise ValueError(f"successors is {successors} with {states} states; use at most {states}")
    if seed < 0:
        raise ValueError(f"seed is {seed}; use a whole number of at least 0")
    rng = np.random.default_rng(seed)
    rows = states * actions
    indices = np.empty((rows, successors), dtype=np.int32)
    weights = np.empty((rows, successors))
    height = max(CHUNK // states, 1) if 2 * successors > states else CHUNK
    for start in range(0, rows, height):  # so that nothing but the result is large
        chunk = slice(start, min(start + height, rows))
        indices[chunk] = _distinct(rng, chunk.stop - start, states, successors)
        weights[chunk] = rng.random((chunk.stop - start, successors)) + 1e-3
        weights[chunk] /= weights[chunk].sum(axis=1, keepdims=True)
    indptr = np.arange(0, rows * successors + 1, successors, dtype=_index_type(rows * successors))
    P = sp.csr_array((weights.ravel(), indices.ravel(), indptr), shape=(rows, states))
    return FiniteMDP(P, rng.random((states, actions)), gamma)


def _index_type(largest: int) -> type[np.signedinteger[Any]]:
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def _distinct(rng: np.random.Generator, rows: int, bound: int, k: int) -> NDArray[np.int32]:
    """`rows` sorted draws of k distinct integers below `bound`: repeats are drawn again."""
    if 2 * k > bound:  # rather choose what to leave out
        left_out = _distinct(rng, rows, bound, bound - k) if k < bound else np.empty((rows, 0), int)
        stays = np.ones((rows, bound), dtype=bool)
        stays[np.arange(rows)[:, None], left_out] = False
        return np.nonzero(stays)[1].reshape(rows, k).astype(np.int32)
    drawn = np.sort(rng.integers(0, bound, (rows, k), dtype=np.int32), axis=1)
    redo = np.arange(rows)
    while redo.size:
        part = drawn[redo]
        repeated = np.diff(part, axis=1, prepend=-1) == 0
        redo, part = redo[repeated.any(axis=1)], part[repeated.any(axis=1)]
        repeated = repeated[repeated.any(axis=1)]
        part[repeated] = rng.integers(0, bound, int(repeated.sum()), dtype=np.int32)
        drawn[redo] = np.sort(part, axis=1)
    return drawn
