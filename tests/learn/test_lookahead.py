"""The objective at the policy's own actions: gradients, divergences, and what is learned."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scal.envs.functional import Spaces
from scal.learn import lookahead, policy, scal
from scal.learn import networks as nets
from scal.learn.config import CONTINUOUS, DISCRETE
from scal.learn.networks import Gaussian
from scal.learn.replay import Transition
from scal.run import checkpoint
from scal.run.agent import SCAL
from tests.learn import probes
from tests.learn.test_probes import SEEDS, learned

SPACES = Spaces(3, 1, discrete=False, action_scale=(1.0,))
NODES = np.linspace(-7.0, 7.0, 40_001)
WEIGHTS = np.exp(-0.5 * NODES**2)
WEIGHTS /= WEIGHTS.sum()
"""E[f(ε)] ≈ Σ w f(node) for ε ~ N(0, 1)."""


@pytest.fixture(scope="module")
def networks():
    """With a policy and a lookahead that are not flat."""
    start = nets.init_networks(jax.random.key(0), SPACES, CONTINUOUS)
    return jax.tree.map(lambda weights: 3.0 * weights + 0.05, start)


def own(networks, noise, observation):
    return lookahead.at_own_actions(
        networks, networks.multiplier, observation, noise, SPACES, CONTINUOUS
    )


def test_the_gradient_along_the_action_is_that_of_the_likelihood(networks):
    """∇E[y(s, x₂ + σε)] = E[y ∇log π], both by quadrature."""
    observation = jnp.broadcast_to(jnp.array([0.3, -0.8, 0.5]), (len(NODES), 3))
    weights = jnp.asarray(WEIGHTS, jnp.float32)
    noise = jnp.asarray(NODES, jnp.float32)[:, None]
    head = nets.heads(networks.multiplier, observation, SPACES, CONTINUOUS)[1]
    action = head.mean + head.sigma * noise
    y = nets.lookahead(networks.slack, observation, action).min(axis=0)

    def along_action(theta):
        return weights @ own(networks._replace(multiplier=theta), noise, observation).target[0]

    def along_likelihood(theta):
        moved = nets.heads(theta, observation, SPACES, CONTINUOUS)[1]
        return weights @ ((y - weights @ y) * policy.log_prob(moved, action, SPACES))

    one, two = (jax.grad(f)(networks.multiplier).vector for f in (along_action, along_likelihood))
    assert float(jnp.linalg.norm(two)) > 0.01
    assert float(jnp.linalg.norm(one - two)) < 0.02 * float(jnp.linalg.norm(two))


def test_who_learns_from_what(networks):
    """The fit moves ψ alone, the policy's step θ alone."""
    observation, noise = jnp.ones((4, 3)), jnp.linspace(-1.0, 1.0, 4)[:, None]
    nothing = jnp.zeros(4)
    rows = Transition(observation, noise, nothing, nothing, observation, nothing, nothing)

    def fit(networks):
        return lookahead.fit(networks.slack, rows, jnp.ones(4), jnp.ones(()), SPACES).mean()

    def follow(networks):
        terms = own(networks, noise, observation)
        return lookahead.follow(terms, jnp.ones(()), SPACES, CONTINUOUS).mean()

    def moved(loss):
        found = jax.grad(loss)(networks)
        return {n for n in found._fields if jnp.abs(getattr(found, n).vector).max() > 0}

    assert moved(fit) == {"slack"}
    assert moved(follow) == {"multiplier"}


def test_two_networks_differ_and_the_lower_is_believed(networks):
    observation, noise = jnp.ones((5, 3)), jnp.zeros((5, 1))
    head = nets.heads(networks.multiplier, observation, SPACES, CONTINUOUS)[1]
    both = nets.lookahead(networks.slack, observation, head.mean)
    assert both.shape == (2, 5)
    assert float(jnp.abs(both[0] - both[1]).max()) > 1e-3
    np.testing.assert_array_equal(
        own(networks, noise, observation).target[0], np.minimum(both[0], both[1])
    )


def test_divergence_of_gaussians():
    """KL(N(0, 1)‖N(1, 2²)) = log 2 + (1 + 1)/8 − ½, and it adds up over dimensions."""
    one = Gaussian(jnp.zeros(2), jnp.ones(2))
    other = Gaussian(jnp.ones(2), jnp.full(2, 2.0))
    expected = 2 * (np.log(2.0) + 2.0 / 8.0 - 0.5)
    assert float(policy.divergence(one, other, SPACES)) == pytest.approx(expected, rel=1e-6)
    assert float(policy.divergence(one, one, SPACES)) == 0.0


def test_entropy_is_that_of_the_action_itself(networks):
    """log π of tanh(u): its density integrates to one over the actions."""
    u = jnp.linspace(-12.0, 12.0, 20_001)[:, None]
    head = nets.heads(networks.multiplier, jnp.ones((1, 3)), SPACES, CONTINUOUS)[1]
    noise = (u - head.mean) / head.sigma
    log_pi = -own(networks, noise, jnp.ones((len(u), 3))).entropy
    slope = 1.0 - np.tanh(np.asarray(u[:, 0], np.float64)) ** 2
    total = np.trapezoid(np.exp(np.asarray(log_pi, np.float64)) * slope, np.asarray(u[:, 0]))
    assert total == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("ordered", [False, True])
def test_all_discrete_actions_are_looked_at(ordered):
    """The policy's step is the one that a sum over actions gives, and each is fitted by itself."""
    spaces = Spaces(3, 4, discrete=True, ordered=ordered)
    start = nets.init_networks(jax.random.key(0), spaces, DISCRETE)
    networks = jax.tree.map(lambda weights: 3.0 * weights + 0.05, start)
    seen = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)
    terms = lookahead.at_own_actions(networks, start.multiplier, seen, None, spaces, DISCRETE)
    logits, before = (
        np.asarray(nets.heads(theta, seen, spaces, DISCRETE)[1], np.float64)
        for theta in (networks.multiplier, start.multiplier)
    )
    log_pi = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    log_bar = before - np.log(np.exp(before).sum(axis=1, keepdims=True))
    both = np.asarray(nets.lookahead_of_all(networks.slack, seen, spaces), np.float64)
    assert both.shape == (2, 2, 4)
    for s in range(2):
        kl = gain = entropy = 0.0
        for a in range(4):
            pi = np.exp(log_pi[s, a])
            kl += pi * (log_pi[s, a] - log_bar[s, a])
            gain += pi * min(both[0, s, a], both[1, s, a])
            entropy -= pi * log_pi[s, a]
        found = lookahead.follow(terms, jnp.ones(()), spaces, DISCRETE)[s]
        step, worth = DISCRETE.policy_step, DISCRETE.entropy
        assert float(found) == pytest.approx(kl - step * (gain + worth * entropy), rel=1e-4)
    nothing = jnp.zeros(2)
    rows = Transition(seen, jnp.array([1, 3]), nothing, nothing, seen, nothing, nothing)
    errors = lookahead.fit(networks.slack, rows, jnp.ones(2), jnp.ones(()), spaces)
    np.testing.assert_allclose(
        errors, [0.5 * ((both[:, s, a] - 1.0) ** 2).sum() for s, a in ((0, 1), (1, 3))], rtol=1e-4
    )


def test_what_is_expected_of_a_replayed_action_is_itself():
    assert lookahead.expected(None, 3.0) == 3.0
    found = lookahead.expected(jnp.array([[0.25], [0.75]]), jnp.array([[4.0], [8.0]]))
    assert found.tolist() == [7.0]


CONFIG = {
    field.name: getattr(CONTINUOUS, field.name)
    for field in dataclasses.fields(CONTINUOUS)
    if field.name in {"slack", "flow", "policy_step", "batch_size"}
} | {"lookahead_width": 32, "entropy": 0.01}


def test_one_target():
    values, actions, _, trace = learned_own(probes.target(), 4_000)
    np.testing.assert_allclose(np.tanh(actions[..., 0]), 0.5, atol=0.15)
    np.testing.assert_allclose(values, 0.95, atol=0.1)
    np.testing.assert_allclose(trace.metrics.mass, 1.0, atol=0.1)


def test_two_targets():
    _, actions, _, _ = learned_own(probes.two_targets(), 6_000)
    np.testing.assert_allclose(np.tanh(actions[..., 0]), [[-0.5, 0.5]] * SEEDS, atol=0.2)


def test_one_step_and_two_steps_of_discrete_actions():
    values, actions, _, trace = learned_own(probes.bandit(), 3_000)
    np.testing.assert_allclose(values, 1.0, atol=0.1)
    assert (actions == 1).all()
    np.testing.assert_allclose(trace.metrics.mass, 1.0, atol=0.1)
    values, actions, _, _ = learned_own(probes.delayed(), 3_000)
    np.testing.assert_allclose(values, [[probes.GAMMA, 1.0]] * SEEDS, atol=0.1)
    assert (actions == 1).all()


def learned_own(env, steps):
    return learned(env, steps, **CONFIG)


def digest(**options):
    """Of a learner after an update."""
    config = dataclasses.replace(
        CONTINUOUS, replay_size=64, environments=1, batch_size=8, **options
    )
    learner = scal.init(jax.random.key(0), SPACES, config)
    for t in range(20):
        seen, after = jnp.full((1, 3), 0.1 * t), jnp.full((1, 3), 0.1 * t + 0.1)
        learner, (action, log_prob) = scal.act(learner, seen, SPACES, config)
        ended = jnp.array([t % 9 == 8])
        row = Transition(seen, action, log_prob, action[:, 0], after, ended, ended)
        learner = scal.observe(learner, row, after, config)
    learner, _ = scal.update(learner, SPACES, config)
    return checkpoint.digest(learner.networks)


@pytest.fixture(scope="module")
def usual():
    return digest()


@pytest.mark.parametrize(
    "changed",
    [{"policy_step": 1.0}, {"entropy": 0.0}, {"lookahead_width": 16}, {"slack": "closed"}],
)
def test_every_option_has_an_effect(changed, usual):
    assert digest() == usual
    assert digest(**changed) != usual


@pytest.mark.parametrize(
    ("env", "options", "sentence"),
    [
        ("Pendulum-v1", {"algorithm": "deep-alm"}, "slack is 'lookahead', for SCAL itself"),
    ],
)
def test_bad_input_is_one_sentence(env, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        SCAL(env, slack="lookahead", **options)


def test_deep_alm_keeps_the_closed_slack():
    assert SCAL("Pendulum-v1", algorithm="deep-alm").config.slack == "closed"
