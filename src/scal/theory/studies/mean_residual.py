"""Theorem 2's own quantity: the mean residual of networks over K outer iterations.

    (1/K) Σ_k E‖xᵏ − T xᵏ‖²_w = O(T^−1/2 + m^−1/8 + β⁻¹ + K⁻¹)

One of T, m, β and K changes at a time, the others stay at a base point. What does not fall with the
one that changes is a floor, computed apart from the networks that the theorem is about:

    T, β    exact penalty steps from the same x⁰: no error of descent, none of width
    m       the linearised networks, trained in the same way
    K       the residual where exact steps come to rest, which only β decides
"""

from typing import Any, NamedTuple

import numpy as np

from scal.mdp import FiniteMDP
from scal.theory import errors, ntk, penalty
from scal.theory.ntk import Penalty, Problem
from scal.theory.report import COLOURS, Data, Report, Slope, fitted, guide, label, panels, shortened
from scal.theory.studies.networks import begun, outer_loop, tabular
from scal.theory.studies.problems import DIMENSION, small

SEEDS = 3
MU = 0.5
"""Small, so that exact steps have a small residual from the first one on."""


RADIUS = 100.0
"""Large enough for the V of a small β, which is low by x/(μ(κ − c)): no projection takes place."""


class Point(NamedTuple):
    """What the theorem's bound depends on."""

    T: int = 512
    m: int = 128
    beta: float = 16.0
    K: int = 16


BASE = Point()
TIMES = tuple(2**power for power in range(4, 12))
WIDTHS = tuple(2**power for power in range(3, 12, 2))
BETAS = (2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0)
OUTER = tuple(2**power for power in range(0, 8))
BOUNDS = {"T": -0.5, "m": -0.125, "beta": -1.0, "K": -1.0}
AT_WIDTHS = BASE._replace(K=4)
"""Few outer iterations: what is due to width comes with the first of them."""
AT_OUTER = BASE._replace(T=64)
"""Few inner steps: a long way from the start to rest."""


class Trial(NamedTuple):
    """An MDP, its inputs and the seed of its networks."""

    mdp: FiniteMDP
    problem: Problem
    seed: int

    def residuals(self, at: Point, linear: bool = False) -> Any:
        """‖xᵏ − Txᵏ‖² over k (rows) and networks (columns)."""
        begin = begun(self.seed, SEEDS, at.m, self.problem)
        constants = Penalty(MU, at.beta)
        return outer_loop(begin, self.mdp, self.problem, constants, at.T, at.K, linear, RADIUS)

    def mean(self, at: Point, linear: bool = False) -> Any:
        """The theorem's mean over k, of every network."""
        return self.residuals(at, linear).mean(axis=0)

    def exact(self, at: Point) -> float:
        """The same for exact penalty steps from the x⁰ of the networks: T = m = ∞."""
        found = []
        for start in begun(self.seed, SEEDS, at.m, self.problem)[2]:
            x = tabular(self.mdp, start)
            for _ in range(at.K):
                x = penalty.penalty_step(self.mdp, x, MU, at.beta, penalty.ANALYSIS).x
                found.append(errors.residual(self.mdp, x, MU))
        return float(np.mean(found))

    def at_rest(self, beta: float) -> float:
        """‖x − Tx‖² where exact penalty steps end."""
        x = penalty.penalty_fixed_point(self.mdp, MU, beta, penalty.ANALYSIS).x
        return errors.residual(self.mdp, x, MU)


def measure(seed: int) -> Report:
    """The mean residual over T, m, β and K, with its floors."""
    data: Data = {"problems": {}}
    slopes: list[Slope] = []
    for name, mdp in small().items():
        trial = Trial(mdp, ntk.embed(mdp, DIMENSION, seed), seed)
        rows = {
            "T": _over_inner_steps(trial),
            "m": _over_widths(trial),
            "beta": _over_penalties(trial),
            "K": _over_outer_steps(trial),
        }
        data["problems"][name] = rows
        slopes += _slopes(name, rows)
    parameters = {
        "base": BASE._asdict(), "over m": AT_WIDTHS._asdict(), "over K": AT_OUTER._asdict(),
        "mu": MU, "c": penalty.ANALYSIS, "R": RADIUS, "d": DIMENSION, "seeds": SEEDS,
    }  # fmt: skip
    return Report("mean-residual", seed, parameters, slopes, data)


def _curve(grid: Any, means: list[Any], floor: Any, **more: Any) -> Data:
    """Mean, least and largest over networks (the last axis of `means`) at every point."""
    table = np.array(means)
    return {
        "grid": list(grid), "mean": shortened(table.mean(axis=1)),
        "low": shortened(table.min(axis=1)), "high": shortened(table.max(axis=1)),
        "floor": shortened(np.broadcast_to(floor, len(table))), **more,
    }  # fmt: skip


def _over_inner_steps(trial: Trial) -> Data:
    return _curve(TIMES, [trial.mean(BASE._replace(T=T)) for T in TIMES], trial.exact(BASE))


def _over_widths(trial: Trial) -> Data:
    points = [AT_WIDTHS._replace(m=m) for m in WIDTHS]
    means, twins = ([trial.mean(at, linear) for at in points] for linear in (False, True))
    excess = np.abs(np.subtract(means, twins)).mean(axis=1)
    return _curve(WIDTHS, means, np.mean(twins, axis=1), excess=shortened(excess))


def _over_penalties(trial: Trial) -> Data:
    points = [BASE._replace(beta=beta) for beta in BETAS]
    return _curve(BETAS, [trial.mean(at) for at in points], [trial.exact(at) for at in points])


def _over_outer_steps(trial: Trial) -> Data:
    found, rest = trial.residuals(AT_OUTER._replace(K=OUTER[-1])), trial.at_rest(AT_OUTER.beta)
    means = [found[:K].mean(axis=0) for K in OUTER]
    last = [found[K - 1].mean() for K in OUTER]
    excess = np.mean(means, axis=1) - rest
    return _curve(OUTER, means, rest, excess=shortened(excess), last=shortened(last))


FITS = {"T": (64, 512), "m": (8, 128), "beta": (2, 6), "K": (16, 128)}
"""Ranges where the term in question dominates, chosen after a look at the curves."""


def _slopes(name: str, rows: Data) -> list[Slope]:
    """Of the mean residual over T, m and β, and of what lies above the floor over m and K."""

    def fit(text: str, key: str, part: str, over: tuple[float, float]) -> Slope:
        quantity, variable = f"mean of ‖xᵏ − Txᵏ‖²{text}, {name}", key.replace("beta", "β")
        row = rows[key]
        return fitted(quantity, variable, row["grid"], row[part], BOUNDS[key], "bound", over)

    return [
        fit("", "T", "mean", FITS["T"]),
        fit("", "m", "mean", FITS["m"]),
        fit(" less its linear twin's", "m", "excess", (WIDTHS[0], WIDTHS[-1])),
        fit("", "beta", "mean", FITS["beta"]),
        fit(" less that at rest", "K", "excess", FITS["K"]),
    ]


def draw(data: Data, slopes: list[Slope]) -> Any:
    """One panel per variable: networks with the range over seeds, and the floor below them."""
    title = (
        "Theorem 2: the mean residual of networks falls with T, m, β and K no slower than its "
        "bounds, until the other terms take over"
    )
    figure, axes = panels(4, title)
    floors = {
        "T": "exact steps", "m": "linearised networks", "beta": "exact steps", "K": "at rest",
    }  # fmt: skip
    more = {"m": ("excess", "networks − linearised"), "K": ("last", "the K-th residual alone")}
    for axis, key in zip(axes, floors, strict=True):
        mine = [slope for slope in slopes if slope.variable == key.replace("beta", "β")]
        for (name, rows), colour in zip(data["problems"].items(), COLOURS, strict=False):
            row = rows[key]
            slope = next(slope.measured for slope in mine if slope.quantity.endswith(name))
            text = f"{name} MDP, slope {slope:.2f}".replace("-", "−")
            axis.fill_between(row["grid"], row["low"], row["high"], color=colour, alpha=0.2)
            axis.plot(row["grid"], row["mean"], "o-", markersize=3.5, color=colour, label=text)
            last = name == list(data["problems"])[-1]  # names the lines of both
            text = f"floor: {floors[key]}"
            axis.plot(row["grid"], row["floor"], ":", color=colour, label=text if last else None)
            if key in more:
                part, text = more[key]
                axis.plot(row["grid"], row[part], "x-", markersize=3.5, linewidth=0.7,
                          color=colour, label=text if last else None)  # fmt: skip
        x, y = np.array(row["grid"]), np.array(row["mean"])  # of the larger of the two
        used = (x >= FITS[key][0]) & (x <= FITS[key][1])
        guide(axis, x[used], y[used], BOUNDS[key], "bound")
    base = f"T = {BASE.T}, m = {BASE.m}, β = {BASE.beta:g}, K = {BASE.K}".split(", ")
    titles = {
        "T": (", ".join(base[1:]), "inner steps T"),
        "m": (f"{base[0]}, {base[2]}, K = {AT_WIDTHS.K}", "width m"),
        "beta": (", ".join(base[:2] + base[3:]), "penalty weight β"),
        "K": (f"T = {AT_OUTER.T}, {base[1]}, {base[2]}", "outer iterations K"),
    }
    for axis, (text, x_name) in zip(axes, titles.values(), strict=True):
        label(axis, text, x_name, "mean of ‖xᵏ − Txᵏ‖²_w, k ≤ K")
    axes[2].set_xticks(BETAS, [f"{beta:g}" for beta in BETAS], minor=False)
    axes[2].minorticks_off()
    return figure
