"""Results of cells, gathered into the curves of a figure."""

import json
from collections import Counter
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
    settings: str
    changed: bool
    """Whether options differ from the settings."""
    gradients: bool
    """Whether it is there for the variances of gradients, not to be compared."""
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
    def last(self) -> NDArray[np.float64]:
        """Returns of all seeds at the end."""
        return self.returns[:, -1]

    def curve(self, name: str) -> NDArray[np.float64] | None:
        """Returns or one of `MORE` (seeds, marks), if it was measured."""
        return self.returns if name == "returns" else self.more.get(name)

    @property
    def random(self) -> bool:
        """Whether transitions are, as far as gradients can tell."""
        return bool((self.more["variance_x_given_sa"] > 0).all())

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


def read(sources: Iterable[Path]) -> list[tuple[Result, float]]:
    """All results of some grids, with the seconds that each took; folders, or files of `pack`."""
    found = []
    for folder in sources:
        if folder.suffix == ".json":
            found += _unpacked(folder)
            continue
        paths = sorted((folder / "cells").glob("*.json"))
        if not paths:
            raise ValueError(
                f"folder {folder} holds no results; run scal bench SUITE --out {folder} first"
            )
        for path in paths:
            timing = folder / "timing" / path.name
            seconds = json.loads(timing.read_text())["seconds"] if timing.exists() else 0.0
            found.append((json.loads(path.read_text()), seconds))
    return found


def pack(results: Iterable[tuple[Result, float]]) -> list[dict[str, Any]]:
    """For a JSON object that has them under `cells`."""
    return [{**result, "seconds": round(seconds, 1)} for result, seconds in results]


def _unpacked(path: Path) -> list[tuple[Result, float]]:
    if not path.exists():
        raise ValueError(f"there is no file {path}; name one of experiments/results")
    try:
        cells = json.loads(path.read_text())["cells"]
        return [
            ({name: value for name, value in cell.items() if name != "seconds"}, cell["seconds"])
            for cell in cells
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"file {path} holds no runs of a suite; name a folder of scal bench, or a file of "
            "experiments/results that is called like a suite"
        ) from error


def gather(results: Iterable[tuple[Result, float]]) -> list[Series]:
    """One series per environment, length of runs, algorithm and setting; SCAL comes first.

    A seed counts once, however many cells or folders have it. Where curves of one name were taken
    at other marks, the name says how many.
    """
    groups: dict[tuple[str, int, int, str, bool], dict[int, tuple[Result, int, float]]] = {}
    for result, seconds in sorted(results, key=lambda pair: _place(pair[0]["cell"])):
        cell = result["cell"]
        key = cell["env"], cell["steps"], cell["evaluations"], who(cell), cell["gradients"]
        for place in range(cell["seeds"]):
            seed, share = cell["seed"] + place, seconds / cell["seeds"]
            groups.setdefault(key, {}).setdefault(seed, (result, place, share))
    alike = Counter((env, steps, name, study) for env, steps, _, name, study in groups)
    found = []
    for (env, steps, marks, name, study), group in groups.items():
        only = alike[env, steps, name, study] == 1
        shown = name if only else f"{name}, evaluated {marks}×"
        found.append(_series(env, shown, list(group.values())))
    return found


def _series(env: str, name: str, runs: list[tuple[Result, int, float]]) -> Series:
    """Of some seeds: each is a place in a result, and took some seconds."""
    first, _, _ = runs[0]
    return Series(
        env=env,
        who=name,
        algorithm=first["cell"]["algorithm"],
        settings=first["cell"]["settings"],
        changed=bool(first["cell"]["options"]),
        gradients=first["cell"]["gradients"],
        steps=np.array(first["steps"]),
        returns=np.array([result["returns"][place] for result, place, _ in runs]),
        more={
            name: np.array([result[name][place] for result, place, _ in runs])
            for name in MORE
            if name in first
        },
        policies=[result["policies"][place] for result, place, _ in runs if "policies" in result],
        seconds=sum(seconds for _, _, seconds in runs),
    )


def _place(cell: dict[str, Any]) -> tuple[Any, ...]:
    rival, tuned = cell["algorithm"] != "scal", cell["settings"] != "default"
    return rival, cell["algorithm"], tuned, cell["options"], cell["seed"]


def variance_ratios(one: Series, given: str = "") -> NDArray[np.float64]:
    """Var g₂ / Var g₁ of every seed, geometric means over the second half of the marks."""
    late = slice(len(one.steps) // 2, None)
    ratio = one.more[f"variance_z{given}"] / one.more[f"variance_x{given}"]
    return np.asarray(np.exp(np.log(ratio[:, late]).mean(axis=1)))


def told_ratio(one: Series, given: str = "") -> str:
    """The geometric mean over seeds, and the smallest and the largest.

    >>> curves = {"variance_x": np.ones((2, 2)), "variance_z": np.array([[9.0, 1.0], [9.0, 4.0]])}
    >>> told_ratio(Series("", "", "", "", False, True, np.arange(2), np.ones(1), curves, [], 0.0))
    '2.00 (1.00 to 4.00)'
    """
    ratios = variance_ratios(one, given)
    mean = f"{np.exp(np.log(ratios).mean()):.2f}"
    return mean if len(ratios) == 1 else f"{mean} ({ratios.min():.2f} to {ratios.max():.2f})"
