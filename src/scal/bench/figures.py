"""Panels as files: SVG or PNG, drawn by matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scal.bench.panels import PALETTE, Line, Panel

KINDS = (".svg", ".png")


def write(path: Path, panels: Sequence[Panel], columns: int = 2) -> Path:
    """Some panels side by side, with one legend; the same panels make the same file."""
    if not panels:
        raise ValueError(f"there is nothing to draw for {path}; no run has a result")
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "scal"
    import matplotlib.pyplot as plt

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.8 * columns, 3.4 * rows), squeeze=False, layout="constrained"
    )
    names: dict[str, Any] = {}
    for panel, pair in zip(panels, axes.flat, strict=False):
        for line in panel.lines:
            names[line.name] = _draw(pair, line)
        pair.set_title(panel.title, fontsize=10)
        pair.set_xlabel(panel.across)
        pair.set_ylabel(panel.up)
        pair.set_yscale("log" if panel.log else "linear")
        pair.grid(alpha=0.3)
        if panel.across == "interactions":
            pair.xaxis.set_major_formatter(lambda value, _: f"{value / 1_000:g}k")
    for pair in axes.flat[len(panels) :]:
        pair.axis("off")
    figure.legend(
        names.values(), names.keys(), loc="outside lower center", ncols=2 * columns, frameon=False
    )
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=150, metadata=metadata)
    plt.close(figure)
    return path


def _draw(axes: Any, line: Line) -> Any:
    colour = PALETTE[line.style.colour][0]
    axes.fill_between(line.across, line.low, line.high, color=colour, alpha=0.16, lw=0)
    (drawn,) = axes.plot(
        line.across, line.mean, color=colour, lw=1.6, ls="--" if line.style.dashed else "-"
    )
    return drawn
