"""Every common way to write an MDP down, brought to the canonical one: P (S·A, S) and R (S, A)."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from scal.mdp import validate
from scal.mdp.types import Array

Rows = tuple[sp.csr_array, Array]
Outcomes = Mapping[int, float] | Iterable[tuple[int, float]]


def csr(name: str, matrix: Any) -> sp.csr_array:
    """A sparse or dense matrix as CSR with sorted indices; duplicates stay and are found later."""
    if not sp.issparse(matrix):
        return sp.csr_array(validate.real_array(name, matrix, [2]))
    if not np.issubdtype(matrix.dtype, np.number) or np.issubdtype(
        matrix.dtype, np.complexfloating
    ):
        raise ValueError(f"{name} is not a matrix of real numbers; pass floats")
    rows = sp.csr_array(matrix)
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a sound sparse matrix ({error}); build it anew") from None
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    return rows if rows.dtype == np.float64 else rows.astype(np.float64)


def from_dense(P: ArrayLike, R: ArrayLike, order: str, feasible: ArrayLike | None) -> Rows:
    """From P[s, a, s'] or P[a, s, s']."""
    if order not in ("sas", "ass"):
        raise ValueError(f"order is {order!r}; use 'sas' for P[s, a, s'] or 'ass' for P[a, s, s']")
    cube = validate.real_array("P", P, [3])
    rewards = validate.real_array("R", R, [1, 2, 3])
    if order == "ass":
        cube = cube.transpose(1, 0, 2)
        rewards = rewards.transpose(1, 0, 2) if rewards.ndim == 3 else rewards
    S, A, successors = cube.shape
    if successors != S or cube.size == 0:
        raise ValueError(
            f"P has {S} states and {successors} next states with order={order!r}; "
            "pass a non-empty array with equal state dimensions, or the other order"
        )
    if rewards.ndim == 3:
        if rewards.shape != cube.shape:
            raise ValueError(
                f"R has shape {rewards.shape} where P has {cube.shape}; make them equal"
            )
        forbidden = np.isneginf(rewards).all(axis=2)
        possible = np.where(cube > 0, rewards, 0.0)  # whatever stands where nothing leads
        rewards = np.where(forbidden, -np.inf, np.einsum("ijk,ijk->ij", cube, possible))
    return _masked(sp.csr_array(cube.reshape(S * A, S)), _per_pair(rewards, S, A), feasible)


def from_sparse(P: Sequence[Any], R: ArrayLike, feasible: ArrayLike | None) -> Rows:
    """From one sparse matrix per action."""
    if not isinstance(P, list | tuple):
        raise ValueError(f"P is a {type(P).__name__}; pass a list with one matrix per action")
    if len(P) == 0:
        raise ValueError("P is an empty list; pass one sparse matrix per action")
    matrices = [csr(f"P[{a}]", matrix) for a, matrix in enumerate(P)]
    A, S = len(matrices), matrices[0].shape[0]
    for a, matrix in enumerate(matrices):
        if matrix.shape != (S, S):
            raise ValueError(f"P[{a}] has shape {matrix.shape}; make every matrix {(S, S)}")
    by_action = sp.csr_array(sp.vstack(matrices, format="csr"))
    rows = by_action[np.arange(S * A).reshape(A, S).T.ravel()]
    return _masked(rows, _per_pair(validate.real_array("R", R, [1, 2]), S, A), feasible)


def from_pairs(states: ArrayLike, actions: ArrayLike, P: Any, R: ArrayLike) -> Rows:
    """From a list of feasible pairs."""
    P = csr("P", P)
    L, S = P.shape
    if L == 0:
        raise ValueError("P has no rows; an MDP needs at least one state-action pair")
    rewards = validate.real_array("R", R, [1])
    if rewards.size != L:
        raise ValueError(f"R has {rewards.size} entries where P has {L} rows; make them equal")
    s = validate.index_array("states", states, L, S)
    a = validate.index_array("actions", actions, L, np.iinfo(np.int32).max)
    A = int(a.max()) + 1
    pairs = s * A + a
    order = np.argsort(pairs, kind="stable")
    twice = np.flatnonzero(np.diff(pairs[order]) == 0)
    if twice.size:
        i, j = order[twice[0]], order[twice[0] + 1]
        raise ValueError(
            f"pair (state {s[i]}, action {a[i]}) is given at {i} and at {j}; drop one of them"
        )
    table = np.full((S, A), -np.inf)
    table[s, a] = rewards
    counts = np.zeros(S * A, dtype=np.int64)
    counts[pairs] = np.diff(P.indptr)
    ordered = P[order]
    return _rows(ordered.data, ordered.indices, counts, S), table


def from_functions(
    n_states: int,
    n_actions: int,
    transition: Callable[[int, int], Outcomes | None],
    reward: Callable[[int, int], float],
) -> Rows:
    """From functions of a state and an action."""
    for name, number in (("n_states", n_states), ("n_actions", n_actions)):
        if not isinstance(number, int | np.integer) or number < 1:
            raise ValueError(f"{name} is {number!r}; an MDP has at least one state and one action")
    R = np.full((n_states, n_actions), -np.inf)
    data: list[float] = []
    indices: list[int] = []
    counts: list[int] = []
    for s in range(n_states):
        for a in range(n_actions):
            outcomes = transition(s, a)
            before = len(indices)
            if outcomes is not None:
                R[s, a] = _number(reward(s, a), f"reward({s}, {a})")
                pairs = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
                for next_state, probability in _checked(pairs, s, a, n_states):
                    indices.append(next_state)
                    data.append(probability)
            counts.append(len(indices) - before)
    return _rows(np.array(data), np.array(indices, dtype=np.int64), np.array(counts), n_states), R


def from_toy_text(env: Any) -> tuple[sp.csr_array, Array, Array | None]:
    """From the table env.unwrapped.P[s][a] = [(p, s', r, terminated), …]; with ρ₀ if it has one."""
    table = getattr(getattr(env, "unwrapped", None), "P", None)
    if not isinstance(table, Mapping) or not table:
        raise ValueError(
            f"{env} has no transition table env.unwrapped.P; "
            "use a toy-text environment such as FrozenLake-v1 or CliffWalking-v1"
        )
    S, A = len(table), len(table[0])
    entries = [(s, a, *entry) for s in range(S) for a in range(A) for entry in table[s][a]]
    moving = {s for s, _, p, s2, r, _ in entries if p > 0 and (s2 != s or r != 0)}
    extra = int(any(end and p > 0 and s2 in moving for _, _, p, s2, _, end in entries))

    outcomes: list[list[dict[int, float]]] = [[{} for _ in range(A)] for _ in range(S)]
    rewards = np.zeros((S + extra, A))
    for s, a, p, s2, r, end in entries:
        target = S if end and s2 in moving else int(s2)
        outcomes[s][a][target] = outcomes[s][a].get(target, 0.0) + float(p)
        rewards[s, a] += p * r
    if extra:
        outcomes.append([{S: 1.0}] * A)
    P, R = from_functions(S + extra, A, lambda s, a: outcomes[s][a], lambda s, a: rewards[s, a])
    start = getattr(env.unwrapped, "initial_state_distrib", None)
    return P, R, None if start is None else np.append(start, np.zeros(extra))


def _rows(data: Array, indices: Any, counts: Any, n_states: int) -> sp.csr_array:
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((data, indices, indptr), shape=(len(counts), n_states))


def _per_pair(R: Array, S: int, A: int) -> Array:
    if R.ndim == 1:
        R = np.repeat(R[:, None], A, axis=1)
    if R.shape != (S, A):
        raise ValueError(f"R has shape {R.shape} where P needs {(S, A)}; make them agree")
    return R


def _masked(P: sp.csr_array, R: Array, feasible: ArrayLike | None) -> Rows:
    """Empty the rows of infeasible pairs and set their rewards to −inf."""
    if feasible is not None:
        mask = np.asarray(feasible)
        if mask.shape != R.shape or mask.dtype != bool:
            raise ValueError(
                f"feasible has shape {mask.shape} and type {mask.dtype}; "
                f"pass booleans of shape {R.shape}"
            )
        R = np.where(mask, R, -np.inf)
    keep = ~np.isneginf(R).ravel()
    if not keep.all():
        counts = np.diff(P.indptr)
        stay = np.repeat(keep, counts)
        P = _rows(P.data[stay], P.indices[stay], np.where(keep, counts, 0), P.shape[1])
    return P, R


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} gave {value!r}; return a number") from None


def _checked(
    pairs: Iterable[tuple[int, float]], s: int, a: int, n_states: int
) -> Iterable[tuple[int, float]]:
    if not isinstance(pairs, Iterable):
        raise ValueError(
            f"transition({s}, {a}) gave {pairs!r}; return a dict {{s': p}} or pairs (s', p)"
        )
    for pair in pairs:
        try:
            next_state, probability = pair
            index, value = operator.index(next_state), float(probability)
        except (TypeError, ValueError):
            raise ValueError(
                f"transition({s}, {a}) gave {pair!r}; return a dict {{s': p}} or pairs (s', p)"
            ) from None
        if not 0 <= index < n_states:
            raise ValueError(
                f"transition({s}, {a}) leads to state {index}; use states 0 to {n_states - 1}"
            )
        yield index, value
