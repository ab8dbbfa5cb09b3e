"""Many seeds of CartPole in one program: how long the whole of it takes on this device, as JSON."""

import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from benchmarks.provenance import provenance
from scal.envs.cartpole import CARTPOLE
from scal.learn.config import DISCRETE
from scal.run import compiled
from scal.run.options import annealed


def measure(seeds: int, steps: int) -> dict[str, Any]:
    """Train every seed for so many steps, compilation included and apart; then evaluate."""
    env, config = CARTPOLE, annealed(DISCRETE, 0, steps)
    learning = steps - config.warmup
    start = time.perf_counter()
    runs = compiled.start(jnp.arange(seeds), {}, env, config)
    warm = compiled.advance.lower(runs, {}, env, config, config.warmup, learning=False).compile()
    train = compiled.advance.lower(runs, {}, env, config, learning, learning=True).compile()
    compiling = time.perf_counter() - start
    start = time.perf_counter()
    runs, _ = warm(runs, {})
    runs, _ = train(runs, {})
    jax.block_until_ready(runs)
    seconds = time.perf_counter() - start
    returns = np.asarray(compiled.evaluate(runs, jnp.arange(seeds), env, config, 20)).mean(axis=1)
    return {
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "seeds": seeds,
        "steps": steps,
        "seconds_compiling": compiling,
        "seconds": seconds,
        "interactions_per_second": seeds * steps / seconds,
        "greedy_return": {
            "mean": float(returns.mean()),
            "std": float(returns.std()),
            "worst": float(returns.min()),
            "share_of_seeds_at_475": float((returns >= 475).mean()),
        },
    }


def main(
    out: Path = Path("benchmarks/results/gpu.json"),
    seeds: int = 1_024,
    steps: int = 50_000,
    commit: str | None = None,
) -> None:
    """Measure, print, and write JSON.

    Args:
        out: where the JSON goes.
        seeds: runs side by side.
        steps: interactions of each run.
        commit: the commit that is measured, where git cannot tell.
    """
    facts = provenance() | ({"commit": commit} if commit else {})
    report = facts | measure(seeds, steps)
    print(json.dumps(report, indent=1))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    tyro.cli(main)
