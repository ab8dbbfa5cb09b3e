"""Running a cell.

A cell is a function of its description. Killed and run again, it goes on from the last evaluation
that was saved (SCAL, if the code is still the same) or starts over (the rivals), and gives the same
result to the last bit.
"""

import dataclasses
import json
import shutil
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from scal.bench import baselines, gradients
from scal.bench.cell import Cell, Score, score
from scal.envs.compiled import functional_env
from scal.learn.config import Config
from scal.run import exact, record
from scal.run.agent import SCAL
from scal.run.seeds import Seeds
from scal.run.siblings import Siblings
from scal.run.source import source, versions
from scal.run.spaces import make
from scal.run.stage import LostPlaceError

Learners = SCAL | Seeds | Siblings
Result = dict[str, Any]
SAVING = 0.05
"""Share of a cell's time that saving may take: a large buffer is not written at every mark."""
PACKAGES = (
    "scal-rl", "jax", "gymnasium", "mujoco", "stable-baselines3", "sb3-contrib", "sbx-rl", "torch",
)  # fmt: skip


def run(cell: Cell, work: Path, helpers: int = 0) -> tuple[Result, float]:
    """Learn; returns the scores at all marks, and the seconds that took.

    `work` is a folder to go on from, `helpers` step the environments of several seeds.
    """
    begun, used = time.monotonic(), {}
    if cell.algorithm == "scal":
        scores, seconds, config = _learn_scal(cell, work, helpers)
        used = {"config": dataclasses.asdict(config)}
    else:
        scores, seconds = baselines.learn(cell), time.monotonic() - begun
    curves = {
        name: [list(of_seed) for of_seed in zip(*(one[name] for one in scores), strict=True)]
        for name in scores[0]
        if name != "policies"
    }
    result = {
        "cell": dataclasses.asdict(cell),
        **source()._asdict(),
        "versions": versions(PACKAGES),
        **used,
        "steps": cell.marks,
        **curves,
    }
    if "policies" in scores[-1]:
        result["policies"] = scores[-1]["policies"]
    return result, seconds


def _learn_scal(cell: Cell, work: Path, helpers: int) -> tuple[list[Score], float, Config]:
    compiled = functional_env(cell.env) is not None
    if not compiled and cell.gradients:
        raise ValueError(f"{cell.env} has no compiled form, which the study of gradients needs")
    kind: type[Learners] = Seeds if compiled else Siblings if cell.seeds > 1 else SCAL
    so_far, every = work / "scores.json", cell.steps // cell.evaluations
    begun, spent = time.monotonic(), 0.0
    try:
        known = json.loads(so_far.read_text())
        if known["source"] != list(source()):
            raise ValueError("other code began it")
        agent = Siblings.load(work, helpers) if kind is Siblings else kind.load(work)
        scores = known["scores"][: agent.steps // every]
        begun -= known["seconds"]
    except (OSError, ValueError, KeyError):
        agent, scores = _begin(kind, cell, helpers), []
    try:
        for _ in agent.iterate(cell.steps - agent.steps, every):
            scores.append(_score_scal(agent, cell))
            now = time.monotonic()
            write_json(so_far, {"scores": scores, "seconds": now - begun, "source": source()})
            if spent <= SAVING * (now - begun):
                agent.save(work)
                spent += time.monotonic() - now
    except LostPlaceError:  # seed and actions do not determine the episodes: nothing to go on from
        shutil.rmtree(work)
        return _learn_scal(cell, work, helpers)
    return scores, time.monotonic() - begun, agent.config


def _begin(kind: type[Learners], cell: Cell, helpers: int) -> Learners:
    options = dict(cell.options)
    if kind is SCAL:
        return SCAL(cell.env, cell.seed, cell.settings, **options)
    if kind is Siblings:
        return Siblings(cell.env, cell.seeds, cell.seed, cell.settings, helpers, **options)
    return Seeds(cell.env, cell.seeds, cell.seed, cell.settings, **options)


def _score_scal(agent: Learners, cell: Cell) -> Score:
    returns = np.atleast_2d(agent.evaluate(cell.episodes))
    if isinstance(agent, SCAL):
        return score(returns, [agent])
    known = exact.known_mdp(make(cell.env), exact.GAMMA) is not None
    found = score(returns, [agent.agent(number) for number in range(agent.seeds) if known])
    if isinstance(agent, Seeds) and cell.gradients:
        key = jax.random.fold_in(jax.random.key(cell.seed), agent.steps)
        seen = gradients.variances(agent.runs.learner, key, agent.env, agent.config)
        found |= {f"variance_{name}": np.asarray(v).tolist() for name, v in seen._asdict().items()}
    return found


def write_json(path: Path, content: Any) -> None:
    """The whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record.write(path, json.dumps(content, indent=1) + "\n")
