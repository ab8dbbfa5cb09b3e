"""Errors of an inexact augmented Lagrangian step, and what they do (paper, section 5.1).

    ε_L = L_μ(V, h, x') − inf_{V, h ≥ 0} L_μ(V, h, x')        how far (V, h) is from the minimum
    ε_x = ‖x − Z_μ(V, h, x')‖²_w                              how far x is from Z
    x̂  = T x' = Z at the exact minimiser                      ‖u‖²_w = Σ w u²

Lemma 1: T is the proximal operator of (D), whose solution at x' maximises over the dual constraints

    Σ r w x − 1/(2μ) ‖x − x'‖²_w,         of value  L_μ(V̂, ĥ, x') − 1/(2μ) ‖x'‖²_w.

Lemma 2: L_μ is quadratic and x̂ satisfies the flow constraint, so that for every V and h ≥ 0

    ε_L = Σ w x̂ h + 1/(2μ) ‖Z − x̂‖²_w,
    ‖x − x̂‖²_w ≤ (√ε_x + √(2μ ε_L))² ≤ 2ε_x + 4μ ε_L.

The first line is ours and shorter than the paper's proof, which gets ε_L ≥ 1/(2μ) ‖Z − x̂‖²_w and
loses a square on the way: its last sum is 1/(2μ) Σ w (κ − x')², not Σ w (κ − x').

Theorem 1: an iteration whose distances ‖xᵏ⁺¹ − T xᵏ‖_w have a finite sum converges to a solution of
(D). By Lemma 2 that asks for Σ √ε_L < ∞ and Σ √ε_x < ∞. The paper asks for finite sums of ε_L and
ε_x themselves, which is less, and not enough where (D) has several solutions.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scal.mdp.alm import Step, alm_step
from scal.mdp.model import FiniteMDP
from scal.mdp.policies import check_weights
from scal.mdp.types import Array
from scal.objective import closed_slack, z

RESTARTS = 20


class Iterate(NamedTuple):
    """The three unknowns on all states and actions."""

    V: Array
    h: Array
    x: Array


class Errors(NamedTuple):
    """One inexact step x' → (V, h, x), measured."""

    eps_L: float
    """ε_L"""
    eps_x: float
    """ε_x"""
    distance: float
    """‖x − x̂‖²_w"""
    bound: float
    """2ε_x + 4μ ε_L"""
    sharp_bound: float
    """(√ε_x + √(2μ ε_L))²"""
    exact: Array
    """x̂"""


class ProximalGap(NamedTuple):
    """By how much a point misses Lemma 1; all zero at the proximal point and nowhere else."""

    stationarity: float
    """max |x − x' − μ (h + r + γPV − V)|"""
    flow: float
    """max |Σ_a wx − γΣPwx − ρ₀|"""
    complementarity: float
    """max |x h|"""
    sign: float
    """max [−x]₊, [−h]₊"""
    value: float
    """Σ r w x − 1/(2μ) ‖x − x'‖²_w less L_μ − 1/(2μ) ‖x'‖²_w, relative to their largest term"""


def squared_norm(w: Array, u: Array) -> float:
    """‖u‖²_w = Σ w u², over pairs or, with the weights of states, over states."""
    return float((w * u**2).sum())


def multiplier_after(mdp: FiniteMDP, V: Array, h: Array, x: Array, mu: float) -> Array:
    """Z_μ(V, h, x), 0 where a state does not have the action."""
    Z, pairs = np.zeros(mdp.R.shape), mdp.feasible
    value = np.repeat(V, pairs.sum(axis=1))
    Z[pairs] = z(mu, x[pairs], h[pairs], mdp.backup(V)[pairs], value)
    return Z


def lagrangian(mdp: FiniteMDP, V: Array, h: Array, x: Array, mu: float, w: Array) -> float:
    """L_μ(V, h, x) = Σ ρ₀V + 1/(2μ) ‖Z‖²_w."""
    return mdp.objective(V) + squared_norm(w, multiplier_after(mdp, V, h, x, mu)) / (2.0 * mu)


def proximal_step(mdp: FiniteMDP, x: Array, mu: float, w: ArrayLike | None = None) -> Step:
    """V̂, ĥ = argmin L_μ(·, ·, x) and x̂ = T x, to rounding."""
    weights, V = check_weights(mdp, w), None
    for _ in range(RESTARTS):
        step = alm_step(mdp, x, mu, weights, V)
        if step.converged:
            return step
        V = step.V
    raise RuntimeError(f"no proximal point was found for mu = {mu:g}; choose a smaller mu")


def residual(mdp: FiniteMDP, x: Array, mu: float, w: ArrayLike | None = None) -> float:
    """‖x − T x‖²_w, zero at the solutions of (D) and nowhere else.

    >>> mdp = FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, 2.0]], gamma=0.5)
    >>> round(residual(mdp, np.array([[0.0, 4.0]]), mu=1.0), 12)
    0.0
    """
    return squared_norm(check_weights(mdp, w), x - proximal_step(mdp, x, mu, w).x)


def measure(
    mdp: FiniteMDP, old: Array, new: Iterate, mu: float, w: ArrayLike | None = None
) -> Errors:
    """ε_L, ε_x and both sides of Lemma 2 for the step from x' = `old`; h ≥ 0 is needed."""
    weights = check_weights(mdp, w)
    exact = proximal_step(mdp, old, mu, w)
    Z, used = multiplier_after(mdp, new.V, new.h, old, mu), exact.x > 0.0
    lost = float((weights * exact.x)[used] @ new.h[used])
    eps_L = lost + squared_norm(weights, Z - exact.x) / (2.0 * mu)
    eps_x = squared_norm(weights, new.x - Z)
    return Errors(
        eps_L=eps_L,
        eps_x=eps_x,
        distance=squared_norm(weights, new.x - exact.x),
        bound=2.0 * eps_x + 4.0 * mu * eps_L,
        sharp_bound=(eps_x**0.5 + (2.0 * mu * eps_L) ** 0.5) ** 2,
        exact=exact.x,
    )


def proximal_gap(
    mdp: FiniteMDP, old: Array, new: Iterate, mu: float, w: ArrayLike | None = None
) -> ProximalGap:
    """Lemma 1's optimality conditions and values at (V, h, x), for x' = `old`."""
    weights, pairs = check_weights(mdp, w), mdp.feasible
    V, h, x = new
    y = weights * x
    used = np.nonzero(pairs)
    reward, L = float((mdp.R[pairs] * y[pairs]).sum()), lagrangian(mdp, V, h, old, mu, weights)
    moved, before = (squared_norm(weights, u) / (2.0 * mu) for u in (x - old, old))
    return ProximalGap(
        stationarity=float(np.abs(x - multiplier_after(mdp, V, h, old, mu))[pairs].max()),
        flow=float(np.abs(mdp.flow(used, y[used]) - mdp.rho0).max()),
        complementarity=float(np.abs(x[pairs] * h[pairs]).max()),
        sign=float(max(-x[pairs].min(), -h[pairs].min(), 0.0)),
        value=abs(reward - moved - L + before) / max(1.0, abs(reward), moved, abs(L), before),
    )


def nearest_solution(mdp: FiniteMDP, x: Array, w: ArrayLike | None = None) -> Array:
    """The solution of (D) that is nearest to x: T x for a μ so large that T moves it no more."""
    weights, mu = check_weights(mdp, w), 1.0
    for _ in range(12):
        near = proximal_step(mdp, x, mu, w).x
        again = proximal_step(mdp, near, mu, w).x
        if squared_norm(weights, near - again) <= 1e-18 * (1.0 + squared_norm(weights, near)):
            return near
        mu *= 10.0
    raise RuntimeError("(D) was not solved by a proximal step of any size")


Disturb = Callable[[int, Array, Step], Iterate]
"""(k, x', exact step from x') → the inexact one that is taken in its place."""


class Run(NamedTuple):
    """Inexact ALM: errors of every step, and where the multipliers went."""

    errors: list[Errors]
    x: list[Array]
    """x⁰, x¹, …"""


def inexact_alm(
    mdp: FiniteMDP,
    mu: float,
    disturb: Disturb,
    steps: int,
    w: ArrayLike | None = None,
    start: Array | None = None,
) -> Run:
    """x ← an inexact T x, `steps` times: Theorem 1's iteration."""
    x = np.zeros(mdp.R.shape) if start is None else start
    run = Run([], [x])
    for k in range(1, steps + 1):
        new = disturb(k, x, proximal_step(mdp, x, mu, w))
        run.errors.append(measure(mdp, x, new, mu, w))
        x = new.x
        run.x.append(x)
    return run


Slack = Literal["closed", "noisy"]


def disturbance(
    mdp: FiniteMDP,
    old: Array,
    step: Step,
    mu: float,
    size: float,
    rng: np.random.Generator,
    slack: Slack = "closed",
) -> Iterate:
    """An inexact step: normal noise in V that moves Z by about `size`, and in x = Z + noise.

    h is the best one for that V, or the exact step's with noise that leaves it ≥ 0.
    """
    pairs = mdp.feasible
    V = step.V + size / mu * rng.normal(size=step.V.shape)
    if slack == "closed":
        h = closed_slack(mu, old, mdp.backup(V), V[:, None])
    else:
        h = step.h + size / mu * np.abs(rng.normal(size=pairs.shape))
    Z = multiplier_after(mdp, V, h, old, mu)
    return Iterate(V, h, np.where(pairs, Z + size * rng.normal(size=pairs.shape), 0.0))
