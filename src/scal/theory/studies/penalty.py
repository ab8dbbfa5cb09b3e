"""One penalty step against one proximal step."""

from typing import Any

import numpy as np

from scal.mdp import FiniteMDP
from scal.theory import errors, penalty
from scal.theory.errors import Iterate, squared_norm
from scal.theory.report import COLOURS, Data, Report, Slope, fitted, guide, label, panels
from scal.theory.studies.problems import tables, uniform

GAMMA = 0.8
BETAS = tuple(float(2**power) for power in range(0, 13))
MU_PENALTY = 2.0


def measure(seed: int) -> Report:
    """One penalty step against one proximal step, over β and for both coefficients c."""
    data: Data = {"beta": list(BETAS), "problems": {}}
    slopes = []
    for name, mdp in tables(GAMMA).items():
        rng, w, mu = np.random.default_rng(seed), uniform(mdp), MU_PENALTY
        old = rng.random(mdp.R.shape) * 2.0 / (1.0 - GAMMA)
        once = errors.proximal_step(mdp, old, mu, w).x
        halved = 0.5 * errors.proximal_step(mdp, 2.0 * old, 2.0 * mu, w).x
        rows: dict[str, list[float]] = {
            key: [] for key in ("analysis", "method", "method_halved", "printed", "violation")
        }
        for beta in BETAS:
            point = {c: penalty.penalty_step(mdp, old, mu, beta, c, w) for c in (0.5, 1.0)}
            printed = penalty.xi(mu * beta, 0.5)[1] * once
            rows["analysis"].append(squared_norm(w, point[0.5].x - once))
            rows["method"].append(squared_norm(w, point[1.0].x - once))
            rows["method_halved"].append(squared_norm(w, point[1.0].x - halved))
            rows["printed"].append(squared_norm(w, point[0.5].x - printed))
            rows["violation"].append(
                max(_optimality(mdp, old, mu, beta, c, w, point[c]) for c in point)
            )
        data["problems"][name] = rows
        over = (8.0, np.inf)
        for key, text in (
            ("analysis", "‖x̃ − x̂‖², c = 1/2"),
            ("method_halved", "‖x̃ − ½T_2μ(2x')‖², c = 1"),
        ):
            slopes.append(fitted(f"{text}, {name}", "β", BETAS, rows[key], -2.0, "exact", over))
    parameters = {"mu": MU_PENALTY, "gamma": GAMMA, "beta": [BETAS[0], BETAS[-1]]}
    return Report("penalty", seed, parameters, slopes, data)


def _optimality(
    mdp: FiniteMDP, old: Any, mu: float, beta: float, c: float, w: Any, point: Iterate
) -> float:
    """By how much the closed forms of ξ₁ and ξ₂ miss ∇L̃ = 0."""
    Z = errors.multiplier_after(mdp, point.V, point.h, old, mu)
    F = w * (c * point.x - mu * beta * (point.x - Z))
    pairs = np.nonzero(mdp.feasible)
    in_x = np.abs(point.x - (1.0 - c / (mu * beta)) * Z).max()
    in_V = np.abs(mdp.flow(pairs, F[pairs]) - mdp.rho0).max()
    return float(max(in_x, in_V, np.abs(F * point.h).max(), -F.min()))


def draw(data: Data, slopes: list[Slope]) -> Any:
    """Distances against β."""
    figure, axes = panels(2, "The penalty step comes within 1/β of a proximal step, squared 1/β²")
    names = {
        "analysis": "c = 1/2: ‖x̃ − T_μ x'‖²",
        "printed": "c = 1/2: ‖x̃ − ξ₂T_μ x'‖², as printed 0",
        "method": "c = 1: ‖x̃ − T_μ x'‖²",
        "method_halved": "c = 1: ‖x̃ − ½T_2μ(2x')‖²",
    }
    for axis, (name, rows) in zip(axes, data["problems"].items(), strict=True):
        for (key, text), colour in zip(names.items(), COLOURS, strict=False):
            axis.plot(data["beta"], rows[key], "o-", markersize=3, color=colour, label=text)
        guide(axis, data["beta"], rows["method_halved"], -2.0, "exact")
        label(axis, f"{name} MDP", "penalty weight β", "squared distance")
    return figure
