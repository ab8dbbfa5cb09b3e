"""Lemmas 1 and 2 on random MDPs."""

from itertools import product
from typing import Any

import numpy as np

from scal.mdp import random_mdp
from scal.theory import errors
from scal.theory.errors import Iterate
from scal.theory.report import COLOURS, Data, Report, Slope, fitted, label, panels, shortened

SIZES = (1e-3, 1e-2, 0.1, 1.0, 10.0)
SLACKS: tuple[errors.Slack, ...] = ("noisy", "closed")


def measure(seed: int) -> Report:
    """200 random MDPs with random w and x', and five disturbed iterates of each, in two ways."""
    rng = np.random.default_rng(seed)
    gaps, rows = [], []
    for number in range(200):
        S, A = int(rng.integers(2, 41)), int(rng.integers(1, 7))
        gamma = float(rng.choice([0.5, 0.9, 0.99]))
        mdp = random_mdp(S, A, int(rng.integers(1, S + 1)), seed=1000 * seed + number, gamma=gamma)
        w = 0.2 + rng.random((S, A))
        w /= w.sum()
        old = rng.normal(scale=1.0 / (1.0 - gamma), size=(S, A))
        mu = 10.0 ** rng.uniform(-1, 1) / (1.0 - gamma)
        step = errors.proximal_step(mdp, old, mu, w)
        gaps.append(errors.proximal_gap(mdp, old, Iterate(step.V, step.h, step.x), mu, w))
        for slack, size in product(SLACKS, SIZES):
            new = errors.disturbance(mdp, old, step, mu, size, rng, slack)
            e = errors.measure(mdp, old, new, mu, w)
            rows.append((slack, size, e.distance, e.bound, e.sharp_bound))
    worst = dict(zip(errors.ProximalGap._fields, np.max(gaps, axis=0).tolist(), strict=True))
    data: Data = {"lemma_1_worst": worst, "sizes": list(SIZES)}
    slopes = []
    for slack in SLACKS:
        table = np.array([row[1:] for row in rows if row[0] == slack])
        ratio, sharp = table[:, 1] / table[:, 2], table[:, 1] / table[:, 3]
        typical = [float(np.median(table[table[:, 0] == size, 1])) for size in SIZES]
        data[slack] = {
            "iterates": len(table),
            "violations": int((ratio > 1.0 + 1e-8).sum()),
            "distance": shortened(table[:, 1]),
            "bound": shortened(table[:, 2]),
            "ratio_quantiles": np.quantile(ratio, [0, 0.05, 0.5, 0.95, 1]).tolist(),
            "sharp_ratio_quantiles": np.quantile(sharp, [0, 0.05, 0.5, 0.95, 1]).tolist(),
        }
        name = f"‖x − x̂‖², h {slack}"
        slopes.append(fitted(name, "noise", SIZES, typical, 2.0, "exact"))
    parameters = {
        "mdps": 200, "states": [2, 40], "actions": [1, 6], "gamma": [0.5, 0.9, 0.99],
        "noise": list(SIZES), "mu": "10^U(-1,1)/(1-gamma)",
    }  # fmt: skip
    return Report("lemmas", seed, parameters, slopes, data)


def draw(data: Data, slopes: list[Slope]) -> Any:
    """Both sides of Lemma 2, and how much of the bound is used."""
    title = "Lemma 2 is never violated; with the best h about half of the bound is used"
    figure, (points, shares) = panels(2, title)
    for slack, colour in zip(SLACKS, COLOURS, strict=False):
        part = data[slack]
        name = "h disturbed too" if slack == "noisy" else "h re-optimised"
        points.plot(
            part["bound"], part["distance"], ".", color=colour, markersize=2.5, label=name,
            rasterized=True,
        )  # fmt: skip
        share = np.divide(part["distance"], part["bound"])
        shares.hist(
            share, bins=np.linspace(0, 1, 41), color=colour, histtype="step",
            linewidth=1.6, label=name,
        )  # fmt: skip
    ends = np.array([min(data["closed"]["bound"]), max(data["noisy"]["bound"])])
    points.plot(ends, ends, "--", color="#999999", linewidth=1.1, label="bound")
    label(points, "2,000 disturbed iterates", "2ε_x + 4με_L", "‖x − x̂‖²_w")
    shares.axvline(1.0, linestyle="--", color="#999999", linewidth=1.1, label="bound")
    label(shares, "share of the bound", "‖x − x̂‖²_w / (2ε_x + 4με_L)", "iterates", log="")
    return figure
