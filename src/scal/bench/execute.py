"""Running a cell.

A cell is a function of its description. Killed and run again, it goes on from the last evaluation
that was saved (SCAL, if the code is still the same) or starts over (the rivals), and gives the same
result to the last bit.
"""

import dataclasses
import json
import shutil
import time
from contextlib import suppress
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
from scal.run.options import annealed, configure
from scal.run.seeds import Seeds
from scal.run.siblings import Siblings
from scal.run.source import fingerprint, source, versions
from scal.run.spaces import adapt, make, unbounded
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
    code, begun, used = source(), time.monotonic(), {}
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
        **code._asdict(),
        "versions": versions(PACKAGES),
        **used,
        "steps": cell.marks,
        **curves,
    }
    if "policies" in scores[-1]:
        result["policies"] = scores[-1]["policies"]
    return result, seconds


def outdated(result: Result) -> set[str]:
    """The options of SCAL that its cell would have others of now, if the result tells them."""
    if "config" not in result:
        return set()
    cell = Cell.read(result["cell"])
    env = make(cell.env)
    config = configure(cell.settings, dict(cell.options), adapt(env)[1], unbounded(env))
    now = dataclasses.asdict(annealed(config, 0, cell.steps))
    before = dataclasses.asdict(Config()) | result["config"]  # an option may be new
    return {name for name in now if before[name] != now[name]}


def _learn_scal(cell: Cell, work: Path, helpers: int) -> tuple[list[Score], float, Config]:
    if cell.gradients and functional_env(cell.env) is None:
        raise ValueError(f"{cell.env} has no compiled form, which the study of gradients needs")
    while True:
        with suppress(LostPlaceError):  # nothing to go on from: episodes cannot be played again
            return _learn_on(cell, work, helpers)
        shutil.rmtree(work)


def _learn_on(cell: Cell, work: Path, helpers: int) -> tuple[list[Score], float, Config]:
    """From the last mark that was saved, or from the beginning."""
    so_far, every = work / "scores.json", cell.steps // cell.evaluations
    begun, spent, code = time.monotonic(), 0.0, [fingerprint(), versions(PACKAGES)]
    known = exact.known_mdp(make(cell.env), exact.GAMMA) is not None
    try:
        agent, scores, seconds = _saved(cell, work, helpers, code)
        begun -= seconds
    except (OSError, ValueError, KeyError):
        shutil.rmtree(work, ignore_errors=True)
        agent, scores = _begin(cell, helpers), []
    if cell.gradients:
        gradients.check(agent.config)
    _check_marks(cell, every, max(agent.config.environments, agent.config.update_every))
    for _ in agent.iterate(cell.steps - agent.steps, every):
        scores.append(_score_scal(agent, cell, known))
        now = time.monotonic()
        write_json(so_far, {"scores": scores, "seconds": now - begun, "code": code})
        if spent <= SAVING * (now - begun):
            agent.save(work)
            spent += time.monotonic() - now
    return scores, time.monotonic() - begun, agent.config


def _check_marks(cell: Cell, every: int, least: int) -> None:
    """Raise ValueError if some marks are passed in a single step of all environments."""
    if every < least:
        raise ValueError(
            f"steps is {cell.steps} with {cell.evaluations} evaluations, but {least} interactions "
            f"go together here; use at least {least * cell.evaluations} steps"
        )


def _saved(
    cell: Cell, work: Path, helpers: int, code: list[Any]
) -> tuple[Learners, list[Score], float]:
    """The learners of a killed cell, their scores, and the seconds that took."""
    so_far = json.loads((work / "scores.json").read_text())
    if so_far["code"] != code:
        raise ValueError("other code began it")
    kind = _kind(cell)
    agent = Siblings.load(work, helpers) if kind is Siblings else kind.load(work)
    marks = agent.steps // (cell.steps // cell.evaluations)
    scores = so_far["scores"][:marks]
    if len(scores) < marks:
        raise ValueError("its scores are not there")
    return agent, scores, so_far["seconds"]


def _kind(cell: Cell) -> type[Learners]:
    if functional_env(cell.env) is not None:
        return Seeds
    return Siblings if cell.seeds > 1 else SCAL


def _begin(cell: Cell, helpers: int) -> Learners:
    options, kind = dict(cell.options), _kind(cell)
    if kind is SCAL:
        return SCAL(cell.env, cell.seed, cell.settings, **options)
    if kind is Siblings:
        return Siblings(cell.env, cell.seeds, cell.seed, cell.settings, helpers, **options)
    return Seeds(cell.env, cell.seeds, cell.seed, cell.settings, **options)


def _score_scal(agent: Learners, cell: Cell, known: bool) -> Score:
    """Also against the optimum, where the MDP is known."""
    returns = np.atleast_2d(agent.evaluate(cell.episodes))
    if isinstance(agent, SCAL):
        return score(returns, [agent])
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
