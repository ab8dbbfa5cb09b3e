"""The quadratic penalty step against an independent minimiser, for both coefficients c."""

import numpy as np
import pytest
from scipy.optimize import minimize

import scal
from scal.theory import errors, penalty
from scal.theory.errors import Iterate

CONVENTIONS = [penalty.METHOD, penalty.ANALYSIS]


def problem(seed=1):
    mdp, rng = scal.random_mdp(4, 2, 2, seed=seed, gamma=0.6), np.random.default_rng(seed)
    w = 0.2 + rng.random((4, 2))
    return mdp, w / w.sum(), 3.0 * rng.random((4, 2))


@pytest.mark.parametrize("c", CONVENTIONS)
@pytest.mark.parametrize("beta", [2.0, 5.0, 50.0])
def test_step_minimises_the_penalty_objective(c, beta):
    mdp, w, old = problem()
    mu = 0.7

    def value(u):
        point = Iterate(u[:4], u[4:12].reshape(4, 2), u[12:].reshape(4, 2))
        return penalty.penalty_objective(mdp, point, old, mu, beta, c, w)

    found = penalty.penalty_step(mdp, old, mu, beta, c, w)
    bounds = [(None, None)] * 4 + [(0, None)] * 8 + [(None, None)] * 8
    other = minimize(
        value, np.zeros(20), method="L-BFGS-B", bounds=bounds,
        options={"maxfun": 10**6, "maxiter": 10**5, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    ours = value(np.concatenate([part.ravel() for part in found]))
    assert ours <= other.fun + 1e-10
    np.testing.assert_allclose(found.x.ravel(), other.x[12:], atol=2e-5)


@pytest.mark.parametrize("c", CONVENTIONS)
@pytest.mark.parametrize("seed", range(5))
def test_optimality_conditions_to_1e_8(c, seed):
    """∇L̃ = 0 in x and V, and in h where h > 0: the right closed forms of ξ₁ and ξ₂."""
    mdp, w, old = problem(seed)
    for mu, beta in ((0.7, 2.0), (0.2, 40.0), (5.0, 1.0)):
        xi_1, xi_2 = penalty.xi(mu * beta, c)
        V, h, x = penalty.penalty_step(mdp, old, mu, beta, c, w)
        Z = errors.multiplier_after(mdp, V, h, old, mu)
        np.testing.assert_allclose(c / mu * Z + beta * (x - Z), 0.0, atol=1e-8)
        np.testing.assert_allclose(x, xi_2 / xi_1 * Z, atol=1e-8)
        F = w * (c * x - mu * beta * (x - Z))
        pairs = np.nonzero(mdp.feasible)
        np.testing.assert_allclose(mdp.flow(pairs, F[pairs]), mdp.rho0, atol=1e-8)
        assert (F >= -1e-8).all()
        assert np.abs(F * h).max() < 1e-8
        near = errors.proximal_step(mdp, old / xi_1, mu / xi_1, w).x
        np.testing.assert_allclose(Z, xi_1 * near, atol=1e-8)


@pytest.mark.parametrize("c", CONVENTIONS)
def test_the_printed_form_holds_at_solutions_only(c):
    """x̃ = ξ₂ T_μ(x') is off by far from the optimum, and exact where both sides solve (D)."""
    mdp, w, old = problem()
    mu, beta = 0.7, 2.0
    _, xi_2 = penalty.xi(mu * beta, c)
    printed = xi_2 * errors.proximal_step(mdp, old, mu, w).x
    assert np.abs(printed - penalty.penalty_step(mdp, old, mu, beta, c, w).x).max() > 0.05
    mu = 500.0
    printed = xi_2 * errors.proximal_step(mdp, old, mu, w).x
    right = penalty.penalty_step(mdp, old, mu, 1.4 / mu, c, w).x
    np.testing.assert_allclose(printed, right, atol=1e-8)


def test_xi_by_hand():
    assert penalty.xi(3.0, 0.5) == pytest.approx((12 / 11, 10 / 11))  # as the paper prints
    assert penalty.xi(3.0, 1.0) == pytest.approx((3 / 5, 2 / 5))
    with pytest.raises(ValueError, match="is not positive"):
        penalty.xi(1.0, 1.0)


@pytest.mark.parametrize("c", CONVENTIONS)
@pytest.mark.parametrize("kappa", [0.2, 0.3, 0.45, 0.6, 3.0])
def test_convexity_threshold(c, kappa):
    """κ > c/2, against the eigenvalues of the quadratic form in (x, Z) and its Schur complement."""
    mu, beta = 1.0, kappa
    form = np.array([[beta, c / mu - beta], [c / mu - beta, beta]])
    left_in_x = form[0, 0] - form[0, 1] ** 2 / form[1, 1]
    assert penalty.convexity(kappa, c) == pytest.approx(left_in_x)
    assert (np.linalg.eigvalsh(form)[0] > 0) == (penalty.convexity(kappa, c) > 0) == (kappa > c / 2)
    x, Z = 1.3, 0.4
    braces = ((1 - c / kappa) * x - Z) ** 2 + c / kappa * (2 - c / kappa) * x**2
    direct = c / mu * x * Z + beta / 2 * (x - Z) ** 2
    assert beta / 2 * braces == pytest.approx(direct)


@pytest.mark.parametrize("c", CONVENTIONS)
def test_fixed_point_is_one_and_has_the_predicted_mass(c):
    """Row 2 of the design's table: with c = 1 the mass is (κ − 1)/(2κ − 1) of 1/(1 − γ)."""
    mdp, w, _ = problem()
    mu = 0.7
    for beta in (2.0, 5.0, 50.0):
        point = penalty.penalty_fixed_point(mdp, mu, beta, c, w)
        again = penalty.penalty_step(mdp, point.x, mu, beta, c, w)
        for ours, theirs in zip(point, again, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)
        k = mu * beta
        share = (k - 1) / (2 * k - 1) if c == 1.0 else (4 * k - 2) / (4 * k - 1)
        assert (w * point.x).sum() == pytest.approx(share / (1 - mdp.gamma), rel=1e-9)
        # V is low as if rewards were r − x/ν: complementarity of (D) with a ridge
        active = point.x > 0
        gap = (mdp.backup(point.V) - point.V[:, None])[active]
        np.testing.assert_allclose(gap, point.x[active] * c / (mu * (k - c)), atol=1e-9)
