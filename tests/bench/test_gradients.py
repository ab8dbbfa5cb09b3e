"""The study of gradients measures what the paper defines."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scal.bench import gradients
from scal.envs.compiled import functional_env
from scal.learn import networks as nets
from scal.learn import policy, scal
from scal.run.agent import configure

SMALL = {"width": 8, "batch_size": 4, "replay_size": 16}


def learner_in(name, preset="replayed", **options):
    env = functional_env(name)
    config = configure(preset, SMALL | options, env.spaces, False)
    keys = jax.random.split(jax.random.key(1), 2)
    learner = jax.vmap(partial(scal.init, spaces=env.spaces, config=config))(keys)
    return learner, env, config


def measured(*given):
    learner, env, config = given
    seen = gradients.variances(learner, jax.random.key(2), env, config)
    return {name: np.asarray(value) for name, value in seen._asdict().items()}


def test_the_two_agree_where_nothing_is_random_and_x_is_z():
    seen = measured(*learner_in("Acrobot-v1", mu=1e-7, beta=1e8))
    assert seen["x"].shape == (2,)
    assert (seen["x"] > 0).all()
    np.testing.assert_allclose(seen["x"], seen["z"], rtol=1e-4)
    np.testing.assert_allclose(seen["x_given_sa"], 0.0, atol=1e-9)


def test_random_successors_cost_the_naive_estimator_more():
    seen = measured(*learner_in("scal/NoisyAcrobot-v0", "paper", mu=30.0, beta=1.0))
    assert (seen["x_given_sa"] > 0).all()
    assert (seen["z_given_sa"] > 2.0 * seen["x_given_sa"]).all()


@pytest.mark.parametrize("preset", ["replayed", "paper"])
def test_estimates_are_gradients_of_the_lagrangian(preset):
    learners, env, config = learner_in("Acrobot-v1", preset)
    learner = jax.tree.map(lambda leaf: leaf[0], learners)
    key, state, start = jax.random.key(3), jnp.array([0.3, -1.0, 0.5, 1.5]), jnp.zeros(4)
    action, log_prob = jnp.int32(2), jnp.log(0.4)
    g1, g2 = gradients._estimates(learner, env, config, state, action, log_prob, start, key)

    after, _, terminated = env.step(key, state, action)
    assert not terminated
    now, then, first = env.observe(state), env.observe(after), env.observe(start)
    layout = learner.networks.value.layout

    def lagrangian(vector, weight):
        V = partial(nets.value, nets.Parameters(vector, layout))
        return V(first) + weight * (config.gamma * V(then) - V(now))

    mass, logits = nets.heads(learner.networks.multiplier, now, env.spaces, config)
    log_pi = jax.nn.log_softmax(logits)[2]
    x = policy.multiplier(mass, log_pi, log_prob, action, env.spaces, config)
    expected = jax.grad(lagrangian)(learner.networks.value.vector, x)
    np.testing.assert_allclose(g1, expected, rtol=1e-5, atol=1e-7)
    V = partial(nets.value, learner.networks.value)
    reward = -1.0 if preset == "paper" else -1.0 / np.sqrt(1.0 + 1e-4)  # no return was seen yet
    delta = reward + config.gamma * V(then) - V(now)
    if preset == "replayed":
        z = jnp.maximum(x + config.mu * delta, 0.0)
    else:
        h = nets.slack(learner.networks.slack, now, action, True, config.slack_scale)
        z = x + config.mu * (h + delta)
    expected = jax.grad(lagrangian)(learner.networks.value.vector, z)
    np.testing.assert_allclose(g2, expected, rtol=1e-4, atol=1e-6)


def test_estimators_of_own_actions_are_not_compared():
    with pytest.raises(ValueError, match="compare the estimators with the preset replayed or"):
        measured(*learner_in("Acrobot-v1", "default"))
