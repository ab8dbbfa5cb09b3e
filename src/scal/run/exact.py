"""A learned policy against the exact optimum, where the environment knows its own MDP."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from scal.mdp import FiniteMDP, Solution, linear, solve

if TYPE_CHECKING:
    from scal.run.agent import SCAL

GAMMA = 0.99
LATE = 10
"""So many last days of an episode are looked at, as in the paper's figure."""


@dataclass(frozen=True)
class Comparison:
    """What a policy is worth in every state, and what would be possible."""

    gamma: float
    policy: NDArray[np.int64]
    values: NDArray[np.float64]
    """V^π, solved exactly."""
    optimum: Solution
    words: tuple[str, str] = ("state", "action")
    """What a state and an action are called."""
    late_return: float | None = None
    """Expected return of the last ten steps of an episode, where episodes have a fixed length."""

    @property
    def relative_gap(self) -> float:
        """Mean of V* − V^π over all states, relative to the mean of |V*|."""
        best = self.optimum.V
        return float((best - self.values).mean() / np.abs(best).mean())

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "gamma": self.gamma,
            "relative_gap": self.relative_gap,
            "value": float(self.values[0]),
            "best_value": float(self.optimum.V[0]),
            "late_return": self.late_return,
            "policy": self.policy.tolist(),
            "best_policy": self.optimum.policy.tolist(),
        }


def known_mdp(env: gym.Env[Any, Any], gamma: float) -> FiniteMDP | None:
    """The MDP behind an environment, if it says and shows its states."""
    if not _shows_states(env.observation_space):
        return None
    problem: Any = getattr(env.unwrapped, "problem", None)
    if isinstance(getattr(env.unwrapped, "P", None), Mapping):
        return FiniteMDP.from_gymnasium(env, gamma)
    mdp: FiniteMDP | None = problem.mdp(gamma) if hasattr(problem, "mdp") else None
    return mdp


def words_of(env: gym.Env[Any, Any]) -> tuple[str, str]:
    """What an environment calls a state and an action."""
    words: tuple[str, str] = getattr(env.unwrapped, "words", Comparison.words)
    return words


def _shows_states(space: gym.Space[Any]) -> bool:
    """Whether an observation can be the number of a state."""
    if isinstance(space, gym.spaces.Box):
        return np.issubdtype(space.dtype, np.integer) and math.prod(space.shape) == 1
    return isinstance(space, gym.spaces.Discrete)


def greedy_policy(agent: "SCAL", mdp: FiniteMDP) -> NDArray[np.int64]:
    """The agent's action in every state; where an episode has ended, it has none."""
    space = agent.env.observation_space
    seen = int(space.n) if isinstance(space, gym.spaces.Discrete) else mdp.n_states
    actions = [int(agent.predict(state)) for state in range(seen)]
    return np.array(actions + [0] * (mdp.n_states - seen))


def compare(agent: "SCAL", gamma: float = GAMMA) -> Comparison | None:
    """The agent's greedy policy against the optimum; None if its MDP is not known."""
    mdp = known_mdp(agent.env, gamma)
    if mdp is None:
        return None
    policy = greedy_policy(agent, mdp)
    values = linear.values(*mdp.under(policy), gamma)
    words = words_of(agent.env)
    days: int | None = getattr(agent.env.unwrapped, "days", None)
    late = None if days is None else late_return(mdp, policy, days)
    return Comparison(gamma, policy, values, solve(mdp), words, late)


def late_return(mdp: FiniteMDP, policy: NDArray[np.int64], days: int, last: int = LATE) -> float:
    """Expected undiscounted reward of the last days of an episode that starts with ρ₀."""
    P, r = mdp.under(policy)
    chances, total = np.asarray(mdp.rho0), 0.0
    for day in range(days):
        if day >= days - last:
            total += float(chances @ r)
        chances = chances @ P
    return total
