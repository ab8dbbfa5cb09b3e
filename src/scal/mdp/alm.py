"""Algorithm 1: the classic augmented Lagrangian method (paper, section 2.2).

    L_μ(V, h, x) = Σ ρ V + 1/(2μ) Σ w Z²,          Z = x + μ (h + r + γPV − V)

    V, h  ←  argmin_{V, h ≥ 0}  L_μ(V, h, x)
    x     ←  Z

The minimiser over h is known, h = [V − r − γPV − x/μ]₊, and leaves a convex, piecewise quadratic
function of V with Z = [x + μ(r + γPV − V)]₊:

    ∇L = ρ − (E − γP)ᵀ(wZ)            ∂²L = μ (E − γP)ᵀ diag(w·1{Z > 0}) (E − γP)

A semismooth Newton method minimises it: the active pairs Z > 0 choose the Hessian, conjugate
gradients solve with it, an exact line search takes the step. Because the outer iteration is the
proximal point method on a linear program, it ends after finitely many steps; a larger μ means
fewer of them.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg, splu

from scal.mdp import linear
from scal.mdp.dynamic import Iteration, Outcome, adaptive_policy_iteration
from scal.mdp.linear import DENSE_STATES, UNIT
from scal.mdp.model import FiniteMDP
from scal.mdp.policies import check_weights
from scal.mdp.programs import relevance
from scal.mdp.types import Array
from scal.objective import closed_slack, z

NEWTON_STEPS = 50
MU_GROWTH = 10.0


class Step(NamedTuple):
    """One outer iteration: the minimiser of L_μ(·, ·, x) and the next multipliers."""

    V: Array
    h: Array
    x: Array
    converged: bool
    """Whether Newton's method came down to rounding."""


def augmented_lagrangian_method(
    mdp: FiniteMDP,
    tolerance: float,
    max_iterations: int = 200,
    w: ArrayLike | None = None,
    mu: float | None = None,
) -> Outcome:
    """Algorithm 1 from a lower bound V ≤ V* and x = 0.

    μ grows when an iteration gains little, and shrinks when Newton's method labours.
    """
    weights, rho = check_weights(mdp, w), relevance(mdp)
    V, x = _lower_start(mdp), np.zeros(mdp.R.shape)
    largest_mu = 1e-2 * float(rho.min()) / max(_rounding(mdp, V, 1.0, weights), 1e-290)
    mu = min(_initial_mu(mdp, weights), largest_mu) if mu is None else mu
    history: list[Iteration] = []
    for _ in range(max_iterations):
        step = alm_step(mdp, x, mu, weights, V, rho)
        V = step.V
        if not step.converged:
            mu /= MU_GROWTH**2
            continue
        x = step.x
        history.append(_measure(mdp, V, weights * x, rho))
        bounds = [line.bound for line in history[-2:]]
        if 2.0 * bounds[-1] <= 0.9 * tolerance:
            break
        if mu >= largest_mu and len(bounds) == 2 and bounds[1] > 0.99 * bounds[0]:
            break
        if bounds[-1] > 0.1 * bounds[0]:
            mu = max(mu, min(mu * MU_GROWTH, largest_mu))
    return _cross_over(mdp, tolerance, V, weights * x, history)


def _cross_over(
    mdp: FiniteMDP, tolerance: float, V: Array, y: Array, history: list[Iteration]
) -> Outcome:
    """The vertex that x points to: pairs with x > 0 hold with equality, and determine V.

    Solving these equations removes the rounding errors of size μ·|V|·10⁻¹⁶ in Z. Policy iteration
    from there checks the vertex, and moves on where the method had to stop early.
    """
    policy = np.where(mdp.feasible, y, -1.0).argmax(axis=1)
    vertex = linear.values(*mdp.under(policy), mdp.gamma, V)
    finish = adaptive_policy_iteration(mdp, tolerance, start=vertex)
    confirmed = len(finish.history) == 1
    return Outcome(finish.V, policy if confirmed else finish.policy, history + finish.history)


def _initial_mu(mdp: FiniteMDP, w: Array) -> float:
    """μ at which the first step violates (P) by about 10⁻⁵ of the spread of the rewards."""
    r = mdp.R[mdp.feasible]
    if mdp.largest_reward == 0.0:
        return 1.0
    multiplier = 1.0 / ((1.0 - mdp.gamma) * mdp.n_states * w[mdp.feasible].mean())
    return float(1e5 * multiplier / max(r.max() - r.min(), 1e-9 * mdp.largest_reward, 1e-300))


def _lower_start(mdp: FiniteMDP, sweeps: int = 10) -> Array:
    """A few sweeps of value iteration, lowered until TV ≥ V: every state has an active pair."""
    V = TV = np.zeros(mdp.n_states)
    for _ in range(sweeps):
        V, TV = TV, mdp.greedy(TV)[1]
    return V + (TV - V).min() / (1.0 - mdp.gamma)


def alm_step(
    mdp: FiniteMDP,
    x: Array,
    mu: float,
    w: Array,
    V: Array | None = None,
    rho: Array | None = None,
) -> Step:
    """Minimise L_μ(·, ·, x) from V by Newton's method, then x ← Z."""
    rho = mdp.rho0 if rho is None else rho
    V = np.zeros(mdp.n_states) if V is None else V
    shifted = z(mu, x, 0.0, mdp.backup(V), V[:, None])
    converged = False
    for _ in range(NEWTON_STEPS):
        active = shifted > 0.0
        gradient = _gradient(mdp, shifted, active, w, rho)
        goal = 1e-10 * rho.min() + _rounding(mdp, V, mu, w)
        converged = bool(np.abs(gradient).max() <= goal)
        if converged:
            break
        direction = _newton_direction(mdp, shifted, active, mu, w, rho)
        if (gradient * direction).sum() >= 0.0:
            direction = -gradient / (mu * w.mean())
        slope = mu * (mdp.lookahead(direction) - direction[:, None])
        t = _line_search(shifted, slope, w / mu, float((rho * direction).sum()))
        if t == 0.0:
            break
        V = V + t * direction
        shifted = shifted + t * slope
    target = mdp.backup(V)
    h = closed_slack(mu, x, target, V[:, None])
    return Step(V, h, np.maximum(z(mu, x, 0.0, target, V[:, None]), 0.0), converged)


def _rounding(mdp: FiniteMDP, V: Array, mu: float, w: Array) -> float:
    """Size of the rounding errors in a component of ∇L: μw times those of r + γPV − V."""
    return float(32.0 * UNIT * mu * w.max() * (mdp.largest_reward + 3.0 * np.abs(V).max()))


def _gradient(mdp: FiniteMDP, shifted: Array, pairs: Any, w: Array, rho: Array) -> Array:
    """ρ − (E − γP)ᵀ(w·shifted) over the given pairs: ∇L if these are the active ones."""
    used = np.nonzero(pairs)
    return rho - mdp.flow(used, w[used] * shifted[used])


def _newton_direction(
    mdp: FiniteMDP, shifted: Array, active: Any, mu: float, w: Array, rho: Array
) -> Array:
    """Solve H d = −∇L with H = Aᵀ diag(μw) A, A the active rows of E − γP.

    A state without an active pair would make H singular; its nearest pair counts as active.
    """
    lonely = np.flatnonzero(~active.any(axis=1))
    if lonely.size:
        active = active.copy()
        active[lonely, shifted[lonely].argmax(axis=1)] = True
    gradient = _gradient(mdp, shifted, active, w, rho)
    s, a = np.nonzero(active)
    S, L, weight = mdp.n_states, len(s), mu * w[s, a]
    E = sp.csr_array((np.ones(L), s, np.arange(L + 1)), shape=(L, S))
    A = sp.csr_array(E - mdp.gamma * mdp.P[s * mdp.n_actions + a])
    At = sp.csr_array(A.T)
    if S <= DENSE_STATES:
        H = At @ (weight[:, None] * A.toarray())
        return cho_solve(cho_factor(H + 1e-15 * np.trace(H) * np.eye(S)), -gradient)

    def multiply(d: Array) -> Array:
        return At @ (weight * (A @ d))

    diagonal = At.power(2) @ weight
    energy = multiply(np.ones(S)).sum()
    shape = (S, S)
    hessian = LinearOperator(shape, matvec=multiply, dtype=np.float64)
    # Jacobi, and a correction of the constants, the one slow direction of a chain that mixes
    cheap = LinearOperator(shape, lambda g: g / diagonal + g.sum() / energy, dtype=np.float64)
    direction, unfinished = cg(hessian, -gradient, rtol=1e-3, maxiter=200, M=cheap)
    if unfinished:
        direction = splu(sp.csc_array(At @ (sp.diags_array(weight) @ A))).solve(-gradient)
    return direction


def _line_search(shifted: Array, slope: Array, w: Array, linear: float) -> float:
    """t with |φ'(t)| ≤ |φ'(0)| / 10 for convex φ(t) = linear·t + ½ Σ w [shifted + t·slope]₊²."""

    def derivative(t: float) -> float:
        return linear + float((w * slope * np.maximum(shifted + t * slope, 0.0)).sum())

    start = derivative(0.0)
    if start >= 0.0:
        return 0.0
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(60):
        at = derivative(t)
        if abs(at) <= -0.1 * start:
            return t
        low, high = (t, high) if at < 0.0 else (low, t)
        t = 2.0 * t if high == np.inf else 0.5 * (low + high)
    return low


def _measure(mdp: FiniteMDP, V: Array, y: Array, rho: Array) -> Iteration:
    used = np.nonzero(y)
    change = mdp.greedy(V)[1] - V
    width = float(change.max() - change.min()) / (1.0 - mdp.gamma)
    return Iteration(
        objective=mdp.objective(V),
        primal_residual=float(np.abs(change).max()),
        dual_residual=float(np.abs(mdp.flow(used, y[used]) - rho).max()),
        bound=max(0.5 * width, float(np.abs(change).max()) / (1.0 - mdp.gamma)),
    )
