"""The pieces of an update: targets, sampling, statistics, options."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from scal.envs.functional import Spaces
from scal.learn import networks as nets
from scal.learn import replay, scal, statistics, terms
from scal.learn.algorithms import algorithm
from scal.learn.config import PAPER, PRESETS, Config
from scal.learn.metrics import predicted_mass
from scal.learn.replay import Transition
from scal.run import checkpoint

SPACES = Spaces(1, 2, discrete=True)
USUAL = Config()


def filled(rewards, ended, terminated, capacity=100, config=USUAL):
    """A learner whose buffer holds one trajectory; the observation is the time."""
    if capacity:
        config = dataclasses.replace(config, replay_size=capacity)
    learner = algorithm(config).init(jax.random.key(0), SPACES, config)
    for t, reward in enumerate(rewards):
        row = Transition(
            observation=jnp.full((1, 1), float(t)),
            action=jnp.zeros(1, jnp.int32),
            log_prob=jnp.full(1, jnp.log(0.5)),
            reward=jnp.full(1, reward),
            next_observation=jnp.full((1, 1), t + 1.0),
            terminated=jnp.array([t in terminated]),
            ended=jnp.array([t in ended]),
        )
        learner = scal.observe(learner, row, row.next_observation, config)
    return learner


@pytest.mark.parametrize("length", [1, 3, 5])
def test_plain_multi_step_target_by_hand(length):
    """Σ_{j<m} γ^j r + γ^m V̄(s_m) with m cut at the episode's end; nothing after a termination."""
    config = Config(
        n_steps=length,
        cuts=False,
        clip_targets=False,
        scale_rewards=False,
        batch_size=256,
    )
    rewards, gamma = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0], config.gamma
    learner = filled(rewards, ended={2, 5}, terminated={5}, config=config)
    batch = replay.sample(jax.random.key(1), learner.replay, 256, length, 1.0)
    target = terms.multi_step_target(learner, batch, SPACES, config)
    V = np.asarray(nets.value(learner.value_target, jnp.arange(9.0)[:, None]))
    seen = set()
    for first, found in zip(batch.window.observation[:, 0, 0], target, strict=True):
        t, total, weight = int(first), 0.0, 1.0
        seen.add(t)
        for j in range(length):
            total += weight * rewards[t + j]
            weight *= gamma
            last = t + j
            if last in {2, 5, 7}:
                break
        expected = total + (0.0 if last == 5 else weight * V[last + 1])
        assert float(found) == pytest.approx(expected, rel=1e-5)
    assert seen == set(range(8))


def test_cuts_follow_the_policy():
    """With π = ½ and π_b = 1 stored, every later step counts half."""
    config = Config(n_steps=3, clip_targets=False, scale_rewards=False)
    learner = filled([0.0] * 10, ended=set(), terminated=set(), config=config)
    layers = learner.networks.multiplier.layers
    policy_off = layers._replace(policy=jax.tree.map(jnp.zeros_like, layers.policy))
    learner = learner._replace(
        networks=learner.networks._replace(multiplier=nets.Parameters.of(policy_off))
    )
    batch = replay.sample(jax.random.key(3), learner.replay, 64, 3, 1.0)
    certain = jnp.zeros_like(batch.window.log_prob)
    batch = batch._replace(window=batch.window._replace(log_prob=certain))
    V = np.asarray(nets.value(learner.value_target, jnp.arange(11.0)[:, None]))
    target = np.asarray(terms.multi_step_target(learner, batch, SPACES, config))
    half = 0.5 * config.gamma
    for i, t in enumerate(np.asarray(batch.window.observation[:, 0, 0]).astype(int)):
        steps = [config.gamma * V[t + 1]]
        steps += [config.gamma * V[t + 1 + j] - V[t + j] for j in (1, 2) if t + j < 10]
        expected = sum(half**j * step for j, step in enumerate(steps))
        assert target[i] == pytest.approx(expected, abs=1e-5)


def test_window_forgets_the_oldest():
    learner = filled(range(30), ended=set(), terminated=set(), capacity=8)
    batch = replay.sample(jax.random.key(0), learner.replay, 512, 2, 1.0)
    first = np.asarray(batch.window.reward[:, 0])
    assert set(first.astype(int)) == set(range(22, 30))
    follows = np.asarray(batch.valid[:, 1])
    assert (follows == (first < 29)).all()
    np.testing.assert_array_equal(
        np.asarray(batch.window.reward[:, 1])[follows], first[follows] + 1
    )


def test_initial_states_are_kept_apart():
    learner = filled(range(10), ended={3, 6}, terminated={3, 6})
    batch = replay.sample(jax.random.key(0), learner.replay, 256, 1, 0.0)
    assert set(np.asarray(batch.starts).ravel().tolist()) == {4.0, 7.0}
    mixed = replay.sample(jax.random.key(0), learner.replay, 4096, 1, 0.5)
    share = np.isin(np.asarray(mixed.starts), [4.0, 7.0]).mean()
    assert 0.55 < share < 0.65  # half, and a fifth of the other half


def test_proportional_sampling_follows_its_weights():
    learner = filled(range(10), ended=set(), terminated=set())
    counts = np.zeros(10)
    for seed in range(40):
        batch = replay.sample(
            jax.random.key(seed), learner.replay, 256, 1, 1.0, weigh=lambda rows: rows.reward
        )
        counts += np.bincount(np.asarray(batch.window.reward[:, 0]).astype(int), minlength=10)
    share, weight = counts / counts.sum(), np.arange(10.0)
    weight += 1e-2 * weight.mean()
    np.testing.assert_allclose(share, weight / weight.sum(), atol=0.012)


def test_statistics_follow_the_data():
    rng = np.random.default_rng(0)
    stats = statistics.init_statistics(2, 1)
    observations = rng.normal(3.0, 2.0, (4000, 1, 2)).astype(np.float32)
    see = jax.jit(statistics.see)
    for o in observations:
        stats = see(stats, o, jnp.array([1.0]), jnp.array([True]), 0.9)
    np.testing.assert_allclose(stats.observation_mean, observations.mean((0, 1)), atol=0.02)
    np.testing.assert_allclose(stats.observation_variance, 4.0, atol=0.4)
    seen = statistics.normalize(stats, jnp.asarray(observations[:, 0]))
    assert abs(float(seen.mean())) < 0.05
    assert float(statistics.normalize(stats, jnp.full(2, 1e9)).max()) == 10.0
    assert float(stats.reward_high) == 1.0
    assert float(stats.reward_low) == 0.0


def digest(config):
    """Three updates on one trajectory and one action, without a compiler: it would take longer."""
    learner = filled(range(40), ended={9, 19, 29}, terminated={9, 29}, config=config, capacity=None)
    for _ in range(3):
        learner, _ = algorithm(config).update(learner, SPACES, config)
    learner, choice = scal.act(learner, jnp.full((64, 1), 0.5), SPACES, config)
    return checkpoint.digest((learner, choice))


CHANGES = {
    "units": "raw", "slack": "network", "multiplier": "density", "theta_step": "penalty",
    "order": "gauss_seidel", "targets": "copy", "sampling": "proportional", "cuts": False,
    "clip_targets": False, "scale_rewards": False, "normalize_observations": "yes",
    "n_steps": 2, "batch_size": 32, "replay_size": 30, "period_value": 3, "period_multiplier": 3,
    "anneal_steps": 100, "clip": 1e-3, "s0_mix": 0.5, "flow": 0.0, "gamma": 0.9, "epsilon": 0.9,
    "width": 16, "depth": 1, "algorithm": "deep-alm", "inner_steps": 2, "auxiliary": True,
}  # fmt: skip
ELSEWHERE = {
    "sigma", "learn_sigma", "warmup", "replay_share", "update_every", "inner_tolerance",
    "environments", "first_episode", "gamma_start", "period_share", "policy_step", "entropy",
    "lookahead_width", "updates",
}  # fmt: skip
"""For continuous actions, in the loops, and in longer runs."""


@pytest.fixture(scope="module")
def reference():
    return digest(USUAL)


@pytest.mark.parametrize(
    "name", [f.name for f in dataclasses.fields(Config) if f.name not in ELSEWHERE]
)
def test_every_option_has_an_effect(name, reference):
    value = CHANGES.get(name, getattr(USUAL, name) * 0.5 if name not in CHANGES else None)
    if name in {"slack_scale", "lr_slack"}:
        network = dataclasses.replace(USUAL, slack="network")
        assert digest(dataclasses.replace(network, **{name: value})) != digest(network)
    elif name in {"inner_steps", "auxiliary"}:
        deep = dataclasses.replace(USUAL, algorithm="deep-alm")
        assert digest(dataclasses.replace(deep, **{name: value})) != digest(deep)
    else:
        assert digest(dataclasses.replace(USUAL, **{name: value})) != reference


def test_the_horizon_grows_by_a_constant_rate():
    """From 1/(1 − 0.9) = 10 to 1/(1 − 0.999) = 1,000: 100 in the middle, 1,000 after the end."""
    config = Config(gamma=0.999, gamma_start=0.9, anneal_steps=200)
    learner = filled(range(40), ended={9, 19, 29}, terminated={9, 29}, config=config)

    def gamma(steps):
        seen = learner.statistics._replace(steps=jnp.asarray(steps))
        return float(scal.at_present(learner._replace(statistics=seen), config).gamma)

    found = [gamma(steps) for steps in (0, 100, 200, 300)]
    np.testing.assert_allclose(found, [0.9, 0.99, 0.999, 0.999], atol=1e-6)
    same = dataclasses.replace(config, gamma_start=0.999)
    assert digest(config) != digest(same)
    shorter = dataclasses.replace(config, gamma=0.8)  # it never shrinks
    np.testing.assert_allclose(scal.at_present(learner, shorter).gamma, 0.8, atol=1e-6)
    assert scal.at_present(learner, Config()).gamma == Config().gamma


def test_the_target_of_x_slows_down():
    """After 400 updates, a share of a half is 200; a fifth is less than T, which is 100."""
    before = filled(range(40), ended={9, 19, 29}, terminated={9, 29})
    before = before._replace(updates=jnp.asarray(399))

    def moved(**options):
        config = Config(period_multiplier=100, **options)
        after, _ = scal.update(before, SPACES, config)
        aims, olds, news = map(
            jax.tree.leaves,
            (after.networks.multiplier, before.multiplier_target, after.multiplier_target),
        )
        way = zip(aims, olds, news, strict=True)
        shares = [((new - old) / (aim - old)).ravel() for aim, old, new in way]
        return float(jnp.nanmedian(jnp.concatenate(shares)))

    assert moved() == pytest.approx(1 / 100, rel=1e-2)
    assert moved(period_share=0.2) == pytest.approx(1 / 100, rel=1e-2)
    assert moved(period_share=0.5) == pytest.approx(1 / 200, rel=1e-2)


def test_gauss_seidel_moves_one_network_at_a_time():
    """V comes first, so that both orders move it alike; h and x then see the new V."""
    learner = filled(range(40), ended={9, 19, 29}, terminated={9, 29})
    together = Config(slack="network")
    learner, _ = scal.update(learner, SPACES, together)
    turns = dataclasses.replace(together, order="gauss_seidel")
    jacobi, seidel = (scal.update(learner, SPACES, c)[0] for c in (together, turns))
    same = {
        name: checkpoint.digest(getattr(jacobi.networks, name))
        == checkpoint.digest(getattr(seidel.networks, name))
        for name in jacobi.networks._fields
    }
    assert same == {"value": True, "slack": False, "multiplier": False}
    assert int(seidel.moments.count) == 2


def test_each_layer_is_clipped_by_itself():
    """Adam's first moments are a tenth of what it was given."""
    learner = filled(range(3), ended=set(), terminated=set())
    given = jax.tree.map(lambda part: part + 0.01, learner.networks)
    moved = scal.descend(learner, learner, ["value"], given, PAPER)

    def norms(part):
        found = []
        part.map_layers(lambda layer: found.append(optax.tree.norm(layer)) or layer)
        return np.array(found)

    before, after = norms(given.value), 10 * norms(moved.moments.mu.value)
    assert before.min() < PAPER.clip < before.max()
    np.testing.assert_allclose(after, np.minimum(before, PAPER.clip), rtol=1e-4)


def test_the_rate_falls_to_a_tenth():
    config = Config(anneal_steps=100)
    learner = filled(range(3), ended=set(), terminated=set())
    moves = []
    for steps in (0, 50, 100, 1000):
        late = learner._replace(statistics=learner.statistics._replace(steps=jnp.int32(steps)))
        moved = scal.descend(late, late, ["value"], learner.networks, config).networks.value
        moves.append(optax.tree.norm(jax.tree.map(jnp.subtract, moved, learner.networks.value)))
    np.testing.assert_allclose(np.array(moves) / moves[0], [1.0, 0.55, 0.1, 0.1], rtol=1e-3)


def test_slack_of_a_continuous_action_is_one_bump():
    """h = C(1 − exp(−|a − h(s)|²)): its logarithm is a parabola in a = tanh u."""
    networks = nets.init_networks(jax.random.key(0), Spaces(1, 1, discrete=False), Config())
    C, at = 0.7, jnp.arctanh(jnp.array([-0.5, 0.0, 0.5]))
    h = jnp.array([nets.slack(networks.slack, jnp.ones(1), u[None], False, C) for u in at])
    parabola = -jnp.log(1.0 - h / C)
    assert float(h.min()) >= 0.0
    assert float(parabola[0] - 2 * parabola[1] + parabola[2]) == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_stay_finite(preset):
    config = PRESETS[preset].discrete
    learner = filled(range(40), ended={9, 19, 29}, terminated={9, 29}, config=config)
    for _ in range(3):
        learner, metrics = scal.update(learner, SPACES, config)
    for leaf in jax.tree.leaves((learner.networks, metrics)):
        assert np.isfinite(np.asarray(leaf)).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"beta": 1.0, "theta_step": "penalty"}, r"mu\*beta is 0.3 with theta_step='penalty'"),
        ({"gamma": 1.0}, "gamma is 1.0; use a number of at least 0 and less than 1"),
        ({"gamma": None}, "gamma is None; use a number"),
        ({"mu": 0.0}, "mu is 0.0; use a positive number"),
        ({"n_steps": 0}, "n_steps is 0; use a whole number of at least 1"),
        ({"n_steps": "3"}, "n_steps is '3'; use a whole number of at least 1"),
        ({"n_steps": True}, "n_steps is True; use a whole number"),
        ({"cuts": "no"}, "cuts is 'no'; use True or False"),
        ({"s0_mix": 1.5}, "s0_mix is 1.5; use a number of at least 0 and at most 1"),
        ({"units": "metres"}, "units is 'metres'; use one of state, all, raw"),
        ({"lr_value": float("nan")}, "lr_value is nan; use a positive number"),
    ],
)
def test_impossible_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Config(**options)


def test_predicted_mass():
    assert float(predicted_mass(Config(), jnp.ones(()))) == pytest.approx(1.0)
    kappa = PAPER.kappa
    found = float(predicted_mass(PAPER, jnp.ones(())))
    assert found == pytest.approx((kappa - 1) / (2 * kappa - 1))


def test_only_the_last_part_of_a_long_run_is_replayed():
    many = 4 * replay.RECENT
    buffer = replay.init_replay(SPACES, many, 1, 1)
    ages = jnp.arange(many, dtype=jnp.float32)
    ring = buffer.ring.at[:, 0, 0].set(ages)
    full = dataclasses.replace(buffer, ring=ring, stored=jnp.int32(many))
    for share, oldest in ((0.5, many // 2), (0.01, many - replay.RECENT)):
        drawn = replay.sample(jax.random.key(0), full, 4096, 1, 1.0, share).window.observation
        assert oldest <= drawn.min() < oldest + 50
        assert many - 50 < drawn.max() < many


@pytest.mark.parametrize("name", ["scal", "deep-alm"])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_average_of_theta_forgets_what_is_older_than_its_share(name, share):
    config = Config(algorithm=name, average_share=share, batch_size=4)
    learner = filled([1.0, 2.0, 4.0], ended={2}, terminated={2}, config=config)
    expected = seen = learner.networks.multiplier.vector
    for update in range(6):
        learner, _ = algorithm(config).update(learner, SPACES, config)
        seen = learner.networks.multiplier.vector
        expected += (seen - expected) / (1.0 + share * update)
    np.testing.assert_allclose(learner.averaged.vector, expected, rtol=1e-5, atol=1e-7)
    assert np.array_equal(learner.averaged.vector, seen) == (share == 0.0)
    logits = nets.heads(learner.averaged, jnp.ones((1, 1)), SPACES, config)[1]
    assert scal.greedy(learner, jnp.ones((1, 1)), SPACES, config) == jnp.argmax(logits)


@pytest.mark.parametrize("inputs", [1, 4, 11, 105])
def test_first_layers_bend(inputs):
    """Inputs that vary by one make outputs that do, however few they are."""
    spaces = Spaces(inputs, 2, discrete=True)
    for seed in range(3):
        networks = nets.init_networks(jax.random.key(seed), spaces, Config())
        observation = jax.random.normal(jax.random.key(9), (4_000, inputs))
        for network in (networks.value, networks.multiplier):
            first = network.layers.trunk[0]
            assert 0.8 < np.asarray(observation @ first.weight + first.bias).std() < 1.2
