"""Learners side by side, all in one run: a table of speeds and a JSON file.

    scal.SCAL      against Stable-Baselines3's DQN and SAC, and SBX's SAC, one update per step
    scal.run       the same CartPole as one program; eight seeds at once against eight in turn
    replay         a million stored transitions against ten thousand

Every measurement has a fresh process, one thread and one core to itself (benchmarks/contenders.py),
and starts when everything is compiled and learning. Contenders take turns; speeds are medians.
Targets are judged by processor time, which on one core is the time of an idle machine, whoever else
uses it meanwhile; ratios by the clock stand beside them.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.contenders import SEEDS, WARM_UP
from benchmarks.provenance import provenance

ROOT = Path(__file__).parents[1]


class Claim(NamedTuple):
    """That one contender is so many times as fast as another."""

    what: str
    ours: str
    rival: str
    target: float


CLAIMS = (
    Claim("CartPole: loop / SB3 DQN", "scal-cartpole", "sb3-dqn", 4.0),
    Claim("CartPole: compiled / SB3 DQN", "scal-compiled", "sb3-dqn", 8.0),
    Claim("HalfCheetah: loop / SB3 SAC", "scal-halfcheetah", "sb3-sac", 4.0),
    Claim("HalfCheetah: loop / SBX SAC", "scal-halfcheetah", "sbx-sac", 2.0),
    Claim(f"{SEEDS} seeds: at once / in turn, compiled", "seeds-at-once", "seeds-in-turn", 2.0),
    Claim(f"{SEEDS} seeds: at once / in turn, loop", "seeds-at-once", "scal-cartpole", 2.0),
    *(
        Claim(f"replay, {what}: 1M / 10k", f"replay-{key}-1000000", f"replay-{key}-10000", 1 / 1.5)
        for what, key in (
            ("4, called", "call-cartpole"),
            ("17, called", "call-halfcheetah"),
            ("4, compiled", "program-cartpole"),
            ("17, compiled", "program-halfcheetah"),
        )
    ),
)
"""A / B. The replay buffer, of observations of 4 or 17 numbers, may take 1.5 times as long."""

UNITS = {
    "scal-cartpole": 10_000,
    "scal-compiled": 20_000,
    "sb3-dqn": 4_000,
    "scal-halfcheetah": 5_000,
    "sb3-sac": 2_000,
    "sbx-sac": 3_000,
    "seeds-at-once": 80_000,
    "seeds-in-turn": 80_000,
}
"""Steps of a measurement: a few seconds each."""
DRAWS = 50_000
"""Draws of a measurement of the replay buffer."""


def measured_alone(name: str, units: int, seed: int) -> dict[str, Any]:
    """What `benchmarks.contenders` prints, from a process of its own."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "benchmarks.contenders", name]
    options = ["--units", str(units), "--seed", str(seed)]
    with tempfile.TemporaryDirectory() as folder:  # MuJoCo leaves a log where it is started
        done = subprocess.run(
            command + options,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2_000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def interleaved(units: dict[str, int], repeats: int) -> dict[str, dict[str, Any]]:
    """Every repeat of each contender, and its median speeds."""
    turns = [(name, seed) for seed in range(repeats) for name in units]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in units}
    for name, seed in track(turns, "measuring", transient=True, console=Console(stderr=True)):
        results[name].append(measured_alone(name, units[name], seed))
    return {name: summary(repeats) for name, repeats in results.items()}


def summary(repeats: list[dict[str, Any]]) -> dict[str, Any]:
    """One contender's repeats, and its median speeds."""
    units = repeats[0]["units"]
    clock, cpu = ([repeat[of] for repeat in repeats] for of in ("seconds", "cpu_seconds"))
    return {
        "units": units,
        "seconds": clock,
        "cpu_seconds": cpu,
        "per_second": units / statistics.median(clock),
        "per_cpu_second": units / statistics.median(cpu),
        "settings": repeats[0]["settings"],
    }


def judged(claims: Iterable[Claim], contenders: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Each claim with the ratios that were measured, by processor time and by the clock."""
    rows = []
    for claim in claims:
        ours, rival = contenders[claim.ours], contenders[claim.rival]
        ratio = ours["per_cpu_second"] / rival["per_cpu_second"]
        by_the_clock = ours["per_second"] / rival["per_second"]
        measured = {"ratio": ratio, "ratio_by_the_clock": by_the_clock}
        rows.append(claim._asdict() | measured | {"met": ratio >= claim.target})
    return rows


def show(report: dict[str, Any], console: Console) -> None:
    """The table, and a sentence on what was missed."""
    table = Table("A / B", "A per s", "B per s", "ratio", "clock", "target", "")
    for row in report["claims"]:
        speeds = (report["contenders"][row[side]]["per_cpu_second"] for side in ("ours", "rival"))
        table.add_row(
            row["what"],
            *(f"{speed:,.0f}" for speed in speeds),
            f"{row['ratio']:.2f}×",
            f"{row['ratio_by_the_clock']:.2f}×",
            f"{row['target']:.2f}×",
            "met" if row["met"] else "missed",
        )
    console.print(table)
    missed = [row["what"] for row in report["claims"] if not row["met"]]
    total = len(report["claims"])
    console.print(f"{total - len(missed)} of {total} targets met")
    for what in missed:
        console.print(f"missed: {what}")


def readme_table(report: dict[str, Any]) -> str:
    """The learners for the README."""
    lines = [
        "| A / B | A, steps/s | B, steps/s | times as fast | by the clock |",
        "|---|---|---|---|---|",
    ]
    for row in report["claims"]:
        if row["what"].startswith("replay"):
            continue
        ours, rival = (report["contenders"][row[s]]["per_cpu_second"] for s in ("ours", "rival"))
        lines.append(
            f"| {row['what']} | {ours:,.0f} | {rival:,.0f} | {row['ratio']:.1f}× "
            f"| {row['ratio_by_the_clock']:.1f}× |"
        )
    return "\n".join(lines)


def main(
    out: Path = Path("benchmarks/results/learn.json"), repeats: int = 3, small: bool = False
) -> None:
    """Measure, print, and write JSON.

    Args:
        out: where the JSON goes.
        repeats: measurements of each contender.
        small: a quick run of everything once, to see that it works; its figures mean little.
    """
    names = dict.fromkeys(name for claim in CLAIMS for name in (claim.ours, claim.rival))
    units = {name: UNITS.get(name, DRAWS) for name in names}
    if small:
        units, repeats = {name: count // 10 for name, count in units.items()}, 1
    contenders = interleaved(units, repeats)
    report = {
        **provenance(),
        "threads": 1,
        "warm_up": WARM_UP,
        "repeats": repeats,
        "claims": judged(CLAIMS, contenders),
        "contenders": contenders,
    }
    show(report, Console())
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    tyro.cli(main)
