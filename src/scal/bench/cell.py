"""One cell of a grid: who learns what, for how long, and how it is judged on the way."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scal.run.exact import compare

Score = dict[str, list[Any]]
"""What an evaluation says, per seed: at least the mean return of greedy episodes."""


@dataclass(frozen=True)
class Cell:
    """Who learns what, and for how long."""

    algorithm: str
    env: str
    steps: int
    seed: int = 0
    seeds: int = 1
    """So many from `seed` on, side by side; for SCAL."""
    settings: str = "default"
    """For SCAL a preset, for a rival its library's defaults or RL-Zoo's values."""
    options: tuple[tuple[str, Any], ...] = ()
    """What differs from these settings."""
    evaluations: int = 20
    """Evenly spaced; they divide the steps."""
    episodes: int = 10
    gradients: bool = False
    """Whether the two estimators of the gradient are compared too; for SCAL in JAX."""

    def __post_init__(self) -> None:
        if self.steps % self.evaluations:
            raise ValueError(
                f"steps is {self.steps}, which {self.evaluations} evaluations do not divide"
            )

    @property
    def name(self) -> str:
        """Its file: readable, and different for different cells."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        last = f"-{self.seed + self.seeds - 1}" if self.seeds > 1 else ""
        words = [self.algorithm, self.env.replace("/", "-"), f"{self.steps}", f"s{self.seed}{last}"]
        return "_".join([*words, hashlib.sha256(text.encode()).hexdigest()[:8]])

    @property
    def marks(self) -> list[int]:
        """Steps at which it is evaluated."""
        every = self.steps // self.evaluations
        return list(range(every, self.steps + 1, every))

    @classmethod
    def read(cls, facts: dict[str, Any]) -> "Cell":
        """From JSON."""
        options = tuple((name, value) for name, value in facts.get("options", ()))
        return cls(**{**facts, "options": options})


def together(cells: Iterable[Cell]) -> dict[Cell, list[Cell]]:
    """Cells of SCAL that differ in their seed alone as one, others as they are; what each is for.

    >>> pair = [Cell("scal", "Hopper-v5", 100, seed) for seed in (7, 8)]
    >>> [(cell.seed, cell.seeds) for cell in together(pair)]
    [(7, 2)]
    """
    alike: dict[Cell, list[Cell]] = {}
    for cell in cells:
        single = cell.algorithm == "scal" and cell.seeds == 1
        alike.setdefault(replace(cell, seed=0) if single else cell, []).append(cell)
    found: dict[Cell, list[Cell]] = {}
    for group in alike.values():
        first = min(cell.seed for cell in group)
        if sorted(cell.seed for cell in group) == list(range(first, first + len(group))):
            found[replace(group[0], seed=first, seeds=len(group) * group[0].seeds)] = group
        else:
            found |= {cell: [cell] for cell in group}
    return found


def apart(result: dict[str, Any], cell: Cell) -> dict[str, Any]:
    """What a result of several seeds says of one of them.

    >>> whole = {"cell": {"seed": 7, "seeds": 2}, "steps": [50], "returns": [[1.0], [2.0]]}
    >>> apart(whole, Cell("scal", "Hopper-v5", 100, 8))["returns"]
    [[2.0]]
    """
    of_all = {"cell", "steps", "versions", "commit", "clean", "config"}
    first = cell.seed - result["cell"]["seed"]
    own = {
        name: value if name in of_all else value[first : first + cell.seeds]
        for name, value in result.items()
    }
    return own | {"cell": dataclasses.asdict(cell)}


def score(returns: np.ndarray, policies: list[Any]) -> Score:
    """From returns (seeds, episodes) and the policies of all seeds.

    Where the MDP is known, that includes the exact relative gap, the value of the first state
    beside its optimum, the policy itself and, where episodes have a fixed length, the expected
    return of their last days.
    """
    found = {"returns": returns.mean(axis=1).tolist()}
    known = [one for one in (compare(policy) for policy in policies) if one]
    if known:
        found["gaps"] = [one.relative_gap for one in known]
        found["first_values"] = [float(one.values[0] / one.optimum.V[0]) for one in known]
        found["policies"] = [one.policy.tolist() for one in known]
        if known[0].late_return is not None:
            found["late_returns"] = [one.late_return for one in known]
    return found
