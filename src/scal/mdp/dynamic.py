"""Dynamic programming: the fixed point of the Bellman operator (paper, section 2.1)

    (TV)(s) = max_a r(s, a) + γ E[V(s')]

All four methods are one loop: back up V, take the greedy policy π, evaluate π with some effort.

    value iteration              no evaluation: V ← TV
    modified policy iteration    a fixed number of sweeps V ← T_π V
    policy iteration             V ← V_π to rounding
    adaptive (`auto`)            V_π to a small share of the error that is left

The loop stops on bounds, not on a small step: with c = TV − V and π greedy,

    TV + γ min c / (1−γ)  ≤  V_π  ≤  V*  ≤  TV + γ max c / (1−γ).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scal.mdp import linear
from scal.mdp.model import FiniteMDP
from scal.mdp.types import Actions, Array

Evaluate = Callable[[Actions, Array, float], Array]
"""(π, V, width of the bounds around V) → a better approximation of V_π."""


SWEEPS = 40
"""Most sweeps that a policy gets before it has come up twice."""


class Iteration(NamedTuple):
    """One line of a solver's history."""

    objective: float
    """ρ₀ᵀV"""
    primal_residual: float
    """max |TV − V|, how far V is from the fixed point."""
    dual_residual: float
    """How far the multipliers are from satisfying the flow constraint; 0 for methods without."""
    bound: float
    """Proven bound on max |V − V*|."""


class Outcome(NamedTuple):
    """What a method hands to `solve`."""

    V: Array
    policy: Actions
    history: list[Iteration]
    iterations: int | None = None
    """Where one entry of the history is not one iteration."""


def value_iteration(mdp: FiniteMDP, tolerance: float, max_iterations: int = 1_000_000) -> Outcome:
    """V ← TV, recentred between its bounds."""
    return _iterate(mdp, tolerance, max_iterations, lambda policy, V, width: V)


def modified_policy_iteration(
    mdp: FiniteMDP, tolerance: float, max_iterations: int = 1_000_000, sweeps: int = 20
) -> Outcome:
    """`sweeps` applications of T_π after each backup."""

    def evaluate(policy: Actions, V: Array, width: float) -> Array:
        P, r = mdp.under(policy)
        for _ in range(sweeps):
            V = r + mdp.gamma * (P @ V)
        return V

    return _iterate(mdp, tolerance, max_iterations, evaluate)


def policy_iteration(mdp: FiniteMDP, tolerance: float, max_iterations: int = 10_000) -> Outcome:
    """Howard's method: each greedy policy is evaluated to rounding."""
    return _iterate(
        mdp,
        tolerance,
        max_iterations,
        lambda policy, V, width: linear.values(*mdp.under(policy), mdp.gamma, V),
    )


def adaptive_policy_iteration(
    mdp: FiniteMDP, tolerance: float, max_iterations: int = 10_000, start: Array | None = None
) -> Outcome:
    """Each greedy policy is evaluated as well as it deserves; the default at every size.

    A policy that has just come up gets sweeps only. One that stays gets all it takes.
    """
    last: list[Actions] = []

    def evaluate(policy: Actions, V: Array, width: float) -> Array:
        stays = bool(last) and np.array_equal(policy, last[0])
        last[:] = [policy]
        error = max(1e-4 * width, 0.1 * tolerance)
        P, r = mdp.under(policy)
        return linear.values(P, r, mdp.gamma, V, error, sweeps=None if stays else SWEEPS)

    return _iterate(mdp, tolerance, max_iterations, evaluate, start)


def _iterate(
    mdp: FiniteMDP,
    tolerance: float,
    max_iterations: int,
    evaluate: Evaluate,
    start: Array | None = None,
) -> Outcome:
    V = np.zeros(mdp.n_states) if start is None else start
    history: list[Iteration] = []
    for _ in range(max_iterations):
        policy, TV = mdp.greedy(V)
        change = TV - V
        low, high = float(change.min()), float(change.max())
        width = mdp.gamma * (high - low) / (1.0 - mdp.gamma)
        V = TV + 0.5 * mdp.gamma * (high + low) / (1.0 - mdp.gamma)
        history.append(Iteration(mdp.objective(V), max(high, -low), 0.0, 0.5 * width))
        margin = 2.0 * mdp.rounding(V) / (1.0 - mdp.gamma)
        if width <= 0.9 * (tolerance - margin) or _at_rounding(history, margin):
            break
        V = evaluate(policy, V, width)
    return Outcome(V, policy, history)


def _at_rounding(history: list[Iteration], margin: float) -> bool:
    """Whether the bounds have come down to rounding errors and no longer close."""
    bounds = [line.bound for line in history[-3:]]
    return len(bounds) == 3 and bounds[0] <= bounds[-1] <= 64.0 * margin
