"""What is drawn of some series, whoever draws it: the page of a report, or a file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scal.bench.series import Series
from scal.mdp import solve
from scal.run.exact import GAMMA, known_mdp, words_of
from scal.run.spaces import make

Array = NDArray[np.float64]

PALETTE = {
    "scal": ("#1f5fa8", "#6fb0f5"),
    "ppo": ("#d9772b", "#f2a35e"),
    "trpo": ("#2f8f57", "#6cc791"),
    "sac": ("#8a5bc2", "#bb95ec"),
    "dqn": ("#b0413e", "#e58783"),
    "first": ("#00838f", "#4dd0e1"),
    "second": ("#a61c7a", "#f080c8"),
    "third": ("#8a6d00", "#e0c040"),
    "optimum": ("#1d2229", "#e4e8ee"),
}
"""Colours on light and on dark ground."""
SMALLEST = 1e-6
"""What is below is drawn here on a logarithmic scale."""
SPARE = ("first", "second", "third")
ESTIMATORS = {"x": ("g₁, with x", "scal"), "z": ("g₂, with z", "dqn")}


@dataclass(frozen=True)
class Style:
    """How a name looks everywhere."""

    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Line:
    """A curve with a band around it, one standard deviation to either side.

    On a logarithmic scale both are those of the logarithms.
    """

    name: str
    style: Style
    across: NDArray[Any]
    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Panel:
    """A pair of axes with some lines."""

    name: str
    """Of its file."""
    title: str
    across: str
    up: str
    lines: list[Line]
    log: bool = False


def styles(series: Iterable[Series]) -> dict[str, Style]:
    """A colour per algorithm, dashes for other settings, further colours for changed options."""
    found: dict[str, Style] = {}
    taken: set[str] = set()
    spare = cycle(SPARE)
    for one in series:
        if one.who in found:
            continue
        repeated = one.changed and one.algorithm in taken
        colour = next(spare) if repeated or one.algorithm not in PALETTE else one.algorithm
        found[one.who] = Style(colour, dashed=one.settings != "default")
        taken.add(one.algorithm)
    return found


def panels(series: Sequence[Series]) -> list[Panel]:
    """Everything there is to draw, in the order of the series."""
    looks = styles(series)
    drawn: list[Panel] = []
    for (env, steps), group in groups(series):
        compared = [one for one in group if not one.gradients]
        for what, up, log in (
            ("returns", "return of greedy episodes", False),
            ("late_returns", "expected return of the last 10 days", False),
            ("gaps", "exact relative gap", True),
        ):
            lines = [
                _line(one.who, looks[one.who], one.steps, one.curve(what), log)
                for one in compared
                if one.curve(what) is not None
            ]
            if lines:
                title = f"{env}, {steps:,} interactions"
                name = f"{_file(env)}-{steps}-{what.replace('_', '-')}"
                drawn.append(Panel(name, title, "interactions", up, lines, log))
        if any(one.policies for one in compared):
            drawn.append(_policies(env, steps, compared, looks))
        for one in group:
            drawn += _gradients(one) if one.gradients else []
    return drawn


def groups(series: Sequence[Series]) -> list[tuple[tuple[str, int], list[Series]]]:
    """Series by environment and length, in the order in which they first appear."""
    keys = [(one.env, int(one.steps[-1])) for one in series]
    order = {key: keys.index(key) for key in keys}
    sortable = sorted(zip(keys, series, strict=True), key=lambda pair: order[pair[0]])
    return [(key, [one for _, one in group]) for key, group in groupby(sortable, lambda p: p[0])]


def _line(name: str, style: Style, across: NDArray[Any], curves: Any, log: bool = False) -> Line:
    values = np.log(np.maximum(curves, SMALLEST)) if log else np.asarray(curves)
    mean, std = values.mean(axis=0), values.std(axis=0)
    band = (mean, mean - std, mean + std)
    return Line(name, style, across, *(np.exp(band) if log else band))


def _policies(env: str, steps: int, series: Sequence[Series], looks: dict[str, Style]) -> Panel:
    """What is done in every state, on average over seeds, beside the optimum."""
    made = make(env)
    mdp = known_mdp(made, GAMMA)
    assert mdp is not None  # since policies were compared with its optimum
    best = solve(mdp).policy
    states = np.arange(len(best))
    lines = [
        _line(one.who, looks[one.who], states, np.array(one.policies, float))
        for one in series
        if one.policies
    ]
    lines.append(_line("optimum", Style("optimum"), states, best[None].astype(float)))
    state, action = words_of(made)
    title = f"{env}: what is done after {steps:,} interactions"
    return Panel(f"{_file(env)}-{steps}-policies", title, state, action, lines)


def _gradients(one: Series) -> list[Panel]:
    """Variances of both estimators: all of it, and what is left when s and a are held fixed."""
    preset = "" if one.settings == "default" else f" ({one.settings})"
    drawn = []
    for suffix, up in (("", "variance of the gradient"), ("_given_sa", "variance given s and a")):
        curves = {kind: one.more[f"variance_{kind}{suffix}"] for kind in ESTIMATORS}
        if all((values > 0).all() for values in curves.values()):
            lines = [
                _line(name, Style(colour), one.steps, curves[kind], log=True)
                for kind, (name, colour) in ESTIMATORS.items()
            ]
            name = f"{_file(one.env)}-{one.settings}-variance{suffix.replace('_', '-')}"
            drawn.append(Panel(name, f"{one.env}{preset}", "interactions", up, lines, log=True))
    return drawn


def _file(env: str) -> str:
    return env.replace("/", "-")
