"""The projected gradient method on networks: width, inner steps, penalty, outer iterations."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scal.mdp import FiniteMDP
from scal.theory import errors, ntk, penalty
from scal.theory.ntk import Penalty, Problem
from scal.theory.report import COLOURS, Data, Report, Slope, fitted, guide, label, panels
from scal.theory.studies.problems import DIMENSION, WIDTHS, keys_of, small

RADIUS = 30.0
PENALTY = Penalty(mu=2.0, beta=2.0)


@partial(jax.jit, static_argnames=("times", "linear"))
def learned(
    networks: Any, at: Any, old: Any, problem: Problem, constants: Penalty, steps: int,
    times: int = 1, linear: bool = False, R: float = RADIUS,
) -> ntk.Averages:  # fmt: skip
    """`ntk.descend` for several networks, one after another."""

    def one(parts: Any) -> ntk.Averages:
        return ntk.descend(*parts, problem, constants, R, steps, times, linear)

    return jax.lax.map(one, (networks, at, old))


def begun(seed: int, count: int, width: int, problem: Problem) -> tuple[Any, Any, Any]:
    """Some networks, their parameters and x at the start."""
    networks = jax.vmap(lambda key: ntk.init_networks(key, width, problem))(keys_of(seed, count))
    at = jax.vmap(ntk.start)(networks)
    x = jax.vmap(lambda n, a: ntk.functions(n, a, problem, False)[1])(networks, at)
    return networks, at, x


def tabular(mdp: FiniteMDP, x: Any) -> Any:
    """Numbers per pair as an array (S, A)."""
    table = np.zeros(mdp.R.shape)
    table[mdp.feasible] = np.asarray(x, dtype=float)
    return table


def outer_loop(
    begin: tuple[Any, Any, Any], mdp: FiniteMDP, problem: Problem, constants: Penalty,
    steps: int, count: int, linear: bool = False, R: float = RADIUS,
) -> Any:  # fmt: skip
    """‖xᵏ − Txᵏ‖² for k = 1 … `count` (rows) and every network of `begun` (columns)."""
    networks, at, x = begin
    residuals = []
    for _ in range(count):
        averages = learned(networks, at, x, problem, constants, steps, linear=linear, R=R)
        at, x = averages.at, averages.x[:, -1]
        residuals.append([errors.residual(mdp, tabular(mdp, one), constants.mu) for one in x])
    return np.array(residuals)


def _squared(problem: Problem, difference: Any) -> Any:
    """‖·‖²_w of the last axis."""
    return (np.asarray(problem.w, dtype=float) * np.asarray(difference, dtype=float) ** 2).sum(-1)


SEEDS = 3
INNER = 512


def measure_width(seed: int) -> Report:
    """One outer iteration at every width: distance from x̃, and from the linearised twin."""
    data: Data = {"m": list(WIDTHS), "problems": {}}
    slopes = []
    for name, mdp in small().items():
        problem = ntk.embed(mdp, DIMENSION, seed)
        rows: Data = {"network": [], "linear": [], "twins": [], "moved": []}
        for m in WIDTHS:
            networks, at, old = begun(seed, SEEDS, m, problem)
            exact = [penalty.penalty_step(mdp, tabular(mdp, x), *PENALTY).x for x in old]
            goal = np.stack([x[mdp.feasible] for x in exact])
            run = partial(learned, networks, at, old, problem, PENALTY, INNER)
            real, twin = run(), run(linear=True)
            rows["network"].append(float(_squared(problem, real.x[:, -1] - goal).mean()))
            rows["linear"].append(float(_squared(problem, twin.x[:, -1] - goal).mean()))
            rows["twins"].append(float(_squared(problem, real.x[:, -1] - twin.x[:, -1]).mean()))
            moved = jnp.linalg.norm(real.at.theta - at.theta, axis=(1, 2))
            rows["moved"].append(float(moved.mean()))
        data["problems"][name] = rows
        text = f"‖x_θ − its linear twin‖², {name}"
        slopes.append(fitted(text, "m", WIDTHS, rows["twins"], -0.25, "bound", (64, np.inf)))
    parameters = {"m": [16, 16384], "T": INNER, "R": RADIUS, "seeds": SEEDS, "d": DIMENSION}
    return Report("width", seed, parameters | PENALTY._asdict(), slopes, data)


def draw_width(data: Data, slopes: list[Slope]) -> Any:
    """Errors of one outer iteration over m."""
    title = "Wider networks come as close as their linearisations, faster than the bound m^−1/4"
    figure, axes = panels(2, title)
    for axis, (name, rows) in zip(axes, data["problems"].items(), strict=True):
        for (key, text), colour in zip(
            {
                "network": "network: ‖x_θ − x̃‖²",
                "linear": "linearised: ‖x⁰_θ − x̃‖², the floor at this T",
                "twins": "between the two: ‖x_θ − x⁰_θ‖²",
            }.items(),
            COLOURS,
            strict=False,
        ):
            axis.plot(data["m"], rows[key], "o-", markersize=4, color=colour, label=text)
        guide(axis, data["m"], rows["twins"], -0.25, "bound")
        label(axis, f"{name} MDP, T = {INNER}, one outer iteration", "width m", "E‖·‖²_w")
    return figure


TIMES = tuple(2**power for power in range(4, 13))
OUTER = tuple(2**power for power in range(0, 8))
BETAS = tuple(float(2**power) for power in range(0, 11))
SHOWN = (4.0, 32.0, 256.0, 1024.0)
NETWORK_OUTER = 16
NETWORK_WIDTH = 1024


def measure_residual(seed: int) -> Report:
    """‖x_θ − x̃‖² over T, and ‖x − Tx‖² over β and K, for tables and for networks."""
    data: Data = {"T": list(TIMES), "beta": list(BETAS), "K": list(OUTER), "problems": {}}
    slopes: list[Slope] = []
    for name, mdp in small().items():
        problem = ntk.embed(mdp, DIMENSION, seed)
        rows: Data = {
            "T": _over_inner_steps(seed, mdp, problem),
            "beta": [_at_rest(mdp, beta) for beta in BETAS],
            "K": {f"{beta:g}": _over_outer_steps(mdp, beta) for beta in SHOWN},
            "network": _networks_over_outer_steps(seed, mdp, problem),
        }
        data["problems"][name] = rows
        over_T = (f"‖x_θ − x̃‖², {name}", "T", TIMES, rows["T"])
        over_beta = (f"‖x − Tx‖² at rest, {name}", "β", BETAS, rows["beta"])
        over_K = (f"mean of ‖xᵏ − Txᵏ‖², {name}", "K", OUTER, rows["K"]["1024"])
        slopes += [
            fitted(*over_T, -1.0, "bound", (256, np.inf)),
            fitted(*over_beta, -1.0, "bound", (4, np.inf)),
            fitted(*over_K, -1.0, "bound", (8, np.inf)),
        ]
    parameters = {
        "T": [TIMES[0], TIMES[-1]], "beta": [BETAS[0], BETAS[-1]], "K": [OUTER[0], OUTER[-1]],
        "m": NETWORK_WIDTH, "R": RADIUS, "mu": PENALTY.mu, "c": PENALTY.c, "seeds": SEEDS,
        "network": {"beta": SHOWN[0], "T": INNER, "K": NETWORK_OUTER},
    }  # fmt: skip
    return Report("residual", seed, parameters, slopes, data)


def _over_inner_steps(seed: int, mdp: FiniteMDP, problem: Problem) -> list[float]:
    """‖x_θ − x̃‖² of the averaged parameters after T steps."""
    networks, at, old = begun(seed, SEEDS, NETWORK_WIDTH, problem)
    goal = np.stack([penalty.penalty_step(mdp, tabular(mdp, x), *PENALTY).x for x in old])
    x = learned(networks, at, old, problem, PENALTY, TIMES[0], TIMES[-1] // TIMES[0]).x
    error = _squared(problem, x - goal[:, None, mdp.feasible]).mean(axis=0)
    return [float(error[T // TIMES[0] - 1]) for T in TIMES]


def _at_rest(mdp: FiniteMDP, beta: float) -> float:
    """‖x − Tx‖² where penalty steps come to rest."""
    x = penalty.penalty_fixed_point(mdp, PENALTY.mu, beta, PENALTY.c).x
    return errors.residual(mdp, x, PENALTY.mu)


def _over_outer_steps(mdp: FiniteMDP, beta: float) -> list[float]:
    """The mean of ‖xᵏ − Txᵏ‖² over k ≤ K for exact penalty steps from x = 0."""
    x, residuals = np.zeros(mdp.R.shape), []
    for _ in range(OUTER[-1]):
        x = penalty.penalty_step(mdp, x, PENALTY.mu, beta, PENALTY.c).x
        residuals.append(errors.residual(mdp, x, PENALTY.mu))
    return [float(np.mean(residuals[:K])) for K in OUTER]


def _networks_over_outer_steps(seed: int, mdp: FiniteMDP, problem: Problem) -> list[float]:
    """The same for networks: ‖xᵏ − Txᵏ‖² of every k, averaged over k ≤ K."""
    constants, begin = PENALTY._replace(beta=SHOWN[0]), begun(seed, SEEDS, NETWORK_WIDTH, problem)
    residuals = outer_loop(begin, mdp, problem, constants, INNER, NETWORK_OUTER).mean(axis=1)
    return [float(residuals[:K].mean()) for K in range(1, NETWORK_OUTER + 1)]


def draw_residual(data: Data, slopes: list[Slope]) -> Any:
    """Over T, over β and over K."""
    title = (
        "The residual falls with T, β and K no slower than its bounds; "
        "networks keep what T steps leave undone"
    )
    figure, (inner, weight, *outer) = panels(4, title)
    for (name, rows), colour in zip(data["problems"].items(), COLOURS, strict=False):
        inner.plot(data["T"], rows["T"], "o-", markersize=4, color=colour, label=f"{name} MDP")
        weight.plot(data["beta"], rows["beta"], "o-", markersize=4, color=colour,
                    label=f"{name} MDP")  # fmt: skip
    rows = data["problems"]["inventory"]  # the larger of the two
    guide(inner, data["T"], rows["T"], -1.0, "bound")
    label(inner, f"networks, m = {NETWORK_WIDTH:,}", "inner steps T", "E‖x_θ − x̃‖²_w")
    guide(weight, data["beta"], rows["beta"], -1.0, "bound")
    label(weight, "tables, at rest", "penalty weight β", "‖x − Tx‖²_w")
    for axis, (name, rows) in zip(outer, data["problems"].items(), strict=True):
        for (beta, means), colour in zip(rows["K"].items(), COLOURS, strict=False):
            axis.plot(data["K"], means, "o-", markersize=3, color=colour, label=f"β = {beta}")
        K = np.arange(1, len(rows["network"]) + 1)
        axis.plot(K, rows["network"], "s:", markersize=3, color=COLOURS[5],
                  label=f"networks, β = {SHOWN[0]:g}, T = {INNER}")  # fmt: skip
        guide(axis, data["K"], rows["K"]["1024"], -1.0, "bound")
        label(axis, f"{name} MDP", "outer iterations K", "mean of ‖xᵏ − Txᵏ‖²_w")
    return figure
