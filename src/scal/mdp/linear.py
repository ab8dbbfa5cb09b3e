"""The two linear systems of a fixed policy π, with (P_π, r_π) its Markov reward process.

    values       V = r_π + γ P_π V            what π earns from every state
    occupancy    d = ρ₀ + γ P_πᵀ d            discounted visits, Σ d = 1 / (1 − γ)

Each matrix is close to the identity once its one slow direction is known: constants for the
values, the total mass for the occupancy. Fixed-point sweeps that correct this direction converge
at the rate at which the chain mixes, whatever γ. Where it mixes slowly GMRES takes over, and where
that stalls a sparse factorisation.
"""

from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, gmres, splu

from scal.mdp.kernels import RowBlocks
from scal.mdp.types import Array

DENSE_STATES = 300
"""Up to this size one dense factorisation is faster than anything iterative."""

FACTOR_STATES = 5_000
"""Up to this size a sparse factorisation is tried before GMRES."""

UNIT = np.finfo(np.float64).eps / 2


def values(
    P: sp.csr_array,
    r: Array,
    gamma: float,
    start: Array | None = None,
    error: float = 0.0,
    sweeps: int | None = None,
) -> Array:
    """Solve V = r + γPV until the error of V is at most `error` everywhere, or rounding stops it.

    With `sweeps` it stops after so many, wherever it is.

    >>> values(sp.csr_array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.0, 1.0]), 0.5)
    array([1., 2.])
    """
    if len(r) <= DENSE_STATES and error == 0.0:
        return np.linalg.solve(np.eye(len(r)) - gamma * P.toarray(), r)

    def recentre(V: Array, residual: Array) -> None:
        middle = 0.5 * (residual.max() + residual.min())
        V += middle / (1.0 - gamma)
        residual -= middle

    start = np.zeros(len(r)) if start is None else start
    return _solve(P, r, gamma, start, error * (1.0 - gamma), recentre, sweeps)


def occupancy(P: sp.csr_array, rho0: Array, gamma: float, residual: float = 0.0) -> Array:
    """Solve d = ρ₀ + γPᵀd to a residual of at most `residual` everywhere, or to rounding.

    >>> occupancy(sp.csr_array([[0.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0]), 0.5)
    array([1., 1.])
    """
    if len(rho0) <= DENSE_STATES:
        return np.linalg.solve(np.eye(len(rho0)) - gamma * P.toarray().T, rho0)
    mass = rho0.sum()

    def recentre(d: Array, residual: Array) -> None:
        scale = mass / (mass - residual.sum())
        d *= scale
        residual *= scale
        residual += (1.0 - scale) * rho0

    return _solve(P.T, rho0, gamma, rho0 / (1.0 - gamma), residual, recentre)


def _solve(
    M: Any,
    b: Array,
    gamma: float,
    start: Array,
    goal: float,
    recentre: Callable[[Array, Array], None],
    sweeps: int | None = None,
) -> Array:
    """Solve y = b + γMy to a residual of `goal` or to rounding, from cheap steps to strong ones.

    `recentre` moves y along the slow direction and its residual b + γMy − y with it.
    """
    multiply = (RowBlocks(M) if M.format == "csr" else M).__matmul__
    largest = np.abs(b).max()
    stronger = [_factor] if len(b) <= FACTOR_STATES else [_krylov, _factor]
    steps = iter([make(M, gamma) for make in stronger])
    step: Callable[[Array], Array] = lambda residual: residual  # noqa: E731
    patience, enough = 4, 0.5  # a sweep is judged over four, a stronger step by itself
    y, best, sizes = start.copy(), start, [np.inf] * patience
    for iteration in count():
        residual = multiply(y)
        residual *= gamma
        residual += b
        residual -= y
        recentre(y, residual)
        size = float(max(residual.max(), -residual.min()))
        rounding = 16.0 * UNIT * (max(y.max(), -y.min()) + largest)
        if size <= max(goal, rounding) or iteration == sweeps:
            return y
        best = y if size < min(sizes) else best
        sizes.append(size)
        if sweeps is None and not size <= enough * sizes[-1 - patience]:
            following = next(steps, None)
            if following is None or min(sizes) <= 4.0 * rounding:
                return best
            step, patience, enough = following, 1, 0.1
        y = y + step(residual)
    raise AssertionError("unreachable")


def _krylov(M: Any, gamma: float) -> Callable[[Array], Array]:
    """A step that leaves about a thousandth of the residual."""
    operator = LinearOperator(M.shape, matvec=lambda v: v - gamma * (M @ v), dtype=np.float64)

    def step(residual: Array) -> Array:
        correction, _ = gmres(operator, residual, rtol=1e-3, restart=40, maxiter=3)
        return np.asarray(correction, dtype=np.float64)

    return step


def _factor(M: Any, gamma: float) -> Callable[[Array], Array]:
    """A step that leaves rounding only."""

    @cache
    def factor() -> Any:
        return splu(sp.csc_array(sp.eye_array(M.shape[0]) - gamma * M))

    return lambda residual: np.asarray(factor().solve(residual), dtype=np.float64)
