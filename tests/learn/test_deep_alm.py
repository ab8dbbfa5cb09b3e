"""The deep parameterised ALM: its three steps, its outer iterations, what it learns."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scal
from scal.cli import main, parse
from scal.learn import deep_alm, terms
from scal.learn import networks as nets
from scal.learn import scal as learning
from scal.learn.config import PAPER, Config
from scal.learn.replay import Batch, Transition
from scal.run import checkpoint, compiled
from tests.learn import probes
from tests.learn.test_update import SPACES, digest, filled

PLAIN = dataclasses.replace(
    PAPER, algorithm="deep-alm", sampling="uniform", width=8, depth=1, clip=1e6, mu=0.7
)


def batch_of(size):
    """Random transitions, one of which terminates."""
    keys = jax.random.split(jax.random.key(5), 5)
    terminated = jnp.zeros((size, 1), bool).at[0].set(True)
    window = Transition(
        observation=jax.random.normal(keys[0], (size, 1, 1)),
        action=jax.random.randint(keys[1], (size, 1), 0, 2),
        log_prob=jnp.full((size, 1), jnp.log(0.5)),
        reward=jax.random.normal(keys[2], (size, 1)),
        next_observation=jax.random.normal(keys[3], (size, 1, 1)),
        terminated=terminated,
        ended=terminated,
    )
    return Batch(window, jnp.ones((size, 1), bool), jax.random.normal(keys[4], (size, 1)))


def by_hand(networks, frozen, batch, config):
    """(update-x), (update-V) and (update-h) in this order, assembled from ∇x, ∇V and ∇h."""
    mu, gamma, size = config.mu, config.gamma, len(batch.starts)
    rows = jax.tree.map(lambda field: field[:, 0], batch.window)

    def V(phi, s):
        return nets.value(phi, s)

    def h(psi, i):
        return nets.slack(psi, rows.observation[i], rows.action[i], True, config.slack_scale)

    def x(theta, i):
        mass, logits = nets.heads(theta, rows.observation[i], SPACES, config)
        return mass * jax.nn.softmax(logits)[rows.action[i]]

    def z(phi, psi, i):
        after = jnp.where(rows.terminated[i], 0.0, V(phi, rows.next_observation[i]))
        error = h(psi, i) + rows.reward[i] + gamma * after - V(phi, rows.observation[i])
        return x(frozen, i) + mu * error

    def step(parameters, rate, gradients):
        mean = jax.tree.map(lambda *parts: sum(parts) / size, *gradients)
        return jax.tree.map(lambda p, g: p - rate * g, parameters, mean)

    def scaled(factor, tree):
        return jax.tree.map(lambda part: factor * part, tree)

    phi, psi, theta = networks
    theta_new = step(
        theta,
        config.lr_multiplier,
        [scaled(x(theta, i) - z(phi, psi, i), jax.grad(x)(theta, i)) for i in range(size)],
    )

    def gradient_of_V(theta, i):
        at = jax.grad(V)
        factor = gamma * (1.0 - rows.terminated[i])
        terms = (
            scaled(1.0 - gamma, at(phi, batch.starts[i])),
            scaled(x(theta, i) * factor, at(phi, rows.next_observation[i])),
            scaled(-x(theta, i), at(phi, rows.observation[i])),
        )
        return jax.tree.map(lambda *parts: sum(parts), *terms)

    def moved_V(theta):
        return step(phi, config.lr_value, [gradient_of_V(theta, i) for i in range(size)])

    psi_new = step(
        psi,
        config.lr_slack,
        [scaled(x(theta_new, i), jax.grad(h)(psi, i)) for i in range(size)],
    )
    return nets.Networks(moved_V(theta_new), psi_new, theta_new), moved_V(theta)


@pytest.mark.parametrize("auxiliary", [False, True])
def test_three_steps_equal_the_paper(auxiliary, monkeypatch):
    """With plain gradient steps, and θ^k, θ and τ that differ; θ itself then follows y_τ."""
    config = dataclasses.replace(
        PLAIN, lr_value=0.3, lr_slack=0.2, lr_multiplier=0.5, auxiliary=auxiliary
    )
    plain = optax.GradientTransformation(learning.ADAM.init, lambda g, moments: (g, moments))
    monkeypatch.setattr(learning, "ADAM", plain)
    learner = deep_alm.init(jax.random.key(0), SPACES, config)
    frozen, tau = (
        nets.init_networks(jax.random.key(seed), SPACES, config).multiplier for seed in (1, 2)
    )
    learner, before = learner._replace(multiplier_target=frozen), learner.networks
    if auxiliary:
        part = learner.inner.auxiliary._replace(network=tau)
        learner = learner._replace(inner=learner.inner._replace(auxiliary=part))
        before = before._replace(multiplier=tau)
    batch = batch_of(3)
    moved, _ = jax.jit(deep_alm.update_on, static_argnums=(2, 3))(learner, batch, SPACES, config)
    after = moved.networks
    if auxiliary:
        after = after._replace(multiplier=moved.inner.auxiliary.network)
    assembled = jax.jit(partial(by_hand, batch=batch, config=config))
    expected, at_old_theta = assembled(before, frozen)
    for name, ours, theirs in zip("Vhx", after, expected, strict=True):
        np.testing.assert_allclose(ours.vector, theirs.vector, atol=1e-5, err_msg=name)
    assert np.abs(at_old_theta.vector - expected.value.vector).max() > 1e-3
    np.testing.assert_array_equal(moved.value_target.vector, moved.networks.value.vector)

    if auxiliary:
        rows = jax.tree.map(lambda field: field[:, 0], batch.window)

        def x(theta):
            return terms.multiplier(theta, rows, SPACES, config)[0]

        theta = learner.networks.multiplier
        error = x(theta) - x(expected.multiplier)
        (gradient,) = jax.vjp(x, theta)[1](error / len(error))
        step = theta.vector - config.lr_multiplier * gradient.vector
        np.testing.assert_allclose(moved.networks.multiplier.vector, step, atol=1e-5)


@pytest.mark.parametrize("auxiliary", [False, True])
def test_frozen_multiplier_moves_at_the_end_of_an_outer_iteration(auxiliary):
    config = Config(
        algorithm="deep-alm",
        inner_steps=3,
        auxiliary=auxiliary,
        width=8,
        depth=1,
    )
    learner = filled(range(40), ended={9, 19, 29}, terminated={9, 29}, config=config)
    update = jax.jit(partial(deep_alm.update, spaces=SPACES, config=config))
    for number in range(1, 8):
        frozen = learner.multiplier_target.vector
        learner, _ = update(learner)
        over = number % 3 == 0
        expected = learner.networks.multiplier.vector if over else frozen
        np.testing.assert_array_equal(learner.multiplier_target.vector, expected)
        assert int(learner.inner.steps) == number % 3
        tau = learner.inner.auxiliary
        if auxiliary:
            assert not np.array_equal(tau.network.vector, learner.networks.multiplier.vector)
        else:
            assert tau is None


@pytest.mark.parametrize(
    ("tolerance", "fall", "end"), [(0.2, 0.9, 20), (0.2, 0.5, None), (0.0, 2.0, None)]
)
def test_outer_iteration_ends_where_the_fit_stalls(tolerance, fall, end):
    """The error of every block of ten steps is `fall` times that of the one before."""
    config = dataclasses.replace(PLAIN, inner_steps=1_000, inner_tolerance=tolerance)
    learner = deep_alm.init(jax.random.key(0), SPACES, config)
    count = jax.jit(partial(deep_alm._end, config=config))
    ends = []
    for number in range(45):
        learner = count(learner, jnp.float32(fall ** (number // 10)))
        if int(learner.inner.steps) == 0:
            ends.append(number + 1)
    assert ends == ([] if end is None else [end, 2 * end])


def test_options_of_scal_that_do_not_apply_have_no_effect():
    config = Config(algorithm="deep-alm", width=8, depth=1)
    other = dataclasses.replace(
        config, beta=1.0, flow=0.0, theta_step="penalty", order="gauss_seidel", targets="copy",
        period_value=2, period_multiplier=2,
    )  # fmt: skip
    assert digest(other) == digest(config)


@pytest.mark.parametrize("auxiliary", [False, True])
def test_delayed_reward(auxiliary):
    """V = (γ, 1) and the better actions, for every one of four seeds."""
    env, steps = probes.delayed(), 4_000
    config = Config(
        algorithm="deep-alm", auxiliary=auxiliary, gamma=probes.GAMMA, warmup=200,
        replay_size=2_000, width=16, batch_size=32, scale_rewards=False, anneal_steps=steps,
        units="raw", n_steps=1, mu=1.0, lr_value=3e-4, lr_multiplier=1e-2,
    )  # fmt: skip
    runs = compiled.start(jnp.arange(4), {}, env, config)
    runs, _ = compiled.advance(runs, {}, env, config, config.warmup, learning=False)
    for _ in range(2):
        runs, trace = compiled.advance(runs, {}, env, config, steps // 2)
    states = jnp.eye(2)
    values = jax.vmap(lambda one: nets.value(one.networks.value, states))(runs.learner)
    actions = jax.vmap(lambda one: learning.greedy(one, states, env.spaces, config))(runs.learner)
    assert (actions == 1).all()
    np.testing.assert_allclose(values, [[probes.GAMMA, 1.0]] * 4, atol=0.15)
    np.testing.assert_allclose(trace.metrics.mass, trace.metrics.mass_predicted, atol=0.05)


@pytest.mark.parametrize("auxiliary", [False, True])
def test_resume_is_exact(auxiliary, tmp_path):
    """From the middle of an outer iteration."""
    options = {
        "algorithm": "deep-alm", "auxiliary": auxiliary, "inner_steps": 70, "inner_tolerance": 0.1,
        "width": 16, "batch_size": 16, "warmup": 100, "anneal_steps": 1_000,
    }  # fmt: skip
    whole = scal.SCAL("CartPole-v1", seed=3, **options).learn(400)
    half = scal.SCAL("CartPole-v1", seed=3, **options).learn(205)
    half.save(tmp_path)
    resumed = scal.SCAL.load(tmp_path)
    assert resumed.config.algorithm == "deep-alm"
    assert int(resumed.learner.inner.steps) > 0
    resumed.learn(195)
    assert checkpoint.digest(resumed.learner) == checkpoint.digest(whole.learner)
    plain = scal.SCAL("CartPole-v1", seed=3, **options | {"algorithm": "scal"}).learn(400)
    assert plain.digest() != whole.digest()


def test_command_line(capsys):
    assert parse(["train", "CartPole-v1"]).config.algorithm == "scal"
    config = parse(["train", "CartPole-v1", "--algorithm", "deep-alm", "--auxiliary"]).config
    assert (config.algorithm, config.auxiliary) == ("deep-alm", True)
    assert main(["train", "CartPole-v1", "--algorithm", "alm"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "alm" in said
    assert "deep-alm" in said
    with pytest.raises(ValueError, match="algorithm is 'alm'; use one of scal, deep-alm"):
        scal.SCAL("CartPole-v1", algorithm="alm")
