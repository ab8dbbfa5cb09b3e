"""SCAL finds what is known, with discrete and continuous actions, for every one of four seeds."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scal.learn import networks as nets
from scal.learn import policy, statistics
from scal.learn.config import CONTINUOUS, Config
from scal.run import compiled
from tests.learn import probes

SEEDS = 4


def trained(env, steps, **options):
    """Runs after so many steps, what the second half of them looked like, and their options."""
    small = {"gamma": probes.GAMMA, "warmup": 200, "replay_size": 2_000, "sigma": 0.3, "width": 32}
    config = Config(**(small | options))
    runs = compiled.start(jnp.arange(SEEDS), {}, env, config)
    runs, _ = compiled.advance(runs, {}, env, config, config.warmup, learning=False)
    for _ in range(2):
        runs, trace = compiled.advance(runs, {}, env, config, steps // 2)
    return runs, trace, config


def learned(env, steps, **options):
    """Values and greedy actions (seeds, states) after so many steps."""
    runs, trace, config = trained(env, steps, **options)
    states = jnp.eye(env.spaces.observation_size)

    def read(learner):
        scale = statistics.reward_scale(learner.statistics)
        _, head = nets.heads(learner.networks.multiplier, states, env.spaces, config)
        best = policy.greedy(head, env.spaces)
        return nets.value(learner.networks.value, states) / scale, best

    values, actions = jax.vmap(read)(runs.learner)
    return np.asarray(values), np.asarray(actions), runs, trace


@pytest.mark.parametrize(("slack", "units"), [("closed", "state"), ("network", "all")])
def test_bandit(slack, units):
    env = probes.bandit()
    values, actions, runs, trace = learned(env, 4_000, slack=slack, units=units)
    assert (actions == 1).all()
    # the behaviour explores with ε, so that V lies between 1 − ε/2 and 1
    np.testing.assert_allclose(values, 1.0, atol=0.12)
    if slack == "network":  # the slack of the worse action is the larger one
        both = jax.vmap(lambda psi: nets.slack(psi, jnp.ones((2, 1)), jnp.arange(2), True, 1.0))
        worse, better = both(runs.learner.networks.slack).T
        assert (worse > better).all()
    # every step ends the episode, so that the mass is 1 − γ·flow and not 1
    predicted = trace.metrics.mass_predicted
    np.testing.assert_allclose(predicted, 1 - probes.GAMMA * Config().flow, atol=1e-5)
    # x is fitted to [z]₊, which cuts the noise of z on one side: the mass lies a little above
    np.testing.assert_allclose(trace.metrics.mass, predicted, atol=0.15)


def test_delayed_reward():
    values, actions, _, _ = learned(probes.delayed(), 6_000)
    assert (actions == 1).all()
    np.testing.assert_allclose(values, [[probes.GAMMA, 1.0]] * SEEDS, atol=0.15)


def test_delayed_reward_one_after_another():
    options = {"cuts": False, "n_steps": 1, "order": "gauss_seidel"}
    values, actions, _, _ = learned(probes.delayed(), 4_000, **options)
    assert (actions == 1).all()
    np.testing.assert_allclose(values, [[probes.GAMMA, 1.0]] * SEEDS, atol=0.15)


def test_continuous_target():
    values, actions, _, _ = learned(probes.target(), 6_000)
    np.testing.assert_allclose(np.tanh(actions[..., 0]), 0.5, atol=0.15)
    # noise σ = .3 before the tanh costs at first about (.75 · .3)²
    np.testing.assert_allclose(values, 0.95, atol=0.1)


@pytest.mark.parametrize("learn_sigma", [True, False])
def test_sigma_shrinks_where_noise_costs(learn_sigma):
    env = probes.target()
    runs, _, config = trained(env, 2_000, learn_sigma=learn_sigma, sigma=0.6)

    def sigma(learner):
        return nets.heads(learner.networks.multiplier, jnp.zeros(1), env.spaces, config)[1].sigma

    found = np.asarray(jax.vmap(sigma)(runs.learner))
    assert (found < 0.56).all() if learn_sigma else (found == np.float32(0.6)).all()


def test_sigma_has_a_floor_and_starts_where_it_is_told():
    env = probes.target()
    for start, floor in ((0.7, nets.SIGMA_BOUNDS[0]), (0.05, 0.05)):
        config = dataclasses.replace(CONTINUOUS, sigma=start)
        theta = nets.init_networks(jax.random.key(0), env.spaces, config).multiplier
        for change, expected in ((0.0, start), (-100.0, floor)):
            layers = theta.layers._replace(log_sigma=jnp.full(1, change))
            head = nets.heads(nets.Parameters.of(layers), jnp.zeros(1), env.spaces, config)[1]
            np.testing.assert_allclose(head.sigma, expected, rtol=1e-6)


def test_two_continuous_targets():
    _, actions, _, _ = learned(probes.two_targets(), 8_000)
    np.testing.assert_allclose(np.tanh(actions[..., 0]), [[-0.5, 0.5]] * SEEDS, atol=0.2)


@pytest.mark.parametrize("multiplier", ["density", "ratio"])
def test_both_multipliers_find_the_better_action(multiplier):
    _, actions, _, _ = learned(probes.bandit(), 4_000, multiplier=multiplier)
    assert (actions == 1).all()
