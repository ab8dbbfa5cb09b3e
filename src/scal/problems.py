"""Problems by name, for the command line: `inventory`, `random:S,A,K,SEED`, an id, or a file."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium as gym

from scal.envs import Inventory
from scal.mdp import FiniteMDP, random_mdp
from scal.run.exact import known_mdp, words_of


@dataclass(frozen=True)
class Problem:
    """An MDP with the words that its users use."""

    name: str
    mdp: FiniteMDP
    state: str = "state"
    action: str = "action"


def find_problem(name: str, gamma: float | None = None) -> Problem:
    """The problem of that name; gamma is 0.99 if neither given nor stored."""
    discount = 0.99 if gamma is None else gamma
    if name == "inventory":
        return Problem(name, Inventory().mdp(discount), state="stock", action="order")
    if name.startswith("random:"):
        return Problem(name, random_mdp(*_numbers(name), gamma=discount))
    if name.endswith(".npz") or Path(name).is_file():
        stored = FiniteMDP.load(name)
        return Problem(name, stored if gamma is None else replace(stored, gamma=gamma))
    return _gymnasium(name, discount)


def _numbers(name: str) -> tuple[int, int, int, int]:
    try:
        states, actions, successors, seed = (int(part) for part in name[7:].split(","))
    except ValueError:
        raise ValueError(
            f"problem {name!r} is not of the form random:STATES,ACTIONS,SUCCESSORS,SEED; "
            "write for example random:1000,10,10,0"
        ) from None
    return states, actions, successors, seed


def _gymnasium(name: str, gamma: float) -> Problem:
    spec = gym.registry.get(name)
    simulated = spec is not None and "envs.mujoco" in str(spec.entry_point)  # not made: it is slow
    env = None if simulated else _make(name)
    mdp = None if env is None else known_mdp(env, gamma)
    if env is None or mdp is None:
        raise ValueError(
            f"problem {name!r} has no transition table, so it cannot be solved exactly; "
            "use a toy-text environment such as FrozenLake-v1"
        )
    assert env.spec is not None
    return Problem(env.spec.id, mdp, *words_of(env))


def _make(name: str) -> gym.Env[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions: the table says which one was taken
        try:
            return gym.make(name)
        except gym.error.DeprecatedEnv:
            return gym.make(name.rsplit("-v", 1)[0])
        except (gym.error.Error, ImportError, ValueError) as error:
            raise ValueError(
                f"problem {name!r} is unknown; use inventory, random:S,A,K,SEED, a file, "
                f"or a toy-text id such as FrozenLake-v1 ({str(error).splitlines()[0]})"
            ) from None
