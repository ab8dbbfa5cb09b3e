"""Where SCAL comes to rest."""

from dataclasses import replace
from typing import Any

import numpy as np

from scal.mdp import FiniteMDP, solve
from scal.theory import penalty
from scal.theory.fixed_points import Update, fixed_point
from scal.theory.report import COLOURS, Data, Report, Slope, fitted, guide, label, panels
from scal.theory.studies.problems import tables

KAPPAS = tuple(np.geomspace(1.25, 1e3, 16).tolist())
MUS = tuple(np.geomspace(0.1, 1e3, 16).tolist())
FLOWS = (0.0, 0.5, 1.0)


def measure(seed: int) -> Report:
    """Mass of x and bias of V over κ and μ, and what holds V down off the initial states."""
    data: Data = {"kappa": list(KAPPAS), "mu": list(MUS), "flow": list(FLOWS), "problems": {}}
    slopes = []
    for name, mdp in tables(0.9).items():
        best = solve(mdp, tolerance=1e-10).V
        rows: Data = {"full_mass": [], "mass": {}, "bias_kappa": {}, "bias_mu": {}}
        for kappa in KAPPAS:
            x = penalty.penalty_fixed_point(mdp, 1.0, kappa, penalty.METHOD).x
            rows["full_mass"].append(float(x.mean() * (1.0 - mdp.gamma)))
        for flow in FLOWS:
            over_kappa = [fixed_point(mdp, Update(10.0, k / 10.0, flow, 1.0)) for k in KAPPAS]
            over_mu = [fixed_point(mdp, Update(mu, 100.0 / mu, flow, 1.0)) for mu in MUS]
            key = f"{flow:g}"
            rows["mass"][key] = [float(point.x.mean()) for point in over_kappa]
            rows["bias_kappa"][key] = [float((best - point.V).mean()) for point in over_kappa]
            rows["bias_mu"][key] = [float((best - point.V).mean()) for point in over_mu]
            for field, grid, low in (("bias_kappa", KAPPAS, 30.0), ("bias_mu", MUS, 10.0)):
                variable = field[5:].replace("kappa", "κ").replace("mu", "μ")
                text = f"bias of V, {name}, flow {flow:g}"
                slopes.append(
                    fitted(text, variable, grid, rows[field][key], -1.0, "exact", (low, np.inf))
                )
        regression = [fixed_point(mdp, Update(mu, 5.0, 0.5, 1.0, "regression")) for mu in MUS]
        rows["regression_mass"] = [float(point.x.mean()) for point in regression]
        rows["regression_bias"] = [float(np.abs(best - point.V).max()) for point in regression]
        rows["held"] = _held(mdp, best)
        data["problems"][name] = rows
    parameters = {"gamma": 0.9, "kappa": [1.25, 1e3], "mu": [0.1, 1e3], "s0_mix": 1.0}
    return Report("fixed-points", seed, parameters, slopes, data)


def _held(mdp: FiniteMDP, best: Any) -> Data:
    """The error of V at its one initial state if V starts too high by some amount everywhere."""
    rho0 = np.zeros(mdp.n_states)
    rho0[-1] = 1.0
    one = replace(mdp, rho0=rho0)
    above = [0.01, 0.1, 1.0, 10.0]
    rows: Data = {"above": above}
    for text, flow, mix in (("neither", 0.0, 0.0), ("flow", 0.5, 0.0), ("s0_mix", 0.0, 0.5)):
        update = Update(1.0, 5.0, flow, mix, "regression")
        points = [fixed_point(one, update, ceiling=best + a) for a in above]
        rows[text] = [float((point.V - best)[-1]) for point in points]
    return rows


def draw(data: Data, slopes: list[Slope]) -> Any:
    """Mass, bias over κ, bias over μ, and the overestimate that stays."""
    title = "Fixed points: the penalty step shrinks x and lowers V; flow or s0_mix holds V down"
    figure, (mass, over_kappa, over_mu, held) = panels(4, title)
    kappa, gamma = np.array(data["kappa"]), 0.9
    rows = data["problems"]["random"]
    for flow, colour in zip(data["flow"], COLOURS, strict=False):
        predicted = (1 - gamma * flow) / ((2 * kappa - 1) / (kappa - 1) - gamma * flow)
        mass.plot(kappa, rows["mass"][f"{flow:g}"], "o", markersize=3.5, color=colour,
                  label=f"penalty, flow {flow:g}")  # fmt: skip
        mass.plot(kappa, predicted, "-", color=colour, linewidth=1)
    mass.plot(kappa, rows["full_mass"], "s", markersize=3.5, color=COLOURS[3],
              label="full gradient, × (1 − γ)")  # fmt: skip
    mass.plot(kappa, (kappa - 1) / (2 * kappa - 1), "-", color=COLOURS[3], linewidth=1)
    mass.axhline(rows["regression_mass"][0], color=COLOURS[4], linewidth=1.4, label="regression")
    label(mass, "mass of x: computed (dots), predicted (lines)", "κ = μβ", "Σ w x", log="x",
          legend=(0.4, 0.6))  # fmt: skip
    for axis, key, x in ((over_kappa, "bias_kappa", "kappa"), (over_mu, "bias_mu", "mu")):
        for (name, part), marker in zip(data["problems"].items(), "os", strict=True):
            for flow, colour in zip(data["flow"], COLOURS, strict=False):
                axis.plot(data[x], part[key][f"{flow:g}"], marker + "-", markersize=3,
                          color=colour, linewidth=1, label=f"{name}, flow {flow:g}")  # fmt: skip
        guide(axis, data[x], rows[key]["0"], -1.0, "exact")
    label(over_kappa, "V is low, μ = 10", "κ = μβ", "mean of V* − V, in rewards")
    label(over_mu, "V is low, κ = 100", "μ, in 1/rewards", "mean of V* − V, in rewards")
    part = data["problems"]["inventory"]["held"]
    for (name, text), colour in zip(
        {"neither": "flow 0, s0_mix 0", "flow": "flow 0.5", "s0_mix": "s0_mix 0.5"}.items(),
        COLOURS,
        strict=False,
    ):
        held.plot(part["above"], part[name], "o-", markersize=4, color=colour, label=text)
    held.set_yscale("symlog", linthresh=1e-3)
    title = "inventory, one initial state, regression"
    label(held, title, "V − V* at first, everywhere", "V − V* at the initial state", log="x")
    return figure
