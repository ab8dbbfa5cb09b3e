"""Running a cell.

A cell is a function of its description. Killed and run again, it goes on from its last evaluation
(SCAL) or starts over (the rivals), and gives the same result to the last bit.
"""

import dataclasses
import json
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from scal.bench import baselines
from scal.bench.cell import Cell, Score, score
from scal.envs.compiled import functional_env
from scal.run.agent import SCAL
from scal.run.seeds import Seeds

Result = dict[str, Any]
PACKAGES = ("scal-rl", "jax", "gymnasium", "mujoco", "stable-baselines3", "sb3-contrib", "torch")


def run(cell: Cell, work: Path) -> Result:
    """Learn, and return the scores at all marks; `work` is a folder to go on from."""
    scores = _learn_scal(cell, work) if cell.algorithm == "scal" else baselines.learn(cell)
    curves = {
        name: [list(of_seed) for of_seed in zip(*(one[name] for one in scores), strict=True)]
        for name in ("returns", "gaps")
    }
    return {
        "cell": dataclasses.asdict(cell),
        "versions": {name: _version(name) for name in PACKAGES},
        "steps": cell.marks,
        **curves,
    }


def _learn_scal(cell: Cell, work: Path) -> list[Score]:
    agent: SCAL | Seeds
    many = functional_env(cell.env) is not None
    if cell.seeds > 1 and not many:
        raise ValueError(f"{cell.env} has no compiled form; give each of its cells one seed")
    load: Callable[[Path], SCAL | Seeds] = Seeds.load if many else SCAL.load
    so_far, every = work / "scores.json", cell.steps // cell.evaluations
    try:
        agent = load(work)
        scores = json.loads(so_far.read_text())[: agent.steps // every]
    except (OSError, ValueError):
        options = dict(cell.options)
        if many:
            agent = Seeds(cell.env, cell.seeds, cell.seed, cell.settings, **options)
        else:
            agent = SCAL(cell.env, cell.seed, cell.settings, **options)
        scores = []
    for _ in agent.iterate(cell.steps - agent.steps, every):
        scores.append(_score_scal(agent, cell.episodes))
        write_json(so_far, scores)
        agent.save(work)
    return scores


def _score_scal(agent: SCAL | Seeds, episodes: int) -> Score:
    returns = np.atleast_2d(agent.evaluate(episodes))
    if isinstance(agent, SCAL):
        return score(returns, [agent])
    return score(returns, [agent.agent(number) for number in range(agent.seeds)])


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
