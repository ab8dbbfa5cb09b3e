"""What a study hands over: numbers as JSON, and a figure drawn from nothing but these numbers."""

import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from scal.run.source import source, versions

PACKAGES = ("scal-rl", "numpy", "scipy", "jax", "jaxlib", "matplotlib")
COLOURS = ("#1f5fa8", "#c4452f", "#2f8f5b", "#8a5fb0", "#b8860b", "#555555")
Data = dict[str, Any]


@dataclass(frozen=True)
class Slope:
    """The exponent of a power law, measured over a range, beside the predicted one."""

    quantity: str
    variable: str
    measured: float
    predicted: float
    kind: Literal["exact", "bound"]
    """Whether the slope is predicted to be this, or this steep at least."""
    low: float
    high: float
    """The range of the variable."""

    @property
    def holds(self) -> bool:
        """Whether the measurement agrees: within 10 %, or no flatter than 90 % of the bound."""
        if self.kind == "bound":
            return self.measured <= 0.9 * self.predicted
        return abs(self.measured - self.predicted) <= 0.1 * max(abs(self.predicted), 1.0)


@dataclass(frozen=True)
class Report:
    """The numbers of a study."""

    study: str
    seed: int
    parameters: Data
    slopes: list[Slope]
    data: Data
    seconds: float = 0.0
    """By the clock."""
    cpu_seconds: float = 0.0
    """Of all cores together, which other work on the machine does not change."""
    provenance: Data = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A measurement that can be run and drawn."""

    name: str
    line: str
    """What it shows, in one line."""
    measure: Callable[[int], Report]
    """Seed → numbers."""
    draw: Callable[[Data, list[Slope]], Any]
    """Numbers → matplotlib figure."""

    def run(self, seed: int = 0) -> Report:
        """Measure, and note where the numbers come from."""
        clock, cpu = time.perf_counter(), time.process_time()
        report = self.measure(seed)
        return replace(
            report,
            seconds=round(time.perf_counter() - clock, 1),
            cpu_seconds=round(time.process_time() - cpu, 1),
            provenance=provenance(),
        )

    def write(self, report: Report, numbers: Path, figures: Path) -> list[Path]:
        """theory_NAME.json in one folder and theory_NAME.svg in the other."""
        stem = f"theory_{self.name.replace('-', '_')}"
        written = [numbers / f"{stem}.json", figures / f"{stem}.svg"]
        written[0].write_text(json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n")
        save(self.draw(report.data, report.slopes), written[1])
        return written


def provenance() -> Data:
    """Commit, versions and machine."""
    return {
        **source()._asdict(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": versions(PACKAGES),
    }


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """The least-squares slope of log y over log x.

    >>> round(slope([1, 10, 100], [5, 0.5, 0.05]), 12)
    -1.0
    """
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def shortened(numbers: ArrayLike) -> list[float]:
    """Four digits of each, for files that people open.

    >>> shortened([1 / 3, 12345.6])
    [0.3333, 12350.0]
    """
    return [float(f"{number:.4g}") for number in np.asarray(numbers, dtype=float)]


def fitted(
    quantity: str,
    variable: str,
    x: ArrayLike,
    y: ArrayLike,
    predicted: float,
    kind: Literal["exact", "bound"],
    over: tuple[float, float] = (0.0, np.inf),
) -> Slope:
    """The slope over a range of x."""
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    used = (xs >= over[0]) & (xs <= over[1])
    ends = float(xs[used].min()), float(xs[used].max())
    measured = round(slope(xs[used], ys[used]), 3)
    return Slope(quantity, variable, measured, predicted, kind, *ends)


def panels(count: int, title: str) -> tuple[Any, list[Any]]:
    """A figure with some axes side by side."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "scal"  # the same figure is the same file
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, count, figsize=(4.4 * count, 3.9), layout="constrained")
    figure.suptitle(title, fontsize=11)
    return figure, list(np.atleast_1d(axes))


def label(axes: Any, title: str, x: str, y: str, log: str = "xy", legend: Any = "best") -> None:
    """Names, logarithmic axes, grid and, where `legend` says, a legend."""
    for axis in log:
        getattr(axes, f"set_{axis}scale")("log")
    axes.set_title(title, fontsize=9.5)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25, which="major")
    if legend is not None:
        axes.legend(fontsize=7.5, frameon=False, loc=legend)


def guide(
    axes: Any, x: ArrayLike, y: ArrayLike, exponent: float, kind: Literal["exact", "bound"]
) -> None:
    """A dashed line of the predicted slope: a little above the last point, or above all of them."""
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    scale = (ys * xs**-exponent).max() if kind == "bound" else ys[-1] * xs[-1] ** -exponent
    name = f"{'slope' if kind == 'exact' else 'bound, slope'} {exponent:g}".replace("-", "−")
    axes.plot(xs, 1.5 * scale * xs**exponent, "--", color="#999999", linewidth=1.1, label=name)


def save(figure: Any, path: Path) -> None:
    """Write the figure, without a date in it."""
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
