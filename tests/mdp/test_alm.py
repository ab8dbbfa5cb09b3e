"""Algorithm 1 against what the paper proves about it."""

import highspy
import numpy as np
import pytest

import scal
from scal.mdp import programs
from scal.mdp.alm import alm_step, augmented_lagrangian_method
from scal.objective import closed_slack, z
from tests.conftest import random_instance


def lagrangian(mdp, V, h, x, mu, w):
    """L_μ(V, h, x), written out."""
    Z = z(mu, x, h, np.where(mdp.feasible, mdp.backup(V), 0.0), V[:, None])
    return mdp.rho0 @ V + (w * Z**2)[mdp.feasible].sum() / (2 * mu)


def proximal_point(mdp, x_old, mu, w):
    """Lemma 1's problem, max Σ r w x − 1/(2μ) Σ w (x − x')² over (D), by HiGHS's QP solver."""
    dual = programs.dual(mdp)
    rho, weight, old = mdp.rho0, w[mdp.feasible], x_old[mdp.feasible]
    program = highspy.HighsModel()
    lp = program.lp_
    rows, columns = dual.A.shape
    A = (dual.A * weight).tocsr()
    lp.num_row_, lp.num_col_ = rows, columns
    lp.sense_ = highspy.ObjSense.kMinimize
    lp.col_cost_ = -weight * (mdp.R[mdp.feasible] + old / mu)
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, np.inf)
    lp.row_lower_ = lp.row_upper_ = rho
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    program.hessian_.dim_ = columns
    program.hessian_.format_ = highspy.HessianFormat.kTriangular
    program.hessian_.start_ = np.arange(columns + 1)
    program.hessian_.index_ = np.arange(columns)
    program.hessian_.value_ = weight / mu
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("qp_regularization_value", 1e-11)
    solver.passModel(program)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    x = np.zeros(mdp.R.shape)
    x[mdp.feasible] = solver.getSolution().col_value
    constant = (weight * old**2).sum() / (2 * mu)
    return x, -solver.getInfo().objective_function_value - constant


CASES = [(seed, mu) for seed in (2, 11, 23, 40, 57) for mu in (0.3, 3.0)]


def case(seed):
    mdp = random_instance(seed)
    mdp = scal.FiniteMDP(mdp.P, np.clip(mdp.R, None, 5.0), 0.8)
    rng = np.random.default_rng(seed)
    w = mdp.feasible * (0.2 + rng.random(mdp.R.shape))
    return mdp, mdp.feasible * rng.random(mdp.R.shape), w / w.sum()


@pytest.mark.parametrize(("seed", "mu"), CASES)
def test_step_is_the_proximal_point_of_the_dual(seed, mu):
    """Lemma 1: Z at the minimiser of L_μ(·, ·, x') solves the proximal problem, of equal value."""
    mdp, x_old, w = case(seed)
    step = alm_step(mdp, x_old, mu, w)
    x, value = proximal_point(mdp, x_old, mu, w)
    assert step.converged
    np.testing.assert_allclose(step.x, x, atol=1e-5 * (1 + x.max()))
    F = lagrangian(mdp, step.V, np.where(mdp.feasible, step.h, 0.0), x_old, mu, w)
    F -= (w * x_old**2).sum() / (2 * mu)
    assert pytest.approx(value, rel=1e-6, abs=1e-6) == F


@pytest.mark.parametrize(("seed", "mu"), CASES)
def test_step_minimises_the_lagrangian(seed, mu):
    mdp, x_old, w = case(seed)
    step = alm_step(mdp, x_old, mu, w)
    h = np.where(mdp.feasible, step.h, 0.0)
    least = lagrangian(mdp, step.V, h, x_old, mu, w)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-1, 1.0):
        V = step.V + size * rng.normal(size=step.V.shape)
        other = np.maximum(h + size * rng.normal(size=h.shape), 0.0) * mdp.feasible
        assert lagrangian(mdp, V, other, x_old, mu, w) >= least
        assert lagrangian(mdp, V, h, x_old, mu, w) >= least
        assert lagrangian(mdp, step.V, other, x_old, mu, w) >= least


@pytest.mark.parametrize(("seed", "mu"), CASES)
def test_multipliers_are_feasible_and_complementary(seed, mu):
    """After a step x ≥ 0 satisfies the flow constraint exactly, and x·h = 0."""
    mdp, x_old, w = case(seed)
    step = alm_step(mdp, x_old, mu, w)
    used = np.nonzero(step.x)
    np.testing.assert_allclose(mdp.flow(used, w[used] * step.x[used]), mdp.rho0, atol=1e-9)
    assert np.abs(step.x[mdp.feasible] * step.h[mdp.feasible]).max() < 1e-9
    assert (step.x >= 0).all()
    assert (step.h >= 0).all()


def test_small_mu_converges_monotonically():
    """The classic method with a small, fixed μ: the proximal point iteration never moves away."""
    mdp = scal.random_mdp(20, 4, 5, seed=0, gamma=0.8)
    x, w = np.zeros(mdp.R.shape), np.full(mdp.R.shape, 1 / 80)
    optimum = scal.solve(mdp, w=w, tolerance=1e-10)
    assert optimum.ties.size == 0

    def distance(x):
        return float((w * (x - optimum.x) ** 2).sum())

    distances, V = [distance(x)], np.zeros(mdp.n_states)
    while distances[-1] > 1e-9 * distances[0]:
        step = alm_step(mdp, x, 200.0, w, V)
        V, x = step.V, step.x
        assert distance(x) < distances[-1]
        distances.append(distance(x))
        assert len(distances) < 100
    assert len(distances) > 5


def test_residuals_are_recorded():
    mdp = scal.random_mdp(400, 5, 6, seed=2)
    outcome = augmented_lagrangian_method(mdp, 1e-6, mu=100.0)
    residuals = [line.primal_residual for line in outcome.history]
    assert len(residuals) >= 4
    assert residuals[-1] < 1e-9 < residuals[0]
    assert max(line.dual_residual for line in outcome.history) < 1e-8


def test_closed_slack_is_the_minimiser():
    rng = np.random.default_rng(0)
    mu, x, target, value = 2.0, rng.random(100), rng.normal(size=100), rng.normal(size=100)
    h = closed_slack(mu, x, target, value)
    grid = np.linspace(0, 5, 2001)[:, None]
    best = (z(mu, x, grid, target, value) ** 2).min(axis=0)
    assert (z(mu, x, h, target, value) ** 2 <= best + 1e-12).all()
