"""The game can always be won, and both of its faces are one game."""

from itertools import product

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import chisquare

from scal.envs import Catch

GAME = Catch()


def wise(frame):
    """Towards the ball: what a player does who sees one frame that is not the last."""
    (_,), (column,) = np.nonzero(frame[:-1])
    (bat,) = (b for b in range(8) if (GAME.draw(9, b, b)[9] == frame[9]).all())
    return 1 + int(np.sign(column - bat))


def test_gymnasium_accepts_it():
    check_env(gym.make("scal/Catch-v0").unwrapped, skip_render_check=False)


def test_the_optimum_is_one():
    """Every start is won by a player who looks at the last frame alone."""
    env = gym.make("scal/Catch-v0")
    assert env.observation_space.shape == (2, 10, 8)
    for column, bat in product(range(8), repeat=2):
        env.reset()
        inner = env.unwrapped
        inner.column, inner.bat = column, bat
        frame, total = inner._frame(), 0.0
        for steps in range(1, 10):
            stack, reward, over, truncated, _ = env.step(wise(frame))
            frame = stack[-1]
            total += reward
            assert (over, truncated) == (steps == 9, False)
        assert total == 1.0


def test_most_balls_are_missed_by_chance():
    env, rng = gym.make("scal/Catch-v0"), np.random.default_rng(0)
    returns = []
    for seed in range(200):
        env.reset(seed=seed)
        over = False
        while not over:
            _, reward, over, _, _ = env.step(int(rng.integers(3)))
        returns.append(reward)
    assert set(returns) == {-1.0, 1.0}
    assert np.mean(returns) < -0.2


def test_both_faces_play_the_same_game():
    env, real, rng = (
        GAME.functional(),
        gym.make("scal/Catch-v0").unwrapped,
        np.random.default_rng(2),
    )
    step, observe = jax.jit(env.step), jax.jit(env.observe)
    for key in jax.random.split(jax.random.key(0), 20):
        state = env.reset(key)
        frame, _ = real.reset()
        real.column, real.bat = (int(number) for number in state[1:])
        for _ in range(9):
            np.testing.assert_array_equal(observe(state)[0], real._frame())
            action = int(rng.integers(3))
            state, reward, over = step(key, state, jnp.int32(action))
            frame, expected, ended, _, _ = real.step(action)
            assert (float(reward), bool(over)) == (expected, ended)
        np.testing.assert_array_equal(observe(state)[0], frame)


def test_starts_are_uniform():
    states = np.asarray(
        jax.vmap(GAME.functional().reset)(jax.random.split(jax.random.key(0), 3000))
    )
    assert (states[:, 0] == 0).all()
    counts, _ = np.histogramdd(states[:, 1:], bins=(8, 8))
    assert chisquare(counts.ravel()).pvalue > 1e-3


def test_balls_fall_straight_and_walls_stop_the_bat():
    assert [GAME.move(0, 0), GAME.move(7, 2), GAME.move(3, 0), GAME.move(3, 1)] == [0, 7, 2, 3]
    assert [b for b in range(8) if GAME.caught(0, b)] == [0, 1]
    assert np.flatnonzero(GAME.draw(0, 3, 7)[9]).tolist() == [6, 7]
    env = gym.make("scal/Catch-v0").unwrapped
    frame, _ = env.reset(seed=0)
    (top,), (column,) = np.nonzero(frame[:-1])
    assert top == 0
    for row in range(1, 9):
        frame, *_ = env.step(0)
        assert np.argwhere(frame[:-1]).tolist() == [[row, column]]
    assert np.flatnonzero(frame[9]).tolist() == [0, 1]


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="columns is 3; use a whole number of at least 4"):
        gym.make("scal/Catch-v0", columns=3)
    with pytest.raises(ValueError, match="rows is 4, too few to catch every ball; use at least 7"):
        gym.make("scal/Catch-v0", rows=4)
    env = gym.make("scal/Catch-v0").unwrapped
    env.reset()
    with pytest.raises(ValueError, match=r"action is 3; use 0 \(left\)"):
        env.step(3)
