"""Theorem 1: what errors do to the augmented Lagrangian method."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from scal.mdp import FiniteMDP, solve
from scal.mdp.alm import Step
from scal.theory import errors
from scal.theory.errors import Iterate, squared_norm
from scal.theory.report import COLOURS, Data, Report, Slope, fitted, guide, label, panels, shortened
from scal.theory.studies.problems import tables, uniform

GAMMA = 0.8
DECAYS = (0.6, 1.0, 2.0)
STEPS = 400
MU_RUN = 200.0


def measure(seed: int) -> Report:
    """Inexact ALM with errors of size k^−q, and the run along a segment of solutions."""
    data: Data = {"q": list(DECAYS), "runs": {}, "segment": {}}
    slopes = []
    for name, mdp in tables(GAMMA).items():
        best, w = solve(mdp, tolerance=1e-10), uniform(mdp)
        for q in DECAYS:
            rng = np.random.default_rng(seed)
            run = errors.inexact_alm(mdp, MU_RUN, partial(_fading, mdp, q, rng), STEPS, w)
            far = [squared_norm(w, x - best.x) ** 0.5 for x in run.x[1:]]
            k, typical = _thinned(far)
            roots = [e.eps_x**0.5 + e.eps_L**0.5 for e in run.errors]
            data["runs"][f"{name}, q = {q:g}"] = {
                "k": k, "distance": typical,
                "sum_eps": float(sum(e.eps_x + e.eps_L for e in run.errors)),
                "sum_root_eps": float(sum(roots)),
                "violations": sum(e.distance > e.bound * (1 + 1e-8) + 1e-10 for e in run.errors),
                "unique": best.ties.size == 0,
            }  # fmt: skip
            slopes.append(
                fitted(f"‖xᵏ − x*‖_w, {name}, q = {q:g}", "k", k, typical, -q, "exact", (20, STEPS))
            )
    for q in (1.0, 2.0):
        x, sums = _along_a_segment(q, 1_500)
        data["segment"][f"q = {q:g}"] = {"x": shortened(x[::5]), "every": 5, "sum_eps_x": sums}
    parameters = {"mu": MU_RUN, "gamma": GAMMA, "steps": STEPS, "q": list(DECAYS)}
    return Report("convergence", seed, parameters, slopes, data)


def _fading(
    mdp: FiniteMDP, q: float, rng: np.random.Generator, k: int, old: Any, step: Step
) -> Iterate:
    return errors.disturbance(mdp, old, step, MU_RUN, k**-q, rng)


def _thinned(values: list[float], count: int = 24) -> tuple[list[float], list[float]]:
    """Geometric means over bins that are even on a logarithmic axis."""
    edges = np.unique(np.geomspace(1, len(values) + 1, count).astype(int))
    pairs = list(pairwise(edges))
    middle = [float(np.exp(np.log(np.arange(a, b)).mean())) for a, b in pairs]
    return middle, [float(np.exp(np.log(values[a - 1 : b - 1]).mean())) for a, b in pairs]


def _along_a_segment(q: float, steps: int) -> tuple[list[float], float]:
    """Two equal actions: (D) is solved by x₁ + x₂ = 4. Errors of size 2k^−q go to and fro on it."""
    mdp = FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, 1.0]], gamma=0.5)
    way = 1.0

    def disturb(k: int, old: Any, step: Step) -> Iterate:
        nonlocal way
        size = 2.0 * k**-q
        if not 0.0 <= step.x[0, 0] + way * size <= 4.0:
            way = -way
        return Iterate(step.V, step.h, step.x + way * size * np.array([[1.0, -1.0]]))

    run = errors.inexact_alm(mdp, 1.0, disturb, steps, start=np.array([[2.0, 2.0]]))
    return [float(x[0, 0]) for x in run.x], float(sum(e.eps_x for e in run.errors))


def draw(data: Data, slopes: list[Slope]) -> Any:
    """Distances against k, and the iterate that does not settle."""
    figure, axes = panels(3, "Inexact ALM follows its errors; finite sums of ε are not enough")
    for axis, name in zip(axes, ("random", "inventory"), strict=False):
        for q, colour in zip(data["q"], COLOURS, strict=False):
            run = data["runs"][f"{name}, q = {q:g}"]
            axis.plot(run["k"], run["distance"], "o-", markersize=3, color=colour,
                      label=f"errors k^−{q:g}")  # fmt: skip
            guide(axis, run["k"], run["distance"], -q, "exact")
        label(axis, f"{name} MDP, unique solution", "iteration k", "‖xᵏ − x*‖_w")
    for (name, run), colour in zip(data["segment"].items(), COLOURS, strict=False):
        k = 1 + run["every"] * np.arange(len(run["x"]))
        axes[2].plot(k, run["x"], color=colour, linewidth=1.2,
                     label=f"errors 2k^−{name[4:]}, Σε = {run['sum_eps_x']:.2f}")  # fmt: skip
    label(axes[2], "two equal actions: a segment of solutions", "iteration k", "x(s, a₁)", log="x")
    return figure
