"""Running a cell.

A cell is a function of its description. Killed and run again, it goes on from its last evaluation
(SCAL) or starts over (the rivals), and gives the same result to the last bit.
"""

import dataclasses
import json
import os
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

from scal.bench import baselines, gradients
from scal.bench.cell import Cell, Score, score
from scal.envs.compiled import functional_env
from scal.run.agent import SCAL
from scal.run.seeds import Seeds

Result = dict[str, Any]
PACKAGES = (
    "scal-rl", "jax", "gymnasium", "mujoco", "stable-baselines3", "sb3-contrib", "sbx-rl", "torch",
)  # fmt: skip


def run(cell: Cell, work: Path) -> tuple[Result, float]:
    """Learn; returns the scores at all marks, and the seconds that took.

    `work` is a folder to go on from.
    """
    begun = time.monotonic()
    if cell.algorithm == "scal":
        scores, seconds = _learn_scal(cell, work)
    else:
        scores, seconds = baselines.learn(cell), time.monotonic() - begun
    curves = {
        name: [list(of_seed) for of_seed in zip(*(one[name] for one in scores), strict=True)]
        for name in scores[0]
        if name != "policies"
    }
    result = {
        "cell": dataclasses.asdict(cell),
        "versions": {name: _version(name) for name in PACKAGES},
        "steps": cell.marks,
        **curves,
    }
    if "policies" in scores[-1]:
        result["policies"] = scores[-1]["policies"]
    return result, seconds


def _learn_scal(cell: Cell, work: Path) -> tuple[list[Score], float]:
    agent: SCAL | Seeds
    many = functional_env(cell.env) is not None
    if not many and (cell.seeds > 1 or cell.gradients):
        raise ValueError(f"{cell.env} has no compiled form; give each of its cells one seed")
    load: Callable[[Path], SCAL | Seeds] = Seeds.load if many else SCAL.load
    so_far, every = work / "scores.json", cell.steps // cell.evaluations
    begun = time.monotonic()
    try:
        agent, known = load(work), json.loads(so_far.read_text())
        scores = known["scores"][: agent.steps // every]
        begun -= known["seconds"]
    except (OSError, ValueError):
        options = dict(cell.options)
        if many:
            agent = Seeds(cell.env, cell.seeds, cell.seed, cell.settings, **options)
        else:
            agent = SCAL(cell.env, cell.seed, cell.settings, **options)
        scores = []
    for _ in agent.iterate(cell.steps - agent.steps, every):
        scores.append(_score_scal(agent, cell))
        write_json(so_far, {"scores": scores, "seconds": time.monotonic() - begun})
        agent.save(work)
    return scores, time.monotonic() - begun


def _score_scal(agent: SCAL | Seeds, cell: Cell) -> Score:
    returns = np.atleast_2d(agent.evaluate(cell.episodes))
    if isinstance(agent, SCAL):
        return score(returns, [agent])
    found = score(returns, [agent.agent(number) for number in range(agent.seeds)])
    if cell.gradients:
        key = jax.random.fold_in(jax.random.key(cell.seed), agent.steps)
        seen = gradients.variances(agent.runs.learner, key, agent.env, agent.config)
        found |= {f"variance_{name}": np.asarray(v).tolist() for name, v in seen._asdict().items()}
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def write_json(path: Path, content: Any) -> None:
    """The whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(partial, path)
