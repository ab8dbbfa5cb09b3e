"""Results of cells, gathered into the curves of a figure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scal.bench.execute import Result

MORE = (
    "gaps", "late_returns",
    "variance_x", "variance_z", "variance_x_given_sa", "variance_z_given_sa",
)  # fmt: skip
"""Curves that some results have besides returns."""


@dataclass(frozen=True)
class Series:
    """All seeds of one algorithm, with one setting, in one environment."""

    env: str
    who: str
    algorithm: str
    steps: NDArray[np.int64]
    returns: NDArray[np.float64]
    """(seeds, marks)"""
    more: dict[str, NDArray[np.float64]]
    """Other curves (seeds, marks), of those in `MORE`."""
    policies: list[list[int]]
    """Actions in all states at the end, one list per seed, where the MDP is known."""
    seconds: float
    """Of all its cells together, 0 if not known."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """Over seeds."""
        return self.returns.mean(axis=0)

    @property
    def std(self) -> NDArray[np.float64]:
        """Over seeds."""
        return self.returns.std(axis=0)

    @property
    def last(self) -> NDArray[np.float64]:
        """Returns of all seeds at the end."""
        return self.returns[:, -1]

    @property
    def gaps(self) -> NDArray[np.float64] | None:
        """Exact relative losses (seeds, marks), where the MDP is known."""
        return self.more.get("gaps")

    @property
    def speed(self) -> float:
        """Interactions per second, evaluations and all."""
        return len(self.returns) * int(self.steps[-1]) / self.seconds if self.seconds else 0.0


def who(cell: dict[str, Any]) -> str:
    """An algorithm with what is special about it.

    >>> who({"algorithm": "scal", "settings": "default", "options": [["n_steps", 5]]})
    'SCAL n_steps=5'
    """
    settings = "" if cell["settings"] == "default" else f" ({cell['settings']})"
    changes = "".join(f" {name}={value}" for name, value in cell["options"])
    return cell["algorithm"].upper() + settings + changes


def read(folders: Iterable[Path]) -> list[tuple[Result, float]]:
    """All results of some grids, with the seconds that each took."""
    found = []
    for folder in folders:
        paths = sorted((folder / "cells").glob("*.json"))
        if not paths:
            raise ValueError(f"folder {folder} holds no results; run scal bench --out {folder}")
        for path in paths:
            timing = folder / "timing" / path.name
            seconds = json.loads(timing.read_text())["seconds"] if timing.exists() else 0.0
            found.append((json.loads(path.read_text()), seconds))
    return found


def gather(results: Iterable[tuple[Result, float]]) -> list[Series]:
    """One series per environment, length of runs, algorithm and setting."""
    groups: dict[tuple[str, int, str], list[tuple[Result, float]]] = {}
    for result, seconds in results:
        cell = result["cell"]
        groups.setdefault((cell["env"], cell["steps"], who(cell)), []).append((result, seconds))
    return [
        Series(
            env=env,
            who=name,
            algorithm=group[0][0]["cell"]["algorithm"],
            steps=np.array(group[0][0]["steps"]),
            returns=np.array([curve for result, _ in group for curve in result["returns"]]),
            more={
                name: np.array([curve for result, _ in group for curve in result[name]])
                for name in group[0][0]
                if name in MORE
            },
            policies=[policy for result, _ in group for policy in result.get("policies", [])],
            seconds=sum(seconds for _, seconds in group),
        )
        for (env, _, name), group in groups.items()
    ]
