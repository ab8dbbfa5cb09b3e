"""Inventory control (paper, section 7.2): order goods at night, meet random demand by day.

    s' = [min(s + a, M) − d]₊                                        d ~ Poisson(λ)
    r  = −K·1{a > 0} − c·[min(s + a, M) − s]₊ − h·s + p·[min(s + a, M) − s']₊

Stock s and order a are 0..M. The same two functions, `stock_after` and `profit`, make the exact
`FiniteMDP`, the Gymnasium environment `scal/Inventory-v0` and its copy in JAX.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, pdtr, pdtrc

from scal.envs.levels import levels
from scal.mdp import FiniteMDP

if TYPE_CHECKING:
    from scal.envs.functional import FunctionalEnv, Key, Transition

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Inventory:
    """The constants of the problem, as in the paper."""

    capacity: int = 100
    """M: the largest stock and the largest order."""
    entry_cost: float = 5.0
    """K: paid for every order, whatever its size."""
    unit_cost: float = 2.0
    """c: paid for every item that fits into the store."""
    holding_cost: float = 2.0
    """h: paid every day for every item in stock."""
    price: float = 3.0
    """p: earned for every item sold."""
    demand: float = 8.0
    """λ: mean of the Poisson demand of a day."""

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise ValueError(f"capacity is {self.capacity}; use a whole number of at least 1")
        for name in ("entry_cost", "unit_cost", "holding_cost", "price", "demand"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} is {value!r}; use a finite number of at least 0")

    def stock_after(self, stock: Any, order: Any, demand: Any, xp: Any = np) -> Any:
        """Stock at the end of the day; `xp` is the library of the arrays."""
        return xp.maximum(xp.minimum(stock + order, self.capacity) - demand, 0)

    def profit(self, stock: Any, order: Any, next_stock: Any, xp: Any = np) -> Any:
        """Revenue of the day less its costs; `xp` is the library of the arrays."""
        filled = xp.minimum(stock + order, self.capacity)
        costs = (
            self.entry_cost * (order > 0)
            + self.unit_cost * xp.maximum(filled - stock, 0)
            + self.holding_cost * stock
        )
        return self.price * xp.maximum(filled - next_stock, 0) - costs

    def mdp(self, gamma: float = 0.99, rho0: ArrayLike | None = None) -> FiniteMDP:
        """The problem as an exact MDP; starts are uniform if `rho0` is left out."""
        stocks = np.arange(self.capacity + 1)
        # demand_law[f, s'] is the chance to end with s' after starting the day with f
        demand_law = np.zeros((len(stocks), len(stocks)))
        demands = np.arange(self.capacity)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_rate = np.where(demands > 0, demands * np.log(self.demand), 0.0)
        exactly = np.exp(log_rate - self.demand - gammaln(demands + 1))
        for filled in stocks:
            demand_law[filled, 1 : filled + 1] = exactly[:filled][::-1]
            demand_law[filled, 0] = pdtrc(filled - 1, self.demand) if filled else 1.0
        demand_law /= demand_law.sum(axis=1, keepdims=True)
        s, a = np.meshgrid(stocks, stocks, indexing="ij")
        P = demand_law[np.minimum(s + a, self.capacity)]
        R = self.profit(s[..., None], a[..., None], stocks)
        return FiniteMDP.from_dense(P, R, gamma, rho0)

    def functional(self, start: int | None = None, days: int = 100) -> "FunctionalEnv":
        """The problem in pure JAX; the arguments are those of the Gymnasium environment."""
        # here, because the exact side is not to wait for JAX
        import jax
        import jax.numpy as jnp

        from scal.envs.functional import FunctionalEnv, Spaces

        self.check_episode(start, days)
        # P(demand ≤ 0), P(demand ≤ 1), …; a demand above the capacity empties any store
        chances = jnp.asarray(pdtr(np.arange(self.capacity), self.demand), jnp.float32)
        lowest, highest = (0, self.capacity) if start is None else (start, start)

        def reset(key: "Key") -> jax.Array:
            return jax.random.randint(key, (), lowest, highest + 1, jnp.int32)

        def observe(stock: jax.Array) -> jax.Array:
            return levels(stock, 0, self.capacity, xp=jnp).astype(jnp.float32)

        def step(key: "Key", stock: jax.Array, order: jax.Array) -> "Transition":
            demand = jnp.searchsorted(chances, jax.random.uniform(key), side="right")
            after = self.stock_after(stock, order, demand, xp=jnp)
            reward = self.profit(stock, order, after, xp=jnp)
            return after, reward.astype(jnp.float32), jnp.array(False)

        spaces = Spaces(self.capacity, self.capacity + 1, discrete=True, ordered=True)
        return FunctionalEnv("scal/Inventory-v0", spaces, days, reset, observe, step)

    def check_episode(self, start: int | None, days: int) -> None:
        """Raise ValueError if no episode can start with `start` or last for `days`."""
        if start is not None and not 0 <= start <= self.capacity:
            raise ValueError(f"start is {start}; use a stock from 0 to {self.capacity}")
        if days < 1:
            raise ValueError(f"days is {days}; use a whole number of at least 1")


class InventoryEnv(gym.Env[NDArray[np.int64], np.int64]):
    """The problem as a Gymnasium environment: one step a day, cut off after `days`.

    The observation is the stock. Episodes start with `start`, or uniformly in 0..M.
    """

    metadata = {  # noqa: RUF012  (Gymnasium's own convention)
        "render_modes": ["ansi"],
        "render_fps": 4,
        "ordered_actions": True,
    }
    words = ("stock", "order")

    def __init__(
        self,
        start: int | None = None,
        days: int = 100,
        render_mode: str | None = None,
        **constants: Any,
    ) -> None:
        self.problem = Inventory(**constants)
        self.problem.check_episode(start, days)
        self.start, self.days, self.render_mode = start, days, render_mode
        capacity = self.problem.capacity
        self.observation_space = gym.spaces.Box(0, capacity, (1,), np.int64)
        self.action_space = gym.spaces.Discrete(capacity + 1)
        self.stock = self.day = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Start anew; the seed decides the starting stock and every demand."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(self.problem.capacity + 1))
        self.stock, self.day = drawn if self.start is None else self.start, 0
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        """Order `action` items and live through the next day."""
        if not self.action_space.contains(action):
            most = self.problem.capacity
            raise ValueError(f"action is {action!r}; order a whole number from 0 to {most}")
        demand = int(self.np_random.poisson(self.problem.demand))
        stock = int(self.problem.stock_after(self.stock, int(action), demand))
        reward = float(self.problem.profit(self.stock, int(action), stock))
        self.stock, self.day = stock, self.day + 1
        return self._observation(), reward, False, self.day >= self.days, {"demand": demand}

    def render(self) -> str:
        """The stock as a bar."""
        return f"day {self.day:3d}  stock {self.stock:3d} " + "#" * self.stock

    def _observation(self) -> NDArray[np.int64]:
        return np.array([self.stock], dtype=np.int64)
