"""`scal/Catch-v0` in both loops: what every seed learns with the default options, as JSON.

    python -m benchmarks.frames                      five seeds in each loop
    python -m benchmarks.frames --loop gymnasium     one of the two anew

The best return is 1, and a seed has learned the game at 0.95 of it, in 200 greedy episodes.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro

import scal
from benchmarks.provenance import provenance
from scal.run.seeds import Seeds

ENV = "scal/Catch-v0"
OPTIMUM = 1.0
EPISODES = 200
FIRST_SEED = 5_000
RESULTS = Path(__file__).parent / "results" / "frames.json"


def compiled(seeds: int, steps: int) -> list[float]:
    """Mean returns of seeds that learn side by side."""
    runs = Seeds(ENV, seeds, FIRST_SEED)
    for _ in runs.iterate(steps):
        pass
    return runs.evaluate(EPISODES).mean(axis=1).tolist()


def gymnasium(seeds: int, steps: int) -> list[float]:
    """Mean returns of seeds that learn one after another."""
    returns = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        agent = scal.SCAL(ENV, seed).learn(steps)
        returns.append(float(agent.evaluate(EPISODES).mean()))
        print(f"gymnasium, seed {seed}: {returns[-1]:.3f}", flush=True)
    return returns


LOOPS: dict[str, Callable[[int, int], list[float]]] = {
    "compiled": compiled,
    "gymnasium": gymnasium,
}


def main(loop: str = "both", seeds: int = 5, steps: int = 40_000, out: Path = RESULTS) -> None:
    """Learn in one loop or both, and file the returns."""
    results: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    for name in LOOPS if loop == "both" else [loop]:
        facts, start, cpu = provenance(), time.perf_counter(), time.process_time()
        returns = LOOPS[name](seeds, steps)
        results[name] = facts | {
            "steps": steps,
            "returns": returns,
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - cpu,
        }
        out.write_text(json.dumps(results, indent=1) + "\n")
        reached = sum(value >= 0.95 * OPTIMUM for value in returns)
        print(
            f"{name}: {reached} of {seeds} seeds at 0.95 of the optimum, worst {min(returns):.3f}"
        )


if __name__ == "__main__":
    tyro.cli(main)
