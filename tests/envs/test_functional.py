"""The copies in JAX against Gymnasium's own environments."""

import subprocess
import sys

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

import scal
from scal.envs.compiled import FUNCTIONAL, functional_env
from scal.envs.noisy_acrobot import NOISE, RANGE
from scal.run.spaces import adapt

CLASSIC = {
    # (largest entries of a random state, largest entries of a starting state)
    "CartPole-v1": ([3.0, 3.0, 0.3, 3.0], [0.05] * 4),
    "Acrobot-v1": ([np.pi, np.pi, 4 * np.pi, 9 * np.pi], [0.1] * 4),
    "Pendulum-v1": ([3 * np.pi, 8.0], [np.pi, 1.0]),
}
EVERY = [*CLASSIC, "scal/Inventory-v0", "scal/NoisyAcrobot-v0", "scal/Catch-v0"]
COUNT = 100_000


def random_actions(env, rng, count, floats=np.float32):
    """Actions of any kind; continuous ones up to half as large again as allowed."""
    size = env.spaces.action_size
    if env.spaces.discrete:
        return rng.integers(size, size=count).astype(np.int32)
    scale = 1.5 * np.array(env.spaces.action_scale)
    return rng.uniform(-scale, scale, (count, size)).astype(floats)


def put(real, state):
    """Gymnasium's environment, put into a state as if it had started there."""
    real.reset()
    real.state = np.asarray(state, dtype=np.float64)
    return real


def keys(count, seed=0):
    return jax.random.split(jax.random.key(seed), count)


@pytest.mark.parametrize("name", EVERY)
def test_spaces_and_limit_are_those_of_gymnasium(name):
    env, real = functional_env(name), gym.make(name)
    assert env.name == name
    adapted = adapt(real)[1]
    for field in ("observation_size", "ordered", "image", "stack"):
        assert getattr(adapted, field) == getattr(env.spaces, field)
    if env.spaces.discrete:
        assert real.action_space.n == env.spaces.action_size
        assert env.spaces.action_scale == ()
    else:
        assert real.action_space.shape == (env.spaces.action_size,)
        assert tuple(real.action_space.high) == env.spaces.action_scale
        assert tuple(-real.action_space.low) == env.spaces.action_scale
    own = {"scal/Inventory-v0": 100, "scal/Catch-v0": 9}
    assert env.time_limit == (real.spec.max_episode_steps or own[name])


def test_what_has_no_copy():
    assert set(FUNCTIONAL) == set(EVERY)
    assert functional_env("MountainCar-v0") is None


def one_step(name, floats):
    """400 random transitions, ours and Gymnasium's: (observations, rewards, ends, states)."""
    env, real, rng = functional_env(name), gym.make(name).unwrapped, np.random.default_rng(0)
    largest = np.array(CLASSIC[name][0])
    states = rng.uniform(-largest, largest, (400, len(largest))).astype(floats)
    actions = random_actions(env, rng, 400, floats)
    after, rewards, ends = jax.jit(jax.vmap(env.step))(keys(400), states, actions)
    assert after.dtype == floats
    observations = jax.jit(jax.vmap(env.observe))(after)
    steps = [
        (*put(real, state).step(action)[:3], real.state)
        for state, action in zip(states, actions, strict=True)
    ]
    theirs = [np.stack(column) for column in zip(*steps, strict=True)]
    return (observations, rewards, ends, after), theirs


@pytest.mark.parametrize("name", CLASSIC)
def test_one_step_from_random_states(name):
    ours, theirs = one_step(name, np.float32)
    # relative to speeds: at the highest, the stages of Runge-Kutta overshoot
    np.testing.assert_allclose(ours[0], theirs[0], rtol=5e-5, atol=1e-5)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(ours[2], theirs[2])


@pytest.mark.parametrize(
    ("name", "top_speed"), [("CartPole-v1", None), ("Acrobot-v1", 9 * np.pi), ("Pendulum-v1", 8.0)]
)
def test_one_step_in_double_precision(name, top_speed):
    """The same formulas, not only numbers that are close; Gymnasium rounds observations."""
    with jax.enable_x64(True):
        ours, theirs = one_step(name, np.float64)
    np.testing.assert_allclose(np.float32(ours[0]), theirs[0], rtol=2e-7, atol=1e-12)
    np.testing.assert_allclose(ours[3], theirs[3], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12)
    np.testing.assert_array_equal(ours[2], theirs[2])
    # the states were wide enough to meet both outcomes and the limit of speed
    assert 0.1 < np.mean(theirs[2]) < 0.9 or name == "Pendulum-v1"
    assert top_speed is None or np.isclose(np.abs(theirs[0][:, -1]), top_speed).sum() > 10


@pytest.mark.parametrize("name", CLASSIC)
def test_observation_of_the_start(name):
    env = functional_env(name)
    for seed in range(20):
        real = gym.make(name).unwrapped
        expected, _ = real.reset(seed=seed)
        observed = env.observe(jnp.asarray(real.state, jnp.float32))
        np.testing.assert_allclose(observed, expected, rtol=0, atol=1e-6)


def swing_up(observation):
    """Push the second link of the acrobot the way it goes."""
    return 1 + int(np.sign(observation[5]))


@pytest.mark.parametrize(
    ("name", "policy", "episodes", "tolerance"),
    [
        ("CartPole-v1", None, 20, 1e-5),
        ("Acrobot-v1", swing_up, 5, 2e-2),
        ("Pendulum-v1", None, 5, 1e-4),
    ],
)
def test_whole_episodes_in_lockstep(name, policy, episodes, tolerance):
    """The same actions from the same start; rounding grows fast in the chaotic acrobot."""
    env, real, rng = functional_env(name), gym.make(name).unwrapped, np.random.default_rng(1)
    step, observe, lengths = jax.jit(env.step), jax.jit(env.observe), []
    for key in keys(episodes):
        state, over, length = env.reset(key), False, 0
        put(real, state)
        observation = np.asarray(observe(state))
        while not over and length < env.time_limit:
            action = policy(observation) if policy else random_actions(env, rng, 1)[0]
            state, reward, terminated = step(key, state, action)
            observation, expected, over, _, _ = real.step(action)
            np.testing.assert_allclose(observe(state), observation, rtol=0, atol=tolerance)
            np.testing.assert_allclose(reward, expected, rtol=0, atol=tolerance)
            assert bool(terminated) == over
            length += 1
        lengths.append(length)
    if name == "Pendulum-v1":
        assert lengths == [200] * episodes
    else:
        assert 5 < min(lengths) < max(lengths) < 500


@pytest.mark.parametrize("name", CLASSIC)
def test_starts_are_uniform(name):
    bound = np.array(CLASSIC[name][1])
    states = np.asarray(jax.jit(jax.vmap(functional_env(name).reset))(keys(4096)))
    assert states.shape == (4096, len(bound))
    assert states.dtype == np.float32
    scaled = states / bound
    assert (np.abs(scaled) <= 1.0 + 1e-6).all()
    assert (np.abs(scaled).max(axis=0) > 0.99).all()
    # five standard errors each
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=5 / np.sqrt(3 * 4096))
    np.testing.assert_allclose(scaled.std(axis=0), 1 / np.sqrt(3), rtol=0.035)
    np.testing.assert_allclose(np.corrcoef(scaled.T), np.eye(len(bound)), atol=5 / 64)


def test_starting_stocks():
    problem = scal.Inventory()
    stocks = np.asarray(jax.jit(jax.vmap(problem.functional().reset))(keys(4096)))
    assert chisquare(np.bincount(stocks, minlength=101)).pvalue > 1e-3
    assert len(np.bincount(stocks)) == 101
    assert set(np.asarray(jax.jit(jax.vmap(problem.functional(start=42).reset))(keys(50)))) == {42}


inventory_steps = jax.jit(
    jax.vmap(functional_env("scal/Inventory-v0").step, in_axes=(0, None, None))
)


@pytest.mark.parametrize(("stock", "order"), [(0, 0), (5, 0), (5, 7), (5, 60), (98, 50), (60, 100)])
def test_inventory_follows_the_model(stock, order):
    """Frequencies and mean rewards of 100,000 steps, within five standard errors."""
    problem = scal.Inventory()
    mdp = problem.mdp()
    after, rewards, ends = inventory_steps(keys(COUNT), jnp.int32(stock), jnp.int32(order))
    after, rewards = np.asarray(after), np.asarray(rewards, dtype=np.float64)
    expected = mdp.P[[stock * 101 + order]].toarray()[0]
    seen = np.bincount(after, minlength=101) / COUNT
    errors = np.sqrt(expected * (1 - expected) / COUNT)
    assert (np.abs(seen - expected) <= 5 * errors + 5 / COUNT).all()
    assert abs(rewards.mean() - mdp.R[stock, order]) <= 5 * rewards.std() / np.sqrt(COUNT)
    np.testing.assert_allclose(rewards, problem.profit(stock, order, after), rtol=1e-6)
    assert not np.any(ends)


def test_stock_is_observed_as_in_gymnasium():
    for start in (0, 42, 100):
        expected, _ = adapt(gym.make("scal/Inventory-v0", start=start))[0].reset()
        assert (expected > 0).sum() == start
        env = scal.Inventory().functional(start=start)
        observed = np.asarray(env.observe(env.reset(jax.random.key(0))))
        assert observed.dtype == expected.dtype
        np.testing.assert_array_equal(observed, expected, strict=True)


def test_inventory_with_other_constants():
    problem = scal.Inventory(capacity=10, demand=0.0, price=9.0, holding_cost=1.0)
    env = problem.functional(start=3, days=7)
    assert (env.spaces.action_size, env.time_limit) == (11, 7)
    stock, reward, _ = env.step(jax.random.key(0), jnp.int32(3), jnp.int32(9))
    # nothing is sold: an order of 5 + 7·2 for what fits, holding 3·1
    assert (int(stock), float(reward)) == (10, -22.0)
    for wrong in ({"start": 11}, {"start": -1}, {"days": 0}):
        with pytest.raises(ValueError, match="use a"):
            problem.functional(**wrong)


@pytest.mark.parametrize("name", EVERY)
def test_compiled_loops_mapped_and_single(name):
    """`scan` refuses a state that changes its structure, shape or type."""
    env, rng = functional_env(name), np.random.default_rng(3)

    def body(state, inputs):
        after, reward, terminated = env.step(inputs[0], state, inputs[1])
        return after, (env.observe(after), reward, terminated)

    def rollout(key, actions):
        reset_key, step_key = jax.random.split(key)
        step_keys = jax.random.split(step_key, len(actions))
        return jax.lax.scan(body, env.reset(reset_key), (step_keys, actions))[1]

    actions = np.stack([random_actions(env, rng, 20) for _ in range(3)])
    mapped = jax.jit(jax.vmap(rollout))(keys(3), actions)
    shown = env.spaces.image or (env.spaces.observation_size,)
    assert [leaf.shape for leaf in mapped] == [(3, 20, *shown), (3, 20), (3, 20)]
    kind = jnp.uint8 if env.spaces.image else jnp.float32
    assert [leaf.dtype for leaf in mapped] == [kind, jnp.float32, jnp.bool_]
    single = jax.jit(rollout)(keys(3)[2], actions[2])
    for ours, theirs in zip(mapped, single, strict=True):
        np.testing.assert_allclose(ours[2], theirs, rtol=1e-4, atol=1e-5)
    assert (mapped[0][0] != mapped[0][1]).any()


@pytest.mark.parametrize("name", EVERY)
def test_keys_decide_the_start(name):
    reset = functional_env(name).reset
    np.testing.assert_array_equal(reset(jax.random.key(3)), reset(jax.random.key(3)))
    assert len(np.unique([np.asarray(reset(key)) for key in keys(9)], axis=0)) > 7


def test_keys_decide_the_demand():
    def after(seed):
        return np.asarray(inventory_steps(keys(COUNT, seed), jnp.int32(50), jnp.int32(0))[0])

    np.testing.assert_array_equal(after(3), after(3))
    # two independent demands agree with probability Σ pmf² = 0.1005
    assert np.mean(after(3) == after(4)) == pytest.approx(0.1005, abs=0.005)


def test_exact_side_does_not_wait_for_jax():
    code = (
        "import sys, scal.cli; scal.cli.main(['solve', 'inventory', '--json']); "
        "sys.exit('jax was imported' if 'jax' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"policy"' in done.stdout


def test_noise_is_the_same_in_both_forms_of_acrobot():
    state, action, draws = np.array([2.0, -1.0, 3.0, -5.0]), 2, 2_000
    env = gym.make("scal/NoisyAcrobot-v0").unwrapped
    env.reset(seed=0)
    seen = np.zeros((draws, 4))
    for number in range(draws):
        env.state = state.copy()
        _, reward, terminated, _, _ = env.step(action)
        assert reward == (0.0 if terminated else -1.0)
        seen[number] = env.state
    keys = jax.random.split(jax.random.key(0), draws)
    step = functional_env("scal/NoisyAcrobot-v0").step
    compiled, rewards, terminated = jax.vmap(step, (0, None, None))(keys, jnp.array(state), action)
    assert (np.asarray(rewards) == np.where(terminated, 0.0, -1.0)).all()
    noise = NOISE * np.array(RANGE)
    undisturbed, _, _ = functional_env("Acrobot-v1").step(keys[0], jnp.array(state), action)
    for values in (seen, np.asarray(compiled)):
        error = 5 * noise / np.sqrt(draws)
        assert (np.abs(values.mean(axis=0) - undisturbed) < error).all()
        np.testing.assert_allclose(values.std(axis=0), noise, rtol=0.1)
