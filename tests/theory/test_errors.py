"""Lemmas 1 and 2 and Theorem 1 of section 5, on random MDPs."""

import numpy as np
import pytest

import scal
from scal.objective import closed_slack
from scal.theory import errors
from scal.theory.errors import Iterate
from tests.conftest import random_instance


def case(seed):
    """A random MDP, weights w, multipliers x' of any sign, and μ in the units of the rewards."""
    mdp, rng = random_instance(seed), np.random.default_rng(seed)
    w = mdp.feasible * (0.2 + rng.random(mdp.R.shape))
    x = mdp.feasible * rng.normal(scale=2.0 / (1.0 - mdp.gamma), size=mdp.R.shape)
    return mdp, w / w.sum(), x, 10.0 ** rng.uniform(-1, 1) / max(mdp.largest_reward, 1e-9), rng


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_lemma_1_on_random_mdps(first):
    """The exact step meets the proximal problem's optimality conditions, and has its value."""
    for seed in range(first, first + 25):
        mdp, w, x, mu, _ = case(seed)
        step = errors.proximal_step(mdp, x, mu, w)
        gap = errors.proximal_gap(mdp, x, Iterate(step.V, step.h, step.x), mu, w)
        assert max(gap) < 1e-8, (seed, gap)


def test_the_gap_of_lemma_1_sees_every_way_to_be_wrong():
    mdp, mu, rng = scal.random_mdp(6, 2, 3, seed=0, gamma=0.5), 1.0, np.random.default_rng(0)
    w, x = np.full((6, 2), 1 / 12), rng.normal(size=(6, 2))
    step = errors.proximal_step(mdp, x, mu, w)
    right = Iterate(step.V, step.h, step.x)
    noise = mdp.feasible * rng.random(mdp.R.shape)
    wrong = {
        "stationarity": right._replace(h=step.h + noise),
        "flow": right._replace(x=step.x + noise),
        "complementarity": right._replace(h=step.h + noise),
        "sign": right._replace(x=step.x - 2.0 * (1.0 + step.x.max()) * noise),
        "value": right._replace(V=step.V + 1.0),
    }
    for name, point in wrong.items():
        assert getattr(errors.proximal_gap(mdp, x, point, mu, w), name) > 1e-3, name


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_lemma_2_on_random_mdps(first):
    """Five disturbed iterates for each of 200 MDPs: a thousand, and the bound always holds."""
    for seed in range(first, first + 25):
        mdp, w, x, mu, rng = case(seed)
        step = errors.proximal_step(mdp, x, mu, w)
        for size in 10.0 ** rng.uniform(-3, 1, 5):
            slack = ("closed", "noisy")[seed % 2]
            new = errors.disturbance(mdp, x, step, mu, size, rng, slack)
            found = errors.measure(mdp, x, new, mu, w)
            assert found.distance <= found.sharp_bound * (1 + 1e-8)
            assert found.sharp_bound <= found.bound * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_eps_L_is_the_distance_from_the_minimum(seed):
    """Σ w x̂ h + ‖Z − x̂‖²_w/(2μ) against the definition, a difference of two Lagrangians."""
    mdp, w, x, mu, rng = case(seed)
    step = errors.proximal_step(mdp, x, mu, w)
    least = errors.lagrangian(mdp, step.V, step.h, x, mu, w)
    for slack in ("closed", "noisy"):
        new = errors.disturbance(mdp, x, step, mu, 10.0, rng, slack)
        value = errors.lagrangian(mdp, new.V, new.h, x, mu, w)
        found = errors.measure(mdp, x, new, mu, w).eps_L
        assert found == pytest.approx(value - least, rel=1e-8, abs=1e-9 * (1 + abs(value)))
        assert found > 0.0


def test_half_of_lemma_2_can_be_tight():
    """With x = Z and all pairs active ε_L is ‖Z − x̂‖²_w/(2μ) exactly: the 2μ cannot be smaller."""
    mdp = scal.random_mdp(6, 2, 3, seed=0, gamma=0.5)
    old, mu = np.full((6, 2), 50.0), 0.1
    w = np.full((6, 2), 1 / 12)
    step = errors.proximal_step(mdp, old, mu, w)
    h = np.zeros((6, 2))
    V = step.V + 0.1
    Z = errors.multiplier_after(mdp, V, h, old, mu)
    assert (Z > 0).all()
    assert (step.x > 0).all()
    found = errors.measure(mdp, old, Iterate(V, h, Z), mu, w)
    assert found.eps_x == 0.0
    assert found.distance == pytest.approx(2 * mu * found.eps_L, rel=1e-6)
    assert found.distance == pytest.approx(0.5 * found.bound, rel=1e-6)


def test_the_missing_square():
    """What the proof of Lemma 2 prints, a sum without the square, is no lower bound on ε_L."""
    mdp, mu = scal.random_mdp(6, 2, 3, seed=0, gamma=0.5), 1.0
    w, x = np.full((6, 2), 1 / 12), np.random.default_rng(0).normal(size=(6, 2))
    step = errors.proximal_step(mdp, x, mu, w)
    V = step.V - 0.05
    h = closed_slack(mu, x, mdp.backup(V), V[:, None])
    Z = errors.multiplier_after(mdp, V, h, x, mu)
    eps_L = errors.measure(mdp, x, Iterate(V, h, Z), mu, w).eps_L
    gain = step.x - Z  # κ − x' of the proof
    product = errors.squared_norm(w, gain) / mu
    assert eps_L >= product - errors.squared_norm(w, gain) / (2 * mu) - 1e-12
    assert eps_L < product - (w * gain).sum() / (2 * mu) - 1e-3


def test_residual_vanishes_at_solutions_only():
    mdp = scal.random_mdp(15, 3, 4, seed=5, gamma=0.8)
    best = scal.solve(mdp, tolerance=1e-10)
    assert errors.residual(mdp, best.x, 2.0) < 1e-16
    assert errors.residual(mdp, best.x + 0.1, 2.0) > 1e-6
    found = errors.nearest_solution(mdp, np.zeros(mdp.R.shape))
    np.testing.assert_allclose(found, best.x, atol=1e-7)


def test_nearest_solution_is_a_projection():
    """Two equal actions: (D) is solved by a whole segment, x₁ + x₂ = 4 with w = 1/2."""
    mdp = scal.FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, 1.0]], gamma=0.5)
    found = errors.nearest_solution(mdp, np.array([[3.0, 2.0]]))
    np.testing.assert_allclose(found, [[2.5, 1.5]], atol=1e-9)


def test_finite_sums_of_distances_converge():
    mdp = scal.random_mdp(12, 3, 4, seed=2, gamma=0.8)
    rng = np.random.default_rng(0)
    best = scal.solve(mdp, tolerance=1e-10).x
    run = errors.inexact_alm(
        mdp, 50.0, lambda k, x, step: errors.disturbance(mdp, x, step, 50.0, k**-2.0, rng), 120
    )
    assert sum(e.eps_x**0.5 + e.eps_L**0.5 for e in run.errors) < np.inf
    far = [float(np.abs(x - best).max()) for x in run.x]
    assert far[-1] < 1e-3 < 0.1 < far[1]
    for e in run.errors:
        assert e.distance <= e.bound


def wander(q, steps):
    """Inexact steps of size 2k^−q along the segment of solutions, from one end to the other."""
    mdp = scal.FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, 1.0]], gamma=0.5)
    way = [1.0]

    def disturb(k, old, step):
        x = step.x + way[0] * 2.0 * k**-q * np.array([[1.0, -1.0]])
        if x.min() < 0.0 or x.max() > 4.0:
            way[0] = -way[0]
            x = step.x + way[0] * 2.0 * k**-q * np.array([[1.0, -1.0]])
        return Iterate(step.V, step.h, x)

    return errors.inexact_alm(mdp, 1.0, disturb, steps, start=np.array([[2.0, 2.0]]))


def test_theorem_1_needs_more_than_it_says():
    """Σ ε_x < ∞ and Σ ε_L = 0, as printed, yet x goes to and fro on the solutions for ever."""
    run = wander(1.0, 1500)
    assert sum(e.eps_x for e in run.errors) < 4 * np.pi**2 / 6
    assert max(e.eps_L for e in run.errors) < 1e-12
    first = np.array([x[0, 0] for x in run.x])
    assert np.ptp(first[:60]) > 3.0
    assert np.ptp(first[60:]) > 3.0
    settled = np.array([x[0, 0] for x in wander(2.0, 1500).x])
    assert np.ptp(settled[60:]) < 0.05
