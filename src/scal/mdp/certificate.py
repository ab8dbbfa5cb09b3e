"""Proof of optimality: bounds on ρ₀ᵀV* that hold in exact arithmetic, for any V and any policy.

Weak duality with constant shifts, c(d) = d / (1 − γ):

    upper    V + c·1 satisfies every Bellman inequality for d = max_{s,a} [r + γPV − V],
             hence ρ₀ᵀV* ≤ ρ₀ᵀV + c                            (program P is a minimum)
    lower    v − c·1 ≤ V_π for d = max_s [v − r_π − γP_π v] and any v ≈ V_π,
             hence ρ₀ᵀv − c ≤ ρ₀ᵀV_π ≤ ρ₀ᵀV*                   (a policy is feasible for D)

Floating point enters through sums of n products, |fl(Σ) − Σ| ≤ n u Σ|terms| / (1 − n u), and
through rows of P that miss one by rounding, which turns 1 − γ into 1 − γ·(row sum). The bounds are
widened by both, in rational arithmetic; `margin` is what this costs.
"""

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scal.mdp import linear
from scal.mdp.dynamic import SWEEPS
from scal.mdp.model import FiniteMDP
from scal.mdp.policies import (
    check_mdp,
    check_multipliers,
    check_pairs,
    check_policy,
    check_values,
    check_weights,
    proportional,
)
from scal.mdp.types import Array, Pairs, Policy

UNIT = Fraction(1, 2**53)
"""Relative error of one floating-point operation."""


@dataclass(frozen=True)
class Certificate:
    """What is proven (upper, lower, value_error) and measured (the rest) about V, h, x and π."""

    upper: float
    """ρ₀ᵀV* ≤ upper."""
    lower: float
    """lower ≤ ρ₀ᵀV_π ≤ ρ₀ᵀV*."""
    margin: float
    """Part of upper − lower that only covers rounding errors."""
    value_error: float
    """max_s |V(s) − V*(s)| and max_s [V*(s) − V_π(s)] are at most this."""
    primal_violation: float
    """max [r + γPV − V]₊: how far V is from satisfying the constraints of (P)."""
    slack_residual: float
    """max |r + γPV + h − V|, or max [−h]₊ if larger: how far h is from being the slack of V."""
    flow_residual: float
    """max |Σ_a wx − γΣPwx − ρ₀|, or max [−wx]₊ if larger: how far x is from feasible for (D)."""
    complementarity: float
    """max |x·h|."""
    dual_value: float
    """Σ r w x, the objective of (D)."""

    @property
    def gap(self) -> float:
        """upper − lower: the policy is at most this far from optimal."""
        return self.upper - self.lower

    def accepts(self, tolerance: float = 1e-6) -> bool:
        """Whether V, h, x and π all solve their program to within `tolerance`."""
        duality = abs(self.upper - self.dual_value)
        residuals = (self.primal_violation, self.slack_residual, self.flow_residual)
        return max(self.gap, self.value_error, duality, *residuals) <= tolerance

    def as_dict(self) -> dict[str, float]:
        """Every number by name, the gap among them."""
        return asdict(self) | {"gap": self.gap}


class Judged(NamedTuple):
    """A solution with every part filled in, and its certificate."""

    V: Array
    h: Array
    x: Array
    policy: Policy
    certificate: Certificate


def certify(
    mdp: FiniteMDP,
    *,
    V: ArrayLike | None = None,
    policy: ArrayLike | None = None,
    h: ArrayLike | None = None,
    x: ArrayLike | None = None,
    w: ArrayLike | None = None,
) -> Certificate:
    """Judge any V (S,), policy (S,) or (S, A), slacks h and multipliers x (S, A).

    They may come from anywhere. What is left out is derived from what is given: the policy from x
    where x visits and else greedily from V, V as the value of the policy, h from V, x from the
    policy.

    >>> mdp = FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, 2.0]], gamma=0.5)
    >>> certify(mdp, V=[4.0]).accepts(), certify(mdp, policy=[0]).accepts()
    (True, False)
    """
    check_mdp(mdp)
    if V is None and policy is None and x is None:
        raise ValueError("certify was given nothing to judge; pass V, policy or x")
    return judge(
        mdp,
        V=None if V is None else check_values(mdp, V),
        policy=None if policy is None else check_policy(mdp, policy),
        h=None if h is None else check_pairs(mdp, "h", h),
        x=None if x is None else check_multipliers(mdp, x),
        w=check_weights(mdp, w),
    ).certificate


def judge(
    mdp: FiniteMDP,
    *,
    V: Array | None,
    policy: Policy | None,
    h: Array | None,
    x: Array | None,
    w: Array,
    precision: float = 0.0,
) -> Judged:
    """`certify` for checked arrays.

    With a `precision`, V is trusted to be near V_π, which is then only improved by a few sweeps.
    """
    policy = _policy_of(mdp, V, x, w) if policy is None else policy
    P_pi, r_pi = mdp.under(policy)
    v = linear.values(P_pi, r_pi, mdp.gamma, V, precision, sweeps=SWEEPS if precision else None)
    V = v if V is None else V

    slack = mdp.backup(V)
    np.subtract(V[:, None], slack, out=slack)
    violation = -float(slack.min())
    if h is None:
        h, slack_residual = np.maximum(slack, 0.0, out=slack), max(0.0, violation)
    else:
        slack_residual = float(np.maximum(np.abs(h - slack), -h)[mdp.feasible].max())

    if x is None:
        goal = 10.0 * precision / (mdp.n_states * max(1.0, np.ptp(V)))
        d = linear.occupancy(P_pi, mdp.rho0, mdp.gamma, goal)
        used, y, x = _spread(mdp, d, policy, w)
        flow = d - mdp.gamma * (P_pi.T @ d)
    else:
        used = np.nonzero(x)
        y = w[used] * x[used]
        flow = mdp.flow(used, y)

    above = Defect(violation, V, mdp.width)
    shortfall = float((v - (r_pi + P_pi @ (mdp.gamma * v))).max())
    mixing = 0 if policy.ndim == 1 else mdp.n_actions
    below = Defect(shortfall, v, int(np.diff(P_pi.indptr).max()) + mixing)
    upper, lower, value_error = _bounds(mdp, above, below, UNIT)
    bare_upper, bare_lower, _ = _bounds(mdp, above, below, Fraction(0))
    certificate = Certificate(
        upper=math.nextafter(float(upper), math.inf),
        lower=math.nextafter(float(lower), -math.inf),
        margin=float((upper - lower) - (bare_upper - bare_lower)),
        value_error=math.nextafter(float(value_error), math.inf),
        primal_violation=max(0.0, violation),
        slack_residual=slack_residual,
        flow_residual=float(max(np.abs(flow - mdp.rho0).max(), -y.min(initial=0.0))),
        complementarity=float(np.abs(x[used] * h[used]).max(initial=0.0)),
        dual_value=float((mdp.R[used] * y).sum()),
    )
    return Judged(V, h, x, policy, certificate)


def _policy_of(mdp: FiniteMDP, V: Array | None, x: Array | None, w: Array) -> Policy:
    """π ∝ w·x where x visits; greedy for V elsewhere, and everywhere if there is no x."""
    if x is None:
        assert V is not None, "there is nothing to judge"
        return mdp.greedy(V)[0]
    policy = proportional(mdp, w * x)
    if V is not None:
        unvisited = np.flatnonzero(~(x > 0.0).any(axis=1))
        policy[unvisited] = 0.0
        policy[unvisited, mdp.greedy(V)[0][unvisited]] = 1.0
    return policy


def _spread(mdp: FiniteMDP, d: Array, policy: Policy, w: Array) -> tuple[Pairs, Array, Array]:
    """Visits d(s) as pairs (s, a) with y = d·π there, and x = y / w on all of (S, A)."""
    used: Pairs = (np.arange(mdp.n_states), policy) if policy.ndim == 1 else np.nonzero(policy)
    y = d if policy.ndim == 1 else d[used[0]] * policy[used]
    x = np.zeros(mdp.R.shape)
    x[used] = y / w[used]
    return used, y, x


class Defect(NamedTuple):
    """A computed maximum of r + γPV − V, or of its negative for one policy."""

    size: float
    V: Array
    additions: int
    """Most terms that a row adds up."""


def _bounds(
    mdp: FiniteMDP, above: Defect, below: Defect, unit: Fraction
) -> tuple[Fraction, Fraction, Fraction]:
    """Upper and lower bound on ρ₀ᵀV* and a bound on |V − V*|, for a given unit of rounding."""
    V, v = above.V, below.V
    up, down = _shift(mdp, above, unit), _shift(mdp, below, unit)

    def carried(shift: Fraction) -> Fraction:
        """An upper bound on Σ ρ₀·shift."""
        mass = _total(mdp.rho0, unit) if shift > 0 else -_total(-mdp.rho0, unit)
        return shift * mass

    upper = _total(mdp.rho0 * V, unit) + carried(up)
    lower = -_total(mdp.rho0 * -v, unit) - carried(down)
    apart = Fraction(float((V - v).max()))
    apart += abs(apart) * unit
    return upper, lower, max(up, apart + down, apart + up + down)


def _shift(mdp: FiniteMDP, defect: Defect, unit: Fraction) -> Fraction:
    """c with c (1 − γ·row sum) ≥ the exact defect, for every row."""
    n = defect.additions + 8
    relative = n * unit / (1 - n * unit)
    largest = Fraction(mdp.largest_reward) + 3 * Fraction(float(np.abs(defect.V).max()))
    exact = Fraction(defect.size) + relative * largest + n * _underflow(unit)
    low, high = mdp.row_sum_range
    row_sum = Fraction(high) * (1 + relative) if exact > 0 else Fraction(low) * (1 - relative)
    contraction = 1 - Fraction(mdp.gamma) * row_sum
    if contraction <= 0:
        raise ValueError(
            f"gamma is {mdp.gamma!r}, too close to one for the rounding errors of this policy; "
            "choose a smaller gamma, or a deterministic policy"
        )
    return exact / contraction


def _underflow(unit: Fraction) -> Fraction:
    """Absolute error of one operation whose result is too small for a relative one."""
    return Fraction(1, 2**1074) if unit else Fraction(0)


BLOCK = 1024


def _total(terms: Array, unit: Fraction) -> Fraction:
    """An upper bound on the sum of products `terms`: in blocks, so that few additions follow."""
    blocks = np.append(terms, np.zeros(-len(terms) % BLOCK)).reshape(-1, BLOCK)
    n = BLOCK + len(blocks) + 2
    relative = n * unit / (1 - n * unit)
    size = Fraction(float(np.abs(blocks).sum(axis=1).sum())) * (1 + 2 * relative)
    rounding = relative * size + len(terms) * _underflow(unit)
    return Fraction(float(blocks.sum(axis=1).sum())) + rounding
