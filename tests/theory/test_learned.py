"""The networks of an agent, laid out over its MDP."""

import gymnasium as gym
import numpy as np
import pytest

import scal
from scal.envs.levels import levels
from scal.learn import networks as nets
from scal.theory import errors
from scal.theory.learned import learned_iterate


def shop():
    return gym.make("scal/Inventory-v0", capacity=6, demand=2.0)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_an_agent_is_an_iterate(preset):
    agent = scal.SCAL(shop, preset=preset, warmup=50)
    if preset == "default":
        agent.learn(60)
    mdp, point, w = learned_iterate(agent, mu=0.5)
    assert mdp.R.shape == point.h.shape == point.x.shape == w.shape == (7, 7)
    assert point.h.min() >= 0
    assert point.x.min() > 0
    # the greedy action is the largest multiplier, weighed by w
    best = (w * point.x).argmax(axis=1)
    np.testing.assert_array_equal(best, [agent.predict([s]) for s in range(7)])
    # V of state 3, by the network itself
    scale = float(1 / np.sqrt(agent.learner.statistics.return_variance + 1e-4))
    alone = float(nets.value(agent.learner.networks.value, levels(3, 0, 6).astype(np.float32)))
    assert point.V[3] == pytest.approx(alone / (scale if preset == "default" else 1.0), rel=1e-4)
    found = errors.measure(mdp, point.x, point, 0.5, w)
    assert found.eps_L > 0
    assert found.distance <= found.bound


def test_an_environment_without_an_mdp_is_refused():
    with pytest.raises(ValueError, match="has no known finite MDP"):
        learned_iterate(scal.SCAL("CartPole-v1"), mu=1.0)
