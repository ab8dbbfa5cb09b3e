"""Two-layer networks against formulas, finite Hessians and the tabular penalty step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from scal.theory import ntk, penalty
from scal.theory.errors import Iterate
from scal.theory.studies.problems import small

MDP = small()["random"]
PENALTY = ntk.Penalty(mu=2.0, beta=2.0)


@pytest.fixture(scope="module")
def problem():
    return ntk.embed(MDP, 8)


def test_inputs_have_norm_one(problem):
    for points in (problem.states, problem.pairs):
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0, rtol=1e-6)


def test_network_by_hand():
    layer = ntk.Layer(b=jnp.array([1.0, -1.0]), W0=jnp.array([[1.0, 0.0], [0.0, 1.0]]))
    W = jnp.array([[2.0, 0.0], [0.0, -3.0]])  # the second unit has changed its sign
    u = jnp.array([[0.6, 0.8]])
    np.testing.assert_allclose(ntk.evaluate(layer, W, u), 1.2 / np.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(ntk.linearised(layer, W, u), (1.2 + 2.4) / np.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(ntk.linearisation_error(layer, W, u), -2.4 / np.sqrt(2), rtol=1e-6)


def test_linearisation_is_the_first_order_model(problem):
    """Equal at the start, linear in W, with the gradient of the network."""
    layer = ntk.init_layer(jax.random.key(0), 32, 16)
    W = ntk.move(jax.random.key(1), layer, 2.0, "random")
    at_start = ntk.evaluate(layer, layer.W0, problem.pairs)
    _, slope = jax.jvp(
        lambda W: ntk.evaluate(layer, W, problem.pairs), (layer.W0,), (W - layer.W0,)
    )
    linear = ntk.linearised(layer, W, problem.pairs)
    np.testing.assert_allclose(linear, at_start + slope, atol=1e-5)
    error = ntk.evaluate(layer, W, problem.pairs) - linear
    np.testing.assert_allclose(ntk.linearisation_error(layer, W, problem.pairs), error, atol=1e-5)
    assert np.abs(error).max() > 1e-3


@pytest.mark.parametrize("direction", ["random", "coherent"])
def test_moves_have_the_distance_asked_for(direction):
    layer = ntk.init_layer(jax.random.key(0), 64, 8)
    W = ntk.move(jax.random.key(1), layer, 1.7, direction)
    assert float(jnp.linalg.norm(W - layer.W0)) == pytest.approx(1.7, rel=1e-5)


@pytest.mark.parametrize("c", [0.5, 1.0])
def test_loss_is_the_penalty_objective_at_its_best_slack(problem, c):
    rng = np.random.default_rng(0)
    mu, beta = 2.0, 2.0
    old, V, x = 2 * rng.random((8, 2)), rng.normal(size=8), rng.normal(size=(8, 2))
    w = np.full((8, 2), 1 / 16)
    found = ntk.penalty_loss(
        jnp.asarray(V), jnp.asarray(x.ravel()), jnp.asarray(old.ravel()), problem,
        ntk.Penalty(mu, beta, c),
    )  # fmt: skip
    least = np.zeros((8, 2))
    for h in np.linspace(0, 6, 6001):  # pairs are separate: the best h of each
        Z = old + mu * (h + MDP.backup(V) - V[:, None])
        terms = c / mu * x * Z + beta / 2 * (x - Z) ** 2
        least = terms if h == 0 else np.minimum(least, terms)
    assert float(found) == pytest.approx(MDP.rho0 @ V + (w * least).sum(), rel=1e-4)
    best = penalty.penalty_step(MDP, old, mu, beta, c, w)
    at_best = ntk.penalty_loss(
        jnp.asarray(best.V), jnp.asarray(best.x.ravel()), jnp.asarray(old.ravel()), problem,
        ntk.Penalty(mu, beta, c),
    )  # fmt: skip
    value = penalty.penalty_objective(MDP, Iterate(*best), old, mu, beta, c, w)
    assert float(at_best) == pytest.approx(value, rel=1e-4)
    assert float(at_best) < float(found)


def test_curvature_is_the_largest_eigenvalue_of_the_hessian(problem):
    """With x' so large that no slack is used, L̃ is quadratic in ζ."""
    networks = ntk.init_networks(jax.random.key(3), 6, problem)
    old = jnp.full(16, 100.0)
    start = ntk.start(networks)
    flat, unflatten = ravel_pytree(start)

    def loss(vector):
        V, x = ntk.functions(networks, unflatten(vector), problem, True)
        return ntk.penalty_loss(V, x, old, problem, PENALTY)

    largest = np.linalg.eigvalsh(jax.hessian(loss)(flat))[-1]
    assert float(ntk.curvature(networks, problem, PENALTY)) == pytest.approx(largest, rel=1e-4)


def descended(problem, width, steps, R=30.0, linear=False):
    networks = ntk.init_networks(jax.random.key(0), width, problem)
    at = ntk.start(networks)
    old = ntk.functions(networks, at, problem, False)[1]
    averages = ntk.descend(networks, at, old, problem, PENALTY, R, steps // 4, 4, linear)
    exact = penalty.penalty_step(MDP, np.asarray(old, float).reshape(8, 2), *PENALTY).x.ravel()
    errors = (np.asarray(problem.w) * (np.asarray(averages.x) - exact) ** 2).sum(axis=1)
    return averages, errors, at


def test_descent_reaches_the_penalty_step_and_wide_networks_their_twins(problem):
    gaps = []
    for width in (16, 1024):
        real, errors, _ = descended(problem, width, 400)
        twin, _, _ = descended(problem, width, 400, linear=True)
        assert (np.diff(errors) < 0).all()
        gaps.append(float(((real.x - twin.x)[-1] ** 2).mean()))
    assert errors[-1] < 0.2 * errors[0]
    assert gaps[1] < 0.25 * gaps[0]


def test_parameters_stay_in_the_ball(problem):
    averages, _, at = descended(problem, 64, 40, R=0.5)
    for moved, start in zip(averages.at, at, strict=True):
        assert 0.2 < float(jnp.linalg.norm(moved - start)) <= 0.5 * (1 + 1e-5)


def test_the_slack_network_starts_at_the_root_of_its_width(problem):
    keys = jax.random.split(jax.random.key(0), 64)
    for width in (64, 1024):
        found = np.mean([ntk.initial_slack(key, width, problem.pairs) for key in keys])
        assert found == pytest.approx(np.sqrt(width / (2 * np.pi * 16)), rel=0.05)
