"""How sensitive the deep parameterised ALM is, beside SCAL (paper, section 4, first paragraph).

python -m experiments.deep_alm                      draws experiments/results/deep_alm.json
python -m experiments.deep_alm --run                runs everything first
python -m experiments.deep_alm --run CartPole-v1    or one environment

Both algorithms learn with the same step sizes and penalty parameters, all settings and seeds of an
environment in one compiled program, with networks and batches of half the usual size.
"""

import argparse
import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from benchmarks.provenance import provenance

from scal.bench.panels import PALETTE
from scal.envs.compiled import functional_env
from scal.run import compiled
from scal.run.options import annealed, configure
from scal.run.spaces import make, unbounded

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "experiments" / "results" / "deep_alm.json"
FIGURE = ROOT / "docs" / "figures" / "deep_alm.svg"
STEPS = {"CartPole-v1": 15_000, "Acrobot-v1": 20_000}
ALGORITHMS = {
    "SCAL": {"algorithm": "scal"},
    "deep ALM": {"algorithm": "deep-alm"},
    "deep ALM, y_τ": {"algorithm": "deep-alm", "auxiliary": True},
}
COLOURS = dict(zip(ALGORITHMS, ("scal", "dqn", "ppo"), strict=True))
RATES, PENALTIES, SEEDS = (3e-4, 1e-3, 3e-3), (0.3, 1.0), 5
SETTINGS = list(product(RATES, PENALTIES))
STRETCH = 1_000
SMALL = {"width": 32, "batch_size": 32, "warmup": STRETCH}
MARKS, EPISODES = 5, 5


def returns(env_id: str, steps: int, options: dict[str, Any]) -> np.ndarray:
    """Of greedy episodes, (marks, rates, penalties, seeds)."""
    env = functional_env(env_id)
    assert env is not None
    config = configure("replayed", SMALL | options, env.spaces, unbounded(make(env_id)))
    config = annealed(config, 0, steps)
    rate, mu, seed = np.array(list(product(RATES, PENALTIES, range(SEEDS)))).T
    rates = {f"lr_{name}": jnp.asarray(rate) for name in ("value", "slack", "multiplier")}
    sweep = rates | {"mu": jnp.asarray(mu)}
    seeds = jnp.asarray(seed.astype(int))
    runs = compiled.start(seeds, sweep, env, config)
    runs, _ = compiled.advance(runs, sweep, env, config, STRETCH, learning=False)
    found, begun = [], time.monotonic()
    for done in range(2 * STRETCH, steps + 1, STRETCH):
        runs, _ = compiled.advance(runs, sweep, env, config, STRETCH)
        if done % (steps // MARKS) == 0:
            found.append(np.asarray(compiled.evaluate(runs, seeds, env, config, EPISODES)).mean(1))
            speed = len(seeds) * done / (time.monotonic() - begun)
            print(f"{env_id} {options}: {done:,} steps, {speed:,.0f}/s", file=sys.stderr)
    return np.array(found).reshape(MARKS, len(RATES), len(PENALTIES), SEEDS)


def run(env: str) -> dict[str, Any]:
    """All algorithms in an environment, with their settings."""
    return {
        "provenance": provenance(),
        "steps": STEPS[env],
        "rates": RATES,
        "penalties": PENALTIES,
        "seeds": SEEDS,
        "episodes": EPISODES,
        "options": SMALL,
        "returns": {
            name: returns(env, STEPS[env], options).round(2).tolist()
            for name, options in ALGORITHMS.items()
        },
    }


def at_the_end(curves: list[Any]) -> np.ndarray:
    """Returns (settings, seeds) of the last evaluation."""
    return np.array(curves)[-1].reshape(len(SETTINGS), -1)


def table(found: dict[str, Any]) -> str:
    """Mean and worst seed at the end, per setting."""
    lines = [
        "| step size, μ | " + " | ".join(f"{rate:g}, {mu:g}" for rate, mu in SETTINGS) + " |",
        "|---|" + "---|" * len(SETTINGS),
    ]
    for env, one in found.items():
        for name, curves in one["returns"].items():
            cells = [f"{row.mean():.0f} ({row.min():.0f})" for row in at_the_end(curves)]
            lines.append(f"| {env}, {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(found: dict[str, Any], path: Path) -> Path:
    """Mean over seeds, and a line down to the worst, per setting."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "scal"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(found), figsize=(4.8 * len(found), 3.6), squeeze=False, layout="constrained"
    )
    for pair, (env, one) in zip(axes.flat, found.items(), strict=True):
        for number, (name, curves) in enumerate(one["returns"].items()):
            last = at_the_end(curves)
            across = np.arange(len(SETTINGS)) + 0.22 * (number - 1)
            colour = PALETTE[COLOURS[name]][0]
            pair.vlines(across, last.min(axis=1), last.mean(axis=1), color=colour, lw=1.6)
            pair.plot(across, last.mean(axis=1), "o", color=colour, label=name)
            pair.plot(across, last.min(axis=1), "_", color=colour, ms=8)
        pair.set_xticks(range(len(SETTINGS)), [f"{rate:g}\n{mu:g}" for rate, mu in SETTINGS])
        pair.set_xlabel("step size, and μ below it")
        pair.set_ylabel("greedy return at the end")
        pair.set_title(f"{env}, {one['steps']:,} interactions", fontsize=10)
        pair.grid(axis="y", alpha=0.3)
    handles, names = axes[0, 0].get_legend_handles_labels()
    title = f"dot: mean of {SEEDS} seeds, bar: the worst"
    figure.legend(handles, names, title=title, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
    return path


def main() -> None:
    """Run, or only draw."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--run", nargs="*", choices=STEPS, help="environments; without, all")
    options.add_argument("--figure", type=Path, default=FIGURE)
    given = options.parse_args()
    for env in [] if given.run is None else given.run or STEPS:
        results = run(env)
        known = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(known | {env: results}, indent=1) + "\n")
    known = json.loads(RESULT.read_text())
    found = {env: known[env] for env in STEPS if env in known}
    print(table(found))
    print(f"wrote {draw(found, given.figure)}")


if __name__ == "__main__":
    main()
