"""How far two-layer networks are from their linearisations."""

from functools import partial
from itertools import product
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np

from scal.theory import ntk
from scal.theory.ntk import Problem
from scal.theory.report import COLOURS, Data, Report, Slope, fitted, guide, label, panels
from scal.theory.studies.problems import DIMENSION, WIDTHS, keys_of, small

RADII = (1.0, 0.25, 0.5, 2.0, 4.0)
WIDTH_OF_RADII = 4096
NETWORKS = 128


def orders(unknown: str, direction: str) -> tuple[float, float]:
    """Exponents of m and R that the error has; the lemma's bound has −1/2 and 3.

    About m·R/√m units change sign, each worth R/√m·1/√m. Of one sign they add up, to R⁴/m in the
    square; of random signs they cancel, and leave R³/m^{3/2}. The slack has b_i = 1 throughout.
    """
    adds_up = direction == "coherent" or unknown == "h"
    return (-1.0, 4.0) if adds_up else (-1.5, 3.0)


def _squares(
    key: Any, points: Any, width: int, radii: Any, positive: bool, direction: ntk.Direction
) -> Any:
    """The mean over inputs of (f − f⁰)² for one network, at every R."""
    init_key, move_key = jax.random.split(key)
    layer = ntk.init_layer(init_key, width, points.shape[1], positive)

    def square(R: Any) -> Any:
        W = ntk.move(move_key, layer, R, direction)
        return (ntk.linearisation_error(layer, W, points) ** 2).mean()

    return jax.lax.map(square, radii)


@partial(jax.jit, static_argnames=("width",))
def _linearisation(keys: Any, problem: Problem, width: int) -> dict[str, Any]:
    """The mean over networks of (f − f⁰)² at R = 1 first, and of h at its start.

    The other R follow for one width.
    """
    inputs = {"V": problem.states, "h": problem.pairs, "x": problem.pairs}
    radii = jnp.asarray(RADII if width == WIDTH_OF_RADII else (1.0,))

    def one(key: Any) -> dict[str, Any]:
        found = {"slack": ntk.initial_slack(key, width, problem.pairs)}
        for unknown, direction in product(inputs, get_args(ntk.Direction)):
            own_key = jax.random.fold_in(key, len(found))
            found[f"{unknown}, {direction}"] = _squares(
                own_key, inputs[unknown], width, radii, unknown == "h", direction
            )
        return found

    return jax.tree.map(lambda part: part.mean(axis=0), jax.lax.map(one, keys))


def measure(seed: int) -> Report:
    """E(f − f⁰)² over m and R for V, h and x, and the size of the slack at its start."""
    data: Data = {"m": list(WIDTHS), "R": sorted(RADII), "problems": {}, "slack": {}}
    slopes = []
    for name, mdp in small().items():
        problem = ntk.embed(mdp, DIMENSION, seed)
        found = [_linearisation(keys_of(seed, NETWORKS), problem, m) for m in WIDTHS]
        rows: Data = {}
        for unknown, direction in product("Vhx", get_args(ntk.Direction)):
            key = f"{unknown}, {direction}"
            by_width = [float(at[key][0]) for at in found]
            at_radii = found[WIDTHS.index(WIDTH_OF_RADII)][key]
            by_radius = [float(at_radii[RADII.index(R)]) for R in sorted(RADII)]
            rows[key] = {"m": by_width, "R": by_radius}
            in_m, in_R = orders(unknown, direction)
            text = f"E({unknown} − {unknown}⁰)², {direction} move, {name}"
            slopes.append(fitted(text, "m", WIDTHS, by_width, in_m, "exact", (256, np.inf)))
            slopes.append(fitted(text, "R", sorted(RADII), by_radius, in_R, "exact"))
        data["problems"][name] = rows
        data["slack"][name] = [float(at["slack"]) for at in found]
        text = f"h at its start, {name}"
        slopes.append(fitted(text, "m", WIDTHS, data["slack"][name], 0.5, "exact"))
    parameters = {
        "m": [16, 16384],
        "R": [min(RADII), max(RADII)],
        "networks": NETWORKS,
        "d": DIMENSION,
    }
    return Report("linearisation", seed, parameters, slopes, data)


def draw(data: Data, slopes: list[Slope]) -> Any:
    """Errors over m and R, and the slack's start."""
    title = "Wide networks become linear near their start, faster than the bound; h starts at √m"
    figure, (width, radius, start) = panels(3, title)
    markers = {"random": "o", "inventory": "s"}
    for (name, rows), (unknown, colour) in product(
        data["problems"].items(), zip("Vhx", COLOURS, strict=False)
    ):
        for direction, style in (("coherent", "-"), ("random", ":")):
            row = rows[f"{unknown}, {direction}"]
            text = f"{unknown}, {direction} move" if name == "random" else None
            for axis, key in ((width, "m"), (radius, "R")):
                axis.plot(data[key], row[key], markers[name] + style, markersize=3, color=colour,
                          linewidth=1, label=text)  # fmt: skip
    rows = data["problems"]["random"]
    for axis, key in ((width, "m"), (radius, "R")):
        for direction in ("coherent", "random"):
            exponent = orders("x", direction)[key == "R"]
            guide(axis, data[key], rows[f"x, {direction}"][key], exponent, "exact")
    guide(width, data["m"], rows["V, coherent"]["m"], -0.5, "bound")
    label(width, "‖W − W⁰‖ = 1", "width m", "E(f − f⁰)²")
    label(radius, f"m = {WIDTH_OF_RADII:,}", "distance R", "E(f − f⁰)²", legend=None)
    radius.set_xticks(data["R"], [f"{R:g}" for R in data["R"]])
    radius.minorticks_off()
    for (name, sizes), colour in zip(data["slack"].items(), COLOURS, strict=False):
        start.plot(data["m"], sizes, "o-", markersize=4, color=colour, label=f"{name} MDP")
    guide(start, data["m"], data["slack"]["random"], 0.5, "exact")
    label(start, "slack network with ψ₁ = 1 at its start", "width m", "mean of h")
    return figure
