"""One HTML page of some grids: who wins where, how surely, how fast, with every setting.

The page needs no network. Its figures are drawn here, as SVG, and read without JavaScript; a little
of it lets a reader hide series and read values off.
"""

import html
import json
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from scal.bench import figures
from scal.bench.baselines import settings_of
from scal.bench.cell import Cell
from scal.bench.execute import Result
from scal.bench.panels import PALETTE, Panel, groups, panels
from scal.bench.series import Series, gather, read, told_ratio, who
from scal.bench.standings import HEADS, standings

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 70, WIDTH - 22, 15, HEIGHT - 45


def write(folders: Sequence[Path], target: Path) -> Path:
    """Read the results of some grids and write the page."""
    results = read(folders)
    target.write_text(page(gather(results), [result for result, _ in results]))
    return target


def write_figures(folders: Sequence[Path], target: Path) -> list[Path]:
    """Write every figure of the page into a folder, as SVG and as PNG."""
    target.mkdir(parents=True, exist_ok=True)
    return [
        figures.write(target / f"{panel.name}{kind}", [panel])
        for panel in panels(gather(read(folders)))
        for kind in figures.KINDS
    ]


def page(series: list[Series], results: list[Result]) -> str:
    """The whole page."""
    compared = groups([one for one in series if not one.gradients])
    studied = [one for one in series if one.gradients]
    drawn = panels(series)
    runs = sum(len(one.last) for one in series)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>SCAL: results</title>",
        f"<style>{_colours()}{_asset('page.css')}</style></head><body>",
        "<h1>SCAL and its rivals</h1>",
        f'<p class="quiet">{runs} runs in {len({one.env for one in series})} environments. Returns '
        "are those of greedy episodes; lines are means over seeds, bands one standard deviation; "
        "intervals are 95 % bootstrap intervals of the interquartile mean.</p>",
        *(["<h2>At the end</h2>"] if compared else []),
        *(_standing(env, steps, group) for (env, steps), group in compared),
        *(["<h2>Two estimators of one gradient</h2>", _ratios(studied)] if studied else []),
        "<h2>Figures</h2>",
        legend(drawn),
        '<div class="figures">',
        *map(figure, drawn),
        "</div>",
        "<h2>Speed</h2>",
        _speeds(series),
        "<h2>Settings and versions</h2>",
        _settings(results),
        f"<script>{_asset('page.js')}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def figure(panel: Panel) -> str:
    """One panel."""
    last = float(max(line.across[-1] for line in panel.lines))
    scale: Callable[[Any], Any] = np.log10 if panel.log else np.asarray
    low = float(min(scale(line.low).min() for line in panel.lines))
    high = float(max(scale(line.high).max() for line in panel.lines))
    low, high = (low - 1.0, high + 1.0) if low == high else (low, high)

    def across(steps: Any) -> Any:
        return LEFT + (RIGHT - LEFT) * np.asarray(steps) / last

    def up(values: Any) -> Any:
        return BOTTOM - (BOTTOM - TOP) * (np.asarray(values) - low) / (high - low)

    title = html.escape(panel.title)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">']
    for value in decades(low, high) if panel.log else ticks(low, high):
        y, label = float(up(value)), 10.0**value if panel.log else value
        parts.append(f'<path class="mesh" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label:,.6g}</text>')
    for value in ticks(0.0, last):
        x = float(across(value))
        label = f"{value / 1_000:,.6g}k" if last >= 10_000 else f"{value:,.6g}"
        parts.append(f'<text x="{x:.1f}" y="{BOTTOM + 18}" text-anchor="middle">{label}</text>')
    middle = (LEFT + RIGHT) / 2
    words = html.escape(panel.across)
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{words}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>')
    for line in panel.lines:
        x, below, above = across(line.across), up(scale(line.low)), up(scale(line.high))
        outline = _points(np.concatenate([x, x[::-1]]), np.concatenate([above, below[::-1]]))
        colour, dashes = f"var(--{line.style.colour})", " dashed" * line.style.dashed
        parts.append(
            f'<g class="series" data-who="{html.escape(line.name)}">'
            f'<polygon class="band" fill="{colour}" points="{outline}"/>'
            f'<polyline class="mean{dashes}" stroke="{colour}" '
            f'points="{_points(x, up(scale(line.mean)))}"/></g>'
        )
    parts.append(f'<line class="cursor" y1="{TOP}" y2="{BOTTOM}"/>')
    facts = {
        "width": WIDTH, "left": LEFT, "right": RIGHT, "last": last, "across": panel.across,
        "series": {
            line.name: {
                "steps": line.across.tolist(),
                "mean": _rounded(line.mean),
                "low": _rounded(line.low),
                "high": _rounded(line.high),
            }
            for line in panel.lines
        },
    }  # fmt: skip
    return (
        f'<figure class="curves"><figcaption>{title}: {html.escape(panel.up)}</figcaption>'
        + "\n".join([*parts, "</svg>"])
        + f'<div class="tip"></div><script type="application/json">{_json(facts)}</script></figure>'
    )


def legend(drawn: Iterable[Panel]) -> str:
    """A box for every name."""
    shown = {line.name: line.style for panel in drawn for line in panel.lines}
    boxes = (
        f'<label><input type="checkbox" checked value="{html.escape(name)}">'
        f'<span class="swatch{" broken" * style.dashed}" style="color: var(--{style.colour})">'
        f"</span>{html.escape(name)}</label>"
        for name, style in shown.items()
    )
    return f'<div class="legend">{"".join(boxes)}</div>'


def decades(low: float, high: float) -> list[float]:
    """Powers of ten between two logarithms; ticks between them if there are too few.

    >>> decades(-1.2, 2.1)
    [-1.0, 0.0, 1.0, 2.0]
    """
    whole = [float(power) for power in range(int(np.ceil(low)), int(np.floor(high)) + 1)]
    if len(whole) > 1:
        return whole
    return [float(np.log10(value)) for value in ticks(10.0**low, 10.0**high) if value > 0]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high.

    >>> ticks(0.0, 1000.0)
    [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]
    """
    rough = (high - low) / about
    power = 10.0 ** np.floor(np.log10(rough))
    width = next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= rough * 0.999)
    count = int(np.floor(high / width + 1e-9)) - int(np.ceil(low / width - 1e-9)) + 1
    first = np.ceil(low / width - 1e-9)
    return [float((first + number) * width) + 0.0 for number in range(count)]


def _standing(env: str, steps: int, series: Sequence[Series]) -> str:
    """Who stands where in one environment, best first."""
    found = standings(series)
    shown = len(HEADS) if any(one.gap for one in found) else len(HEADS) - 1
    rows = [(one.words[:shown], "best" if one.best else "") for one in found]
    title = f"<h3>{html.escape(env)}, {steps:,} interactions</h3>"
    return title + _table(["", *HEADS[1:shown]], rows)


def _ratios(series: Iterable[Series]) -> str:
    """How much larger the variance of g₂ is, in the second half of the runs."""
    rows = []
    for one in series:
        given = told_ratio(one, "_given_sa") if one.random else "–"
        rows.append(([f"{one.env}, {one.settings}", told_ratio(one), given], ""))
    note = (
        '<p class="quiet">Variance of g₂ over that of g₁, geometric mean of the second half of all '
        "runs, in brackets that of single seeds; the last column holds s and a fixed, so that only "
        "s' is random.</p>"
    )
    return note + _table(["environment, preset", "Var g₂ / Var g₁", "given s and a"], rows)


def _speeds(series: Iterable[Series]) -> str:
    timed = [one for one in series if one.seconds]
    rows = [([one.env, one.who, f"{one.speed:,.0f}"], "") for one in timed]
    note = (
        '<p class="quiet">Interactions per second and process, evaluations included, on '
        "whatever machine and beside whatever else each cell was run.</p>"
    )
    return note + _table(["environment", "who", "per second"], rows)


def _settings(results: Sequence[Result]) -> str:
    """Cells with their commits; then, once each, options, values of the rivals, and versions."""
    named = ("cell", "commit", "clean")
    cells = [{name: result[name] for name in named if name in result} for result in results]
    return (
        _folded(f"{len(cells)} cells", cells)
        + "".join(_folded(f"Options of {name}", used) for name, used in _used(results))
        + "".join(
            f"<pre>{html.escape(text)}</pre>"
            for text in dict.fromkeys(json.dumps(one["versions"], indent=1) for one in results)
        )
    )


def _used(results: Iterable[Result]) -> list[tuple[str, Any]]:
    """The options that results of SCAL tell, and the values that rivals have for such cells."""
    found: dict[str, tuple[str, Any]] = {}
    for result in results:
        cell = Cell.read(result["cell"])
        used = result.get("config") if cell.algorithm == "scal" else settings_of(cell)
        if used is not None:
            name = f"{who(result['cell'])}, {cell.env}"
            found.setdefault(name + json.dumps(used, default=str), (name, used))
    return list(found.values())


def _folded(title: str, content: Any) -> str:
    text = html.escape(json.dumps(content, indent=1, default=str))
    return f"<details><summary>{html.escape(title)}</summary><pre>{text}</pre></details>"


def _table(heads: Sequence[str], rows: Iterable[tuple[Sequence[str], str]]) -> str:
    top = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
    body = "".join(
        f'<tr class="{kind}">'
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for cells, kind in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _points(x: Any, y: Any) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _colours() -> str:
    """The palette as variables of CSS."""
    light, dark = (
        "".join(f"--{name}: {pair[number]};" for name, pair in PALETTE.items()) for number in (0, 1)
    )
    return f":root {{{light}}}\n@media (prefers-color-scheme: dark) {{ :root {{{dark}}} }}\n"


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _json(facts: Any) -> str:
    return json.dumps(facts).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return resources.files("scal.bench").joinpath(name).read_text(encoding="utf-8")
