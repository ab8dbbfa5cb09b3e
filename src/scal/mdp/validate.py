"""What makes arrays a Markov decision process, and a sentence for each way they can fail to be one.

Every check raises `ValueError` with the argument, the index and the fix, in that order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from scal.mdp.types import Array

ROW_SUM_TOLERANCE = 1e-8


def real_array(name: str, value: Any, ndims: Sequence[int]) -> Array:
    """`value` as a float64 array of one of the given numbers of dimensions."""
    try:
        array = np.asarray(value)
        if array.dtype == object or np.iscomplexobj(array):
            raise TypeError
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} is not an array of real numbers; pass a rectangular array of floats"
        ) from None
    if array.ndim not in ndims:
        wanted = " or ".join(str(n) for n in ndims)
        raise ValueError(
            f"{name} has {array.ndim} dimensions (shape {array.shape}); pass an array with {wanted}"
        )
    return array


def index_array(name: str, value: Any, length: int | None, bound: int) -> NDArray[np.int64]:
    """`value` as integers in 0..bound-1, of the given length."""
    array = np.asarray(value)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} is not a list of integers; pass a 1-d integer array")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} entries where {length} are needed; make it fit")
    bad = np.flatnonzero((array < 0) | (array >= bound))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {array[bad[0]]}; use integers from 0 to {bound - 1}")
    return array.astype(np.int64, copy=False)


def discount(gamma: Any) -> float:
    """A discount factor in [0, 1)."""
    try:
        value = float(gamma)
    except (TypeError, ValueError):
        raise ValueError(f"gamma is {gamma!r}; pass a number with 0 <= gamma < 1") from None
    if not 0.0 <= value < 1.0:
        raise ValueError(f"gamma is {value:g}; choose 0 <= gamma < 1 (for example 0.99)")
    return value


def distribution(name: str, value: Any, size: int) -> Array:
    """A probability vector of the given size."""
    array = real_array(name, value, [1])
    if array.size != size:
        raise ValueError(f"{name} has {array.size} entries where {size} are needed; make it fit")
    bad = np.flatnonzero(~(array >= 0) | np.isinf(array))
    if bad.size:
        raise ValueError(
            f"{name}[{bad[0]}] is {array[bad[0]]:g}; use finite probabilities, none negative"
        )
    total = float(array.sum())
    if abs(total - 1.0) > ROW_SUM_TOLERANCE:
        raise ValueError(f"{name} sums to {total:.9g}; divide it by its sum")
    return array


def rewards(R: Array) -> None:
    """Rewards are finite; minus infinity marks an action that a state does not have."""
    if R.size == 0:
        raise ValueError(f"R has shape {R.shape}; an MDP needs at least one state and one action")
    bad = np.argwhere(np.isnan(R) | np.isposinf(R))
    if bad.size:
        s, a = bad[0]
        raise ValueError(
            f"R[{s}, {a}] is {R[s, a]:g}; use a finite reward, or -inf to forbid action {a} there"
        )
    stuck = np.flatnonzero(np.isneginf(R).all(axis=1))
    if stuck.size:
        raise ValueError(
            f"R[{stuck[0]}] is -inf throughout, so state {stuck[0]} has no action; "
            "give every state at least one feasible action"
        )


def transitions(P: sp.csr_array, R: Array) -> None:
    """Row (s, a) of P is a distribution over next states, and empty where (s, a) is infeasible."""
    S, A = R.shape
    if P.shape != (S * A, S):
        raise ValueError(
            f"P has shape {P.shape} but R of shape {R.shape} needs P of shape {(S * A, S)}; "
            "give P one row per state-action pair, states outermost"
        )
    bad = np.flatnonzero(~(P.data >= 0) | np.isinf(P.data))
    if bad.size:
        row = int(np.searchsorted(P.indptr, bad[0], side="right")) - 1
        raise ValueError(
            f"P[{row // A}, {row % A}, {P.indices[bad[0]]}] is {P.data[bad[0]]:g}; "
            "use finite probabilities, none negative"
        )
    if not P.has_canonical_format:
        raise ValueError(f"P lists {_duplicate(P, A)}; add duplicates up, one entry per next state")
    feasible = np.isfinite(R).ravel()
    sums = row_sums(P)
    extra = np.flatnonzero(~feasible & (np.diff(P.indptr) > 0))
    if extra.size:
        s, a = divmod(int(extra[0]), A)
        raise ValueError(
            f"P[{s}, {a}] has entries but R[{s}, {a}] is -inf; leave the row of a forbidden "
            "action empty, or give it a finite reward"
        )
    off = np.flatnonzero(feasible & (np.abs(sums - 1.0) > ROW_SUM_TOLERANCE))
    if off.size:
        s, a = divmod(int(off[0]), A)
        raise ValueError(
            f"P[{s}, {a}] sums to {sums[off[0]]:.9g}; "
            "divide the row by its sum, in float64, or send what is missing to an absorbing state "
            "(one that leads to itself and pays nothing)"
        )


def row_sums(P: sp.csr_array) -> Array:
    """Sum of every row of P."""
    sums: Array = P @ np.ones(P.shape[1])
    return sums


def _duplicate(P: sp.csr_array, A: int) -> str:
    rows = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
    order = np.lexsort((P.indices, rows))
    same = (np.diff(rows[order]) == 0) & (np.diff(P.indices[order]) == 0)
    first = order[np.flatnonzero(same)[0]]
    return f"next state {P.indices[first]} twice in P[{rows[first] // A}, {rows[first] % A}]"
