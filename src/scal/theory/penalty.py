"""The quadratic penalty form of an augmented Lagrangian step (paper, sections 4.1 and 5.2).

    L̃(V, h, x) = Σ ρ₀V + (c/μ) Σ w x Z + β/2 Σ w (x − Z)²,        Z = Z_μ(V, h, x'),  κ = μβ

with c = 1 in the method (section 4) and c = 1/2 in its analysis (section 5). In x and Z it is

    β/2 Σ w {[(1 − c/κ) x − Z]² + (c/κ)(2 − c/κ) x²},

jointly convex if and only if κ > c/2, and then (2c/μ)(1 − c/(2κ)) is the modulus in x that is left
after minimising over Z. (For c = 1/2 the paper prints 1/(4κ)·(1 − 1/(4κ)) as the coefficient of x²
in the braces; it is 1/κ·(1 − 1/(4κ)), as its next line needs.)

The minimiser has x̃ = (1 − c/κ) Z̃, which is negative for κ < c, and

    Z̃ = ξ₁ T_{μ/ξ₁}(x'/ξ₁)        ξ₁ = κ / (c (2κ − c))
    x̃ = ξ₂ T_{μ/ξ₁}(x'/ξ₁)        ξ₂ = (κ − c) / (c (2κ − c)).

The paper prints T_μ(x') in place of T_{μ/ξ₁}(x'/ξ₁), which is the same only once both are solutions
of (D). Repeated to its fixed point, the step solves (D) with a ridge, ξ₂ times:

    max Σ r w y − 1/(2ν) ‖y‖²_w over (D),        ν = μ (2κ − c).
"""

import numpy as np
from numpy.typing import ArrayLike

from scal.mdp.model import FiniteMDP
from scal.mdp.types import Array
from scal.theory.errors import Iterate, multiplier_after, proximal_step, squared_norm

METHOD, ANALYSIS = 1.0, 0.5
"""The two coefficients c of the paper."""


def xi(kappa: float, c: float) -> tuple[float, float]:
    """ξ₁ and ξ₂.

    >>> xi(kappa=2.0, c=0.5), (8 / 7, 6 / 7)
    ((1.1428571428571428, 0.8571428571428571), (1.1428571428571428, 0.8571428571428571))
    """
    if kappa <= c:
        raise ValueError(f"mu*beta is {kappa:g}, so that x is not positive; use more than {c}")
    return kappa / (c * (2.0 * kappa - c)), (kappa - c) / (c * (2.0 * kappa - c))


def penalty_objective(
    mdp: FiniteMDP, point: Iterate, old: Array, mu: float, beta: float, c: float, w: Array
) -> float:
    """L̃ at (V, h, x), for x' = `old`."""
    Z = multiplier_after(mdp, point.V, point.h, old, mu)
    linear = float((w * point.x * Z).sum())
    return mdp.objective(point.V) + c / mu * linear + 0.5 * beta * squared_norm(w, point.x - Z)


def penalty_step(
    mdp: FiniteMDP, old: Array, mu: float, beta: float, c: float, w: ArrayLike | None = None
) -> Iterate:
    """Ṽ, h̃, x̃ = argmin_{V, h ≥ 0, x} L̃, by the closed form above."""
    xi_1, xi_2 = xi(mu * beta, c)
    step = proximal_step(mdp, old / xi_1, mu / xi_1, w)
    return Iterate(step.V, step.h, xi_2 * step.x)


def penalty_fixed_point(
    mdp: FiniteMDP, mu: float, beta: float, c: float, w: ArrayLike | None = None
) -> Iterate:
    """Where penalty steps end: (D) with a ridge of 1/(μ(2κ − c)), x scaled by ξ₂."""
    kappa = mu * beta
    _, xi_2 = xi(kappa, c)
    nu = mu * (2.0 * kappa - c)
    step = proximal_step(mdp, np.zeros(mdp.R.shape), nu, w)
    return Iterate(step.V, step.h, xi_2 * step.x)


def convexity(kappa: float, c: float) -> float:
    """μ times the modulus of L̃ in x after minimising over Z: 2c (1 − c/(2κ)); ≤ 0: not convex."""
    return 2.0 * c * (1.0 - c / (2.0 * kappa))
