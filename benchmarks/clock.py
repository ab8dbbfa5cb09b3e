"""What everybody has learned after the same time on one core: a table and a JSON file.

    python -m benchmarks.clock                 measures speeds, then prints
    python -m benchmarks.clock --no-measure    prints what the JSON holds

The curves are those of figure 6 (experiments/results/continuous.json), whose own times are of busy
machines and of a GPU. So interactions per second of processor time are measured here, for every
learner in every environment, taking turns, each in a process of its own on one core, as in
`benchmarks.learn`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.contenders import LEARNERS, LOCOMOTION
from benchmarks.learn import interleaved
from benchmarks.provenance import provenance
from scal.bench.series import Series, gather, read

CURVES = Path(__file__).parents[1] / "experiments" / "results" / "continuous.json"
RESULTS = Path(__file__).parent / "results" / "clock.json"
UNITS = {"scal": 4_000, "ppo": 8_192, "trpo": 8_192, "sac": 1_000}
"""Steps of a measurement, whole rollouts."""
BUDGETS = (60.0, 120.0, 240.0)
"""Seconds of one core."""


def after(one: Series, steps: float) -> str:
    """The mean return at some step of a curve, which is in brackets where the curve has ended.

    Before the first evaluation it is that of the first.
    """
    mean = float(np.interp(steps, one.steps, one.returns.mean(axis=0)))
    return f"{mean:,.0f}" if steps <= one.steps[-1] else f"({mean:,.0f})"


def rows(series: Sequence[Series], speeds: dict[str, float]) -> list[list[str]]:
    """For every learner that has both a curve and a speed: seeds, speed, return at each budget."""
    named = [(f"{one.algorithm}-{one.env}", one) for one in series if not one.changed]
    named.sort(key=lambda each: LOCOMOTION.index(each[1].env))
    return [
        [one.env, one.who, str(len(one.returns)), f"{speeds[name]:,.0f}"]
        + [after(one, speeds[name] * seconds) for seconds in BUDGETS]
        for name, one in named
        if name in speeds and one.settings == LEARNERS[one.algorithm]
    ]


HEADS = ["environment", "who", "seeds", "steps/s", *(f"after {s:.0f} s" for s in BUDGETS)]


def markdown(report: dict[str, Any]) -> str:
    """The table of docs/results.md."""
    speeds = {name: facts["per_cpu_second"] for name, facts in report["contenders"].items()}
    lines = [HEADS, ["---"] * len(HEADS), *rows(gather(read([CURVES])), speeds)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(
    out: Path = RESULTS, measure: bool = True, repeats: int = 3, algorithms: tuple[str, ...] = ()
) -> None:
    """Measure speeds, write them as JSON, and print what was learned by the clock.

    Args:
        out: where the JSON goes.
        measure: or only print what is there.
        repeats: measurements of each speed.
        algorithms: measure only these, and keep what the JSON says of others.
    """
    if measure:
        chosen = algorithms or tuple(LEARNERS)
        units = {f"{name}-{env}": UNITS[name] for env in LOCOMOTION for name in chosen}
        known = json.loads(out.read_text())["contenders"] if algorithms and out.exists() else {}
        contenders = known | interleaved(units, repeats)
        report = {**provenance(), "threads": 1, "repeats": repeats, "contenders": contenders}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(report, indent=1) + "\n")
    report = json.loads(out.read_text())
    table = Table(*HEADS, title="Mean return by processor time")
    speeds = {name: facts["per_cpu_second"] for name, facts in report["contenders"].items()}
    for row in rows(gather(read([CURVES])), speeds):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(main)
