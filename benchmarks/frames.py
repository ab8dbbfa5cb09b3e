"""`scal/Catch-v0` in both loops: what every seed learns with the default options, as JSON.

    python -m benchmarks.frames                      five seeds in each loop
    python -m benchmarks.frames --loop gymnasium     one of the two anew

The best return is 1, and a seed has learned the game at 0.95 of it. Every point of its curve is
the mean return of 200 greedy episodes; the times include them.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import scal
from benchmarks.provenance import provenance
from scal.run.seeds import Seeds

ENV = "scal/Catch-v0"
OPTIMUM = 1.0
EPISODES = 200
EVALUATIONS = 10
"""Per seed, evenly spaced."""
RESULTS = Path(__file__).parent / "results" / "frames.json"

Curves = list[list[float]]
"""Mean returns (seeds, evaluations)."""


def compiled(seeds: range, steps: int) -> Curves:
    """Seeds that learn side by side."""
    runs = Seeds(ENV, len(seeds), seeds.start)
    lines = runs.iterate(steps, steps // EVALUATIONS)
    curves: Curves = np.stack([runs.evaluate(EPISODES).mean(axis=1) for _ in lines], 1).tolist()
    return curves


def gymnasium(seeds: range, steps: int) -> Curves:
    """Seeds that learn one after another."""
    curves = []
    for seed in seeds:
        agent = scal.SCAL(ENV, seed)
        lines = agent.iterate(steps, steps // EVALUATIONS)
        curves.append([float(agent.evaluate(EPISODES).mean()) for _ in lines])
        print(f"gymnasium, seed {seed}: {curves[-1][-1]:.3f}", flush=True)
    return curves


LOOPS: dict[str, Callable[[range, int], Curves]] = {
    "compiled": compiled,
    "gymnasium": gymnasium,
}


def main(
    loop: str = "both",
    seeds: int = 5,
    first_seed: int = 6_000,
    steps: int = 20_000,
    out: Path = RESULTS,
) -> None:
    """Learn in one loop or both, and file the curves."""
    results: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    numbers = range(first_seed, first_seed + seeds)
    for name in LOOPS if loop == "both" else [loop]:
        facts, start, cpu = provenance(), time.perf_counter(), time.process_time()
        curves = LOOPS[name](numbers, steps)
        last = np.array(curves)[:, -1]
        results[name] = facts | {
            "steps": steps,
            "episodes": EPISODES,
            "curves": dict(zip(map(str, numbers), curves, strict=True)),
            "mean": float(last.mean()),
            "std": float(last.std()),
            "worst": float(last.min()),
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - cpu,
        }
        out.write_text(json.dumps(results, indent=1) + "\n")
        reached = int((last >= 0.95 * OPTIMUM).sum())
        print(f"{name}: {reached} of {seeds} seeds at 0.95 of the optimum, worst {last.min():.3f}")


if __name__ == "__main__":
    tyro.cli(main)
