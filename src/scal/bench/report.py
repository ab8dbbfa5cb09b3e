"""One HTML page of some grids: who wins where, how surely, how fast, with every setting.

The page needs no network. Its figures are drawn here, as SVG, and read without JavaScript; a little
of it lets a reader hide series and read values off.
"""

import html
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from scal.bench.execute import Result
from scal.bench.series import Series, gather, read
from scal.bench.statistics import interval, iqm

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 70, WIDTH - 15, 15, HEIGHT - 45
COLOURS = {"scal", "ppo", "trpo", "sac", "dqn"}


def write(folders: Sequence[Path], target: Path) -> Path:
    """Read the results of some grids and write the page."""
    results = read(folders)
    target.write_text(page(gather(results), [result for result, _ in results]))
    return target


def page(series: list[Series], results: list[Result]) -> str:
    """The whole page."""
    names = sorted({one.env for one in series}, key=[one.env for one in series].index)
    seeds = sum(len(one.last) for one in series)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>SCAL: results</title>",
        f"<style>{_asset('page.css')}</style></head><body>",
        "<h1>SCAL and its rivals</h1>",
        f'<p class="quiet">{len(names)} environments, {seeds} runs. Returns of greedy episodes; '
        "lines are means over seeds, bands one standard deviation; intervals are 95 % bootstrap "
        "intervals of the interquartile mean.</p>",
        "<h2>At the end</h2>",
        *(_standing([one for one in series if one.env == env]) for env in names),
        "<h2>Learning curves</h2>",
        legend(series),
        '<div class="figures">',
        *(figure([one for one in series if one.env == env]) for env in names),
        "</div>",
        "<h2>Speed</h2>",
        _speeds(series),
        "<h2>Settings and versions</h2>",
        _settings(results),
        f"<script>{_asset('page.js')}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def figure(series: Sequence[Series]) -> str:
    """The curves of one environment."""
    name = series[0].env
    last = int(max(one.steps[-1] for one in series))
    low = float(min((one.mean - one.std).min() for one in series))
    high = float(max((one.mean + one.std).max() for one in series))
    low, high = (low - 1.0, high + 1.0) if low == high else (low, high)

    def across(steps: Any) -> Any:
        return LEFT + (RIGHT - LEFT) * np.asarray(steps) / last

    def up(values: Any) -> Any:
        return BOTTOM - (BOTTOM - TOP) * (np.asarray(values) - low) / (high - low)

    lines = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(name)}">']
    for value in ticks(low, high):
        y = float(up(value))
        lines.append(f'<path class="mesh" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:,.6g}</text>')
    for value in ticks(0.0, last):
        x = float(across(value))
        label = f"{value / 1_000:,.6g}k" if last >= 10_000 else f"{value:,.6g}"
        lines.append(f'<text x="{x:.1f}" y="{BOTTOM + 18}" text-anchor="middle">{label}</text>')
    middle = (LEFT + RIGHT) / 2
    lines.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">interactions</text>')
    lines.append(f'<path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>')
    for one in series:
        x = across(one.steps)
        above, below = up(one.mean + one.std), up(one.mean - one.std)
        band = _points(np.concatenate([x, x[::-1]]), np.concatenate([above, below[::-1]]))
        lines.append(
            f'<g class="series" data-who="{html.escape(one.who)}">'
            f'<polygon class="band" fill="{_colour(one)}" points="{band}"/>'
            f'<polyline class="mean{_dashes(one)}" stroke="{_colour(one)}" '
            f'points="{_points(x, up(one.mean))}"/></g>'
        )
    lines.append(f'<line class="cursor" y1="{TOP}" y2="{BOTTOM}"/>')
    facts = {
        "width": WIDTH, "left": LEFT, "right": RIGHT, "last": last,
        "series": {
            one.who: {
                "steps": one.steps.tolist(),
                "mean": one.mean.round(2).tolist(),
                "std": one.std.round(2).tolist(),
            }
            for one in series
        },
    }  # fmt: skip
    return (
        f'<figure class="curves"><figcaption>{html.escape(name)}</figcaption>'
        + "\n".join([*lines, "</svg>"])
        + f'<div class="tip"></div><script type="application/json">{_json(facts)}</script></figure>'
    )


def legend(series: Iterable[Series]) -> str:
    """A box for every name."""
    shown = {one.who: one for one in series}
    boxes = (
        f'<label><input type="checkbox" checked value="{html.escape(name)}">'
        f'<span class="swatch" style="background: {_colour(one)}"></span>'
        f"{html.escape(name)}</label>"
        for name, one in shown.items()
    )
    return f'<div class="legend">{"".join(boxes)}</div>'


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


def _standing(series: Sequence[Series]) -> str:
    """Who stands where in one environment, best first."""
    exact = any(one.gaps is not None for one in series)
    heads = ["", "seeds", "mean ± std", "worst", "IQM", "95 %"] + ["exact gap"] * exact
    rows = []
    for place, one in enumerate(sorted(series, key=lambda one: -float(iqm(one.last)))):
        low, high = interval([one.last])
        cells = [
            one.who,
            str(len(one.last)),
            f"{one.last.mean():,.1f} ± {one.last.std():,.1f}",
            f"{one.last.min():,.1f}",
            f"{float(iqm(one.last)):,.1f}",
            f"{low:,.0f} to {high:,.0f}",
        ]
        if exact:
            cells.append("" if one.gaps is None else f"{one.gaps[:, -1].mean():.2%}")
        rows.append((cells, "best" if place == 0 else ""))
    title = f"<h3>{html.escape(series[0].env)}, {int(series[0].steps[-1]):,} interactions</h3>"
    return title + _table(heads, rows)


def _speeds(series: Iterable[Series]) -> str:
    timed = [one for one in series if one.seconds]
    rows = [([one.env, one.who, f"{one.speed:,.0f}"], "") for one in timed]
    note = '<p class="quiet">Interactions per second and process, evaluations included.</p>'
    return note + _table(["environment", "who", "per second"], rows)


def _settings(results: Sequence[Result]) -> str:
    cells = [result["cell"] for result in results]
    texts = dict.fromkeys(json.dumps(result["versions"], indent=1) for result in results)
    return (
        f"<details><summary>{len(cells)} cells</summary>"
        f"<pre>{html.escape(json.dumps(cells, indent=1))}</pre></details>"
        + "".join(f"<pre>{html.escape(text)}</pre>" for text in texts)
    )


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


def _colour(one: Series) -> str:
    return f"var(--{one.algorithm if one.algorithm in COLOURS else 'other'})"


def _dashes(one: Series) -> str:
    return "" if one.who == one.algorithm.upper() else " dashed"


def _json(facts: Any) -> str:
    return json.dumps(facts).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return resources.files("scal.bench").joinpath(name).read_text(encoding="utf-8")
