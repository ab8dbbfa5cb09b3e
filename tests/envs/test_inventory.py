"""One set of dynamics, two faces."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import poisson

import scal


def test_gymnasium_accepts_it():
    check_env(gym.make("scal/Inventory-v0").unwrapped, skip_render_check=False)


def test_dynamics_written_out_by_hand():
    problem = scal.Inventory()
    mdp = problem.mdp()
    P = mdp.P.toarray().reshape(101, 101, 101)
    # stock 3, order 4: seven to sell at 3, an order of 5 + 4·2, holding 3·2
    for demand in range(7):
        assert P[3, 4, 7 - demand] == pytest.approx(poisson.pmf(demand, 8.0), rel=1e-12)
    assert P[3, 4, 0] == pytest.approx(poisson.sf(6, 8.0), rel=1e-12)
    sold = sum(min(d, 7) * poisson.pmf(d, 8.0) for d in range(200))
    assert mdp.R[3, 4] == pytest.approx(3 * sold - 5 - 8 - 6, rel=1e-12)
    # only what fits is paid for
    assert mdp.R[98, 50] == pytest.approx(mdp.R[98, 2], rel=1e-12)
    assert problem.profit(0, 0, 0) == 0.0


def test_environment_follows_the_model():
    """Frequencies and mean rewards of 20,000 steps from each of three pairs."""
    env = gym.make("scal/Inventory-v0", start=5, days=1)
    mdp = env.unwrapped.problem.mdp()
    env.reset(seed=0)
    for order in (0, 7, 60):
        ends, rewards = [], []
        for _ in range(20_000):
            env.reset()
            observation, reward, terminated, truncated, _ = env.step(order)
            assert truncated
            assert not terminated
            ends.append(int(observation[0]))
            rewards.append(reward)
        expected = mdp.P[[5 * 101 + order]].toarray()[0]
        seen = np.bincount(ends, minlength=101) / len(ends)
        assert np.abs(seen - expected).max() < 0.012
        assert np.mean(rewards) == pytest.approx(mdp.R[5, order], abs=0.25)


def test_seeds_and_start():
    def walk(seed):
        env = gym.make("scal/Inventory-v0")
        stocks = [float(env.reset(seed=seed)[0][0])]
        over = False
        while not over:
            observation, _, _, over, _ = env.step(7)
            stocks.append(float(observation[0]))
        return stocks

    assert walk(3) == walk(3) != walk(4)
    assert len(walk(3)) == 101
    starts = {walk(seed)[0] for seed in range(30)}
    assert len(starts) > 15
    assert gym.make("scal/Inventory-v0", start=42).reset()[0][0] == 42.0


def test_constants_are_arguments():
    env = gym.make("scal/Inventory-v0", capacity=10, demand=2.0, price=9.0)
    assert env.action_space.n == 11
    assert env.unwrapped.problem == scal.Inventory(capacity=10, demand=2.0, price=9.0)
    solution = scal.solve(env.unwrapped.problem.mdp(0.9))
    assert solution.certificate.accepts()
    assert solution.policy[0] > 0
    for wrong in ({"start": 11}, {"start": -1}, {"days": 0}, {"capacity": -3}):
        with pytest.raises(ValueError, match="use a"):
            gym.make("scal/Inventory-v0", **({"capacity": 10} | wrong))


def test_no_demand_at_all():
    mdp = scal.Inventory(capacity=4, demand=0.0).mdp(0.9)
    np.testing.assert_array_equal(mdp.P.toarray()[[1 * 5 + 2]], [[0, 0, 0, 1, 0]])
