"""The fixed points of the update: rows 1 to 3 of the deviations on the learning side."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scal
from scal import objective
from scal.envs import Inventory
from scal.learn.config import PAPER
from scal.learn.metrics import predicted_mass
from scal.theory.errors import Iterate
from scal.theory.fixed_points import Update, directions, fixed_point

MDPS = {
    "random": scal.random_mdp(12, 3, 4, seed=1, gamma=0.9),
    "inventory": Inventory(capacity=8, demand=3.0).mdp(0.9),
}
UPDATES = [
    Update(mu, beta, flow, mix, step)
    for mu, beta in ((1.0, 2.0), (0.3, 40.0))
    for flow in (0.0, 0.5, 1.0)
    for mix in (0.0, 0.5)
    for step in ("penalty", "regression")
]


@pytest.mark.parametrize("update", UPDATES, ids=str)
def test_directions_are_the_gradients_of_the_objective(update):
    """g, q, m against jax.grad of `objective.composite` with the learner's stop-gradients."""
    mdp = MDPS["random"]
    rng = np.random.default_rng(0)
    shape = mdp.R.shape
    point = Iterate(rng.normal(size=12), rng.random(shape), rng.random(shape))
    w = 0.1 + rng.random(shape)
    w /= w.sum()
    kept = mdp.gamma * update.flow
    with jax.enable_x64(True):
        P = jnp.asarray(mdp.P.toarray().reshape(*shape, -1))
        fixed = jax.lax.stop_gradient

        def loss(unknowns):
            V, h, x = unknowns
            target = mdp.R + mdp.gamma * (P @ fixed(V))
            z = objective.z(update.mu, fixed(x), h, target, V[:, None])
            V0 = ((1 - update.s0_mix) * mdp.rho0 + update.s0_mix * w.sum(axis=1)) @ V
            regression = update.theta_step == "regression"
            x_primal = fixed(x) if regression else x
            terms = objective.composite(update.mu, update.beta, (1 - kept) * V0, x_primal, z)
            terms += kept * fixed(x) * (P @ V)
            if regression:
                terms += 0.5 * (x - fixed(jnp.maximum(z, 0))) ** 2
            return (w * terms).sum()

        expected = jax.grad(loss)(Iterate(*map(jnp.asarray, point)))
    found = directions(mdp, point, update, w)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("name", MDPS)
@pytest.mark.parametrize("update", UPDATES, ids=str)
def test_nothing_moves_and_the_mass_is_the_predicted_one(name, update):
    mdp = MDPS[name]
    point = fixed_point(mdp, update)
    g, q, m = directions(mdp, point, update)
    assert np.abs(g).max() < 1e-9
    assert np.abs(m).max() < 1e-9
    assert q.min() > -1e-9
    assert np.abs(q * point.h).max() < 1e-9
    config = dataclasses.replace(PAPER, gamma=mdp.gamma, **dataclasses.asdict(update))
    assert point.x.mean() == pytest.approx(float(predicted_mass(config, 1.0)), rel=1e-6)


@pytest.mark.parametrize("name", MDPS)
def test_the_penalty_biases_values_low_and_the_regression_does_not(name):
    """Row 3: δ = x/(μ(κ − 1)); without flow the bias falls as 1/(μ(2κ − 1)), exactly."""
    mdp = MDPS[name]
    best = scal.solve(mdp, tolerance=1e-10).V
    regression = fixed_point(mdp, Update(1.0, 5.0, 0.5, 1.0, "regression"))
    np.testing.assert_allclose(regression.V, best, atol=1e-8)
    biases = []
    for mu, beta in ((100.0, 0.1), (100.0, 1.0), (1000.0, 0.01)):
        update = Update(mu, beta, 0.0, 1.0)
        V, _, x = fixed_point(mdp, update)
        assert (best > V).all()
        gap = mdp.backup(V) - V[:, None]
        np.testing.assert_allclose(x, mu * (update.kappa - 1) * np.maximum(gap, 0.0), atol=1e-8)
        biases.append((best - V).mean())
    assert biases[0] / biases[1] == pytest.approx(199 / 19, rel=1e-6)
    assert biases[0] / biases[2] == pytest.approx(10.0, rel=1e-6)


def two_rooms():
    """From state 0 to 1 and on for ever: reward 1 in state 1 only, V* = (γ, 1)/(1 − γ)."""
    P = np.zeros((2, 1, 2))
    P[:, 0, 1] = 1.0
    return scal.FiniteMDP.from_dense(P, [[0.0], [1.0]], 0.5, rho0=[1.0, 0.0])


def test_without_flow_or_mixing_values_off_the_start_are_free():
    """Row 1: V(1) = 7 is at rest if nothing but ρ₀ reaches it, and V(0) = γ·7 follows it."""
    mdp = two_rooms()
    ceiling = np.array([7.0, 7.0])
    for step in ("penalty", "regression"):
        free = Update(1.0, 1e6, theta_step=step)
        point = fixed_point(mdp, free, ceiling=ceiling)
        np.testing.assert_allclose(point.V, [3.5, 7.0], atol=1e-4)
        g, q, m = directions(mdp, point, free)
        assert max(np.abs(part).max() for part in (g, m, q * point.h)) < 1e-5
        for option in ({"flow": 0.5}, {"s0_mix": 0.1}):
            held = dataclasses.replace(free, **option)
            np.testing.assert_allclose(
                fixed_point(mdp, held, ceiling=ceiling).V, [1.0, 2.0], atol=1e-4
            )


@pytest.mark.parametrize("step", ["penalty", "regression"])
def test_the_update_goes_there(step):
    """Following −g, −q and −m from zero ends at the fixed point."""
    mdp = scal.random_mdp(5, 2, 3, seed=3, gamma=0.5)
    update = Update(1.0, 4.0, 0.5, 0.5, step)
    point = Iterate(np.zeros(5), np.zeros((5, 2)), np.ones((5, 2)))
    for _ in range(6_000):
        g, q, m = directions(mdp, point, update)
        V = point.V - 0.3 * g
        h = np.maximum(point.h - 0.5 * q, 0.0)
        point = Iterate(V, h, np.maximum(point.x - 0.5 * m, 0.0))
    expected = fixed_point(mdp, update)
    np.testing.assert_allclose(point.V, expected.V, atol=1e-6)
    np.testing.assert_allclose(point.x, expected.x, atol=1e-6)


def test_a_sign_flip_is_refused():
    with pytest.raises(ValueError, match="would flip sign"):
        Update(0.5, 2.0)
