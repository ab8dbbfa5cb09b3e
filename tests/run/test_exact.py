"""Exact figures about learned policies."""

import numpy as np
import pytest

from scal.envs import Inventory
from scal.run.exact import late_return


def test_late_return_by_simulation():
    problem, days, last, episodes = Inventory(), 30, 10, 40_000
    policy = np.where(np.arange(101) < 3, 12, 0)
    rng = np.random.default_rng(0)
    stock, total = rng.integers(101, size=episodes), np.zeros(episodes)
    for day in range(days):
        order = policy[stock]
        after = problem.stock_after(stock, order, rng.poisson(problem.demand, episodes))
        if day >= days - last:
            total += problem.profit(stock, order, after)
        stock = after
    error = total.std() / np.sqrt(episodes)
    exact = late_return(problem.mdp(0.99), policy, days, last)
    assert exact == pytest.approx(total.mean(), abs=4 * error)
