"""Episodes side by side are the episodes one after another."""

import gymnasium as gym
import numpy as np
import pytest

from scal.run import evaluate


class Countdown(gym.Env):
    """An episode of as many steps as its seed says; a step pays its action."""

    observation_space = gym.spaces.Box(0, 100, (1,))
    action_space = gym.spaces.Discrete(1_000)

    def reset(self, *, seed=None, options=None):
        self.left = seed
        return np.array([self.left], np.float32), {}

    def step(self, action):
        assert self.left > 0, "played on after its end"
        self.left -= 1
        return np.array([self.left], np.float32), float(action), self.left == 0, False, {}


@pytest.mark.parametrize("abreast", [1, 2, 5])
def test_every_episode_is_played_once_to_its_end(abreast):
    seeds, batches = [3, 1, 4, 1, 5], set()

    def act(observations, numbers, ages):
        batches.add(len(observations))
        lengths = np.array(seeds)[numbers]
        playing = ages < lengths
        np.testing.assert_array_equal(observations[playing, 0], (lengths - ages)[playing])
        return list(10 * numbers + ages)

    returns = evaluate.play([Countdown() for _ in range(abreast)], act, seeds)
    expected = [sum(10 * n + age for age in range(length)) for n, length in enumerate(seeds)]
    np.testing.assert_array_equal(returns, expected)
    assert batches == {abreast}  # one shape, so that one program is compiled


def test_an_episode_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(evaluate, "LONGEST", 4)
    returns = evaluate.play([Countdown()], lambda *_: [10], [3, 100, 4])
    assert returns.tolist() == [30.0, 40.0, 40.0]
