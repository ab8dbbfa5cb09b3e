"""Where the SCAL update comes to rest, on a known MDP (paper, section 4.2; docs/deviations.md).

In the mean over the buffer w, with targets that have caught up, the update follows

    g(s)     = (1 − γf) ρ(s) − Σ_a w F + γf Σ P(s|·) w x       F = x + κ(Z − x)
    q(s, a)  = w F
    m(s, a)  = w (Z − κ(Z − x)) / μ    penalty,  or  w (x − [Z]₊)    regression

with κ = μβ, ρ = (1 − s0_mix) ρ₀ + s0_mix Σ_a w and f the option `flow`, the share of γ∇V(s') that
is kept. It rests where g = 0, m = 0 and q ≥ 0 = q·h:

    regression   F = x,                     δ ≤ 0 = x·δ            δ = r + γPV − V
    penalty      F = x (2κ − 1)/(κ − 1),    x = μ(κ − 1) [δ]₊
    both         Σ_a w F − γf Σ P w x = (1 − γf) ρ

So a state that neither ρ nor the kept flow reaches has x = 0, and its V may be anything that is
large enough: nothing pushes it down. The penalty step leaves δ = x/(μ(κ − 1)) > 0 where the
regression step has δ = 0: its V is low, as if the reward were r − x/(μ(κ − 1)).

A sweep sets V(s) to the level at which Σ_a w F is what ρ and the flow bring into s. Without flow
that is a γ-contraction, as the level is monotone in Q and moves with a constant.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scal.mdp.model import FiniteMDP
from scal.mdp.policies import check_weights
from scal.mdp.types import Array
from scal.objective import closed_slack
from scal.theory.errors import Iterate, multiplier_after


@dataclass(frozen=True)
class Update:
    """The options of the learner that move its fixed point."""

    mu: float
    beta: float
    flow: float = 0.0
    """Share of γ∇V(s') that the linear term keeps."""
    s0_mix: float = 0.0
    """Share of replayed states among the initial states."""
    theta_step: Literal["penalty", "regression"] = "penalty"

    def __post_init__(self) -> None:
        if self.theta_step == "penalty" and self.kappa <= 1.0:
            raise ValueError(
                f"mu*beta is {self.kappa:g} with theta_step='penalty', so that x would flip sign; "
                "choose beta > 1/mu, or theta_step='regression'"
            )

    @property
    def kappa(self) -> float:
        """κ = μβ."""
        return self.mu * self.beta

    @property
    def amplification(self) -> float:
        """F/x at the fixed point."""
        k = self.kappa
        return 1.0 if self.theta_step == "regression" else (2.0 * k - 1.0) / (k - 1.0)


class Directions(NamedTuple):
    """The mean of the update's gradients: g of V, q of h, m of x."""

    g: Array
    q: Array
    m: Array


def starts(mdp: FiniteMDP, update: Update, w: Array) -> Array:
    """(1 − γf) ρ, what the initial states bring in."""
    mixed = (1.0 - update.s0_mix) * mdp.rho0 + update.s0_mix * (w * mdp.feasible).sum(axis=1)
    return (1.0 - mdp.gamma * update.flow) * mixed


def directions(
    mdp: FiniteMDP, point: Iterate, update: Update, w: ArrayLike | None = None
) -> Directions:
    """g, q and m at (V, h, x), with targets equal to V and x."""
    weights = np.where(mdp.feasible, check_weights(mdp, w), 0.0)
    k, x = update.kappa, point.x
    Z = multiplier_after(mdp, point.V, point.h, x, update.mu)
    F = x + k * (Z - x)
    g = starts(mdp, update, weights) + _inflow(mdp, update, weights * x) - (weights * F).sum(axis=1)
    if update.theta_step == "regression":
        return Directions(g, weights * F, weights * (x - np.maximum(Z, 0.0)))
    return Directions(g, weights * F, weights * (Z - k * (Z - x)) / update.mu)


def fixed_point(
    mdp: FiniteMDP,
    update: Update,
    w: ArrayLike | None = None,
    ceiling: Array | None = None,
    tolerance: float = 1e-12,
    sweeps: int = 200_000,
) -> Iterate:
    """V, h, x at which the update rests; the lowest such V, or one that starts from `ceiling`.

    The ceiling counts in states that nothing pushes down: they keep it if it is large enough.
    """
    weights = np.where(mdp.feasible, check_weights(mdp, w), 0.0)
    bring = starts(mdp, update, weights)
    floor = np.full(mdp.n_states, -np.inf) if ceiling is None else ceiling
    V, arriving = np.zeros(mdp.n_states), bring
    for _ in range(sweeps):
        Q = mdp.backup(V)
        level, x = _fill(Q, arriving, update, weights)
        level = np.where(arriving > 0.0, level, np.maximum(level, floor))
        following = bring + _inflow(mdp, update, weights * x)
        moved = max(np.abs(level - V).max(), np.abs(following - arriving).max())
        V, arriving = level, following
        if moved <= tolerance * (1.0 - mdp.gamma) * (1.0 + np.abs(V).max()):
            return Iterate(V, closed_slack(update.mu, x, mdp.backup(V), V[:, None]), x)
    raise RuntimeError(f"no fixed point was found in {sweeps:,} sweeps; allow more of them")


def _fill(Q: Array, arriving: Array, update: Update, w: Array) -> tuple[Array, Array]:
    """The level V at which Σ_a w F(Q − V) is what arrives in each state, and x there."""
    if update.theta_step == "regression":
        best, rows = Q.argmax(axis=1), np.arange(len(Q))
        x = np.zeros(Q.shape)
        x[rows, best] = arriving / w[rows, best]
        return Q[rows, best], x
    slope = update.mu * (update.kappa - 1.0)
    order = np.argsort(-Q, axis=1)
    ranked = np.take_along_axis(Q, order, axis=1)
    weight = np.take_along_axis(w, order, axis=1)
    total = np.cumsum(weight, axis=1)
    earned = np.cumsum(weight * np.where(weight > 0.0, ranked, 0.0), axis=1)
    needed = arriving / (update.amplification * slope)
    # Σ_a w [Q − V]₊ ≥ Σ_A w (Q − V) for every set A of actions, with equality for the active one
    V = ((earned - needed[:, None]) / total).max(axis=1)
    return V, slope * np.maximum(Q - V[:, None], 0.0)


def _inflow(mdp: FiniteMDP, update: Update, y: Array) -> Array:
    """γf Σ P(s|·) y."""
    arriving: Array = mdp.P.T @ y.ravel()
    return mdp.gamma * update.flow * arriving
