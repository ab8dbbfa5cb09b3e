"""The first steps of an Atari game with the default options: speed, memory and returns, as JSON.

    python -m benchmarks.atari                       50,000 steps of ALE/Pong-v5
    python -m benchmarks.atari --env ALE/Breakout-v5 --steps 10000

Needs the extra `atari`. A step is one action, held for four screens.
"""

import json
import resource
import time
from pathlib import Path
from typing import Any

import jax
import tyro

import scal
from benchmarks.provenance import provenance

RESULTS = Path(__file__).parent / "results" / "atari.json"


def measure(env: str, steps: int, seed: int, every: int) -> dict[str, Any]:
    """Learn for so many steps; what `every` of them took and returned."""
    start = time.perf_counter()
    agent = scal.SCAL(env, seed)
    print(agent.memory, flush=True)
    course = []
    for line in agent.iterate(steps, every):
        seconds, processor = time.perf_counter() - start, time.process_time()
        course.append(
            {"step": line["step"], "seconds": seconds, "cpu": processor, "return": line["return"]}
        )
        print(json.dumps(course[-1]), flush=True)
    config, last = agent.config, course[-1]
    filling = [line for line in course if line["step"] <= config.warmup][-1:]
    before = filling[0] if filling else {"step": 0, "seconds": 0.0, "cpu": 0.0}
    learned = last["step"] - before["step"]
    return {
        "env": env,
        "steps": agent.steps,
        "seed": seed,
        "device": jax.devices()[0].device_kind,
        "update_every": config.update_every,
        "updates": int(agent.learner.updates),
        "batch_size": config.batch_size,
        "replay": agent.memory,
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "seconds": last["seconds"],
        "learning_steps_per_second": learned / (last["seconds"] - before["seconds"]),
        "learning_steps_per_cpu_second": learned / (last["cpu"] - before["cpu"]),
        "course": course,
    }


def main(
    env: str = "ALE/Pong-v5",
    steps: int = 50_000,
    seed: int = 0,
    every: int = 1_000,
    out: Path = RESULTS,
) -> None:
    """Measure and write JSON."""
    facts = provenance()
    measured = measure(env, steps, seed, every)
    out.write_text(json.dumps(facts | {"measured": measured}, indent=1) + "\n")
    speed = measured["learning_steps_per_second"]
    print(f"{speed:.1f} steps/s while learning, {measured['peak_memory_gb']:.1f} GB; wrote {out}")


if __name__ == "__main__":
    tyro.cli(main)
