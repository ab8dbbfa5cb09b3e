"""The table of `make learn-check` says what its JSON holds."""

import dataclasses
import io
import json

import numpy as np
import pytest
from benchmarks import frames, learning
from rich.console import Console

from scal.bench.execute import outdated, write_json
from scal.bench.runners import Processes

RESULTS = learning.load()
FACTS = {"commit": "b" * 40, "clean": True}
"""What a result says of its code."""
ACROBOT, INVENTORY = (
    next(task for task in learning.TASKS if task.env == env)
    for env in ("Acrobot-v1", "scal/Inventory-v0")
)


def printed(results):
    console = Console(file=io.StringIO(), width=160)
    console.print(learning.table(results))
    return console.file.getvalue()


@pytest.mark.parametrize("task", learning.TASKS, ids=lambda task: task.name)
def test_committed_results_cover_what_they_claim(task):
    found = learning.curves(RESULTS, "default", task)
    if len(found):
        assert found.shape[1] == task.evaluations
        assert len(found) <= task.seeds
        assert np.isfinite(found).all()
        assert f"{task.steps:,}" in printed(RESULTS)


@pytest.mark.parametrize("task", learning.TASKS, ids=lambda task: task.name)
def test_committed_results_are_of_the_default_options(task):
    entry = RESULTS["default"].get(task.name, {})
    if "config" in entry:
        cell, *_ = learning.cells(task, "default")
        assert outdated({"cell": dataclasses.asdict(cell), "config": entry["config"]}) == set()


def test_what_could_not_be_measured_is_said(monkeypatch, tmp_path):
    """Beside a default that was; and no longer once it has been."""
    monkeypatch.setattr(learning, "RESULTS", tmp_path / "results.json")
    learned = {"seeds": {"10000": {"curve": [0.01] * 10, **FACTS}}}
    write_json(learning.RESULTS, {"default": {INVENTORY.name: learned}})
    (cell,) = learning.cells(INVENTORY, "paper")
    learning.give_up(cell, INVENTORY, "paper", {}, "it diverged")
    (row,) = learning.rows(learning.load())
    assert row[len(learning.COLUMNS) + 1] == "failed"
    gaps, shares = ([[value] * 10] * INVENTORY.seeds for value in (0.5, 0.9))
    result = {"gaps": gaps, "first_values": shares, "config": {}, **FACTS}
    grid = learning.Grid(tmp_path, [cell])
    write_json(grid.result(cell), result)
    learning.file(grid, cell, INVENTORY, "paper", {}, Console(quiet=True))
    (row,) = learning.rows(learning.load())
    assert row[len(learning.COLUMNS) + 1] == "50.00%"
    learning.file(grid, cell, INVENTORY, "default", {}, Console(quiet=True))
    assert learning.first_values(learning.load(), INVENTORY).tolist() == [0.9] * 10


def test_nothing_is_filed_under_an_unknown_name():
    assert set(RESULTS) <= {*learning.VARIANTS, *learning.RIVALS}
    names = {task.name for task in learning.TASKS}
    assert all(set(filed) <= names for filed in RESULTS.values())


def test_the_readme_shows_it():
    readme = (learning.RESULTS.parents[2] / "README.md").read_text()
    assert learning.readme_table(RESULTS) in readme


@pytest.mark.parametrize(
    ("task", "scores", "words"),
    [
        (ACROBOT, [-80, -85], "met"),
        (ACROBOT, [-70, -95], "missed"),
        (INVENTORY, [0.001, 0.015], "met"),
        (INVENTORY, [0.001, 0.04], "missed"),
    ],
)
def test_mean_and_worst_are_judged_and_losses_the_other_way_round(task, scores, words):
    found = np.repeat(np.array(scores)[:, None], 10, axis=1)
    assert learning.verdict(task._replace(seeds=2), found) == words
    assert learning.verdict(task, found) == f"{words}, 2 of 10 seeds"


def test_a_fall_from_the_peak_is_noticed():
    found = np.array([[-200.0, -60.0, -80.0, -80.0, -80.0]])
    assert "below its peak" in learning.verdict(ACROBOT, found)
    rising = np.sort(found)
    assert "below its peak" not in learning.verdict(ACROBOT, rising)


@pytest.mark.parametrize("loop", frames.LOOPS)
def test_frames_are_learned_on_every_seed(loop):
    """What the quickstart says of `scal/Catch-v0`."""
    found = json.loads(frames.RESULTS.read_text())[loop]
    last = np.array(list(found["curves"].values()))[:, -1]
    assert found["clean"]
    assert (len(last), found["steps"], found["episodes"]) == (5, 20_000, frames.EPISODES)
    assert found["worst"] == last.min() == frames.OPTIMUM


def test_what_a_run_left_behind_is_filed_and_other_seeds_go(monkeypatch, tmp_path):
    """It had finished a cell and not filed it; the seed in the file is of an earlier table."""
    task = learning.Task("CartPole-v1", 20_000, 495, 475, seeds=2, compiled=True)
    monkeypatch.setattr(learning, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(learning, "FOLDER", tmp_path)
    before = {"seeds": {"1": {"curve": [1.0] * 10, "commit": "a" * 40}}}
    write_json(learning.RESULTS, {"default": {task.name: before}, "paper": {}})
    (cell,) = learning.cells(task, "default")
    write_json(
        tmp_path / "cells" / f"{cell.name}.json",
        {"returns": [[2.0] * 10, [3.0] * 10], "config": {"mu": 0.3}, **FACTS},
    )
    runner, console = Processes(), Console(quiet=True)
    found = learning.measure([task], "default", runner, console, missing=True)
    assert learning.curves(found, "default", task)[:, -1].tolist() == [2.0, 3.0]
    assert found["default"][task.name]["config"] == {"mu": 0.3}
    assert all(
        seed.items() >= FACTS.items() for seed in found["default"][task.name]["seeds"].values()
    )
    assert set(found) == {"default", "paper"}
    more = task._replace(seeds=3)  # of which two are known
    (whole,) = learning.cells(more, "default")
    returns = [[value] * 10 for value in (2.0, 3.0, 4.0)]
    result = {"returns": returns, "config": {"mu": 0.3}, **FACTS}
    write_json(tmp_path / "cells" / f"{whole.name}.json", result)
    found = learning.measure([more], "default", runner, console, missing=True)
    assert learning.curves(found, "default", more)[:, -1].tolist() == [2.0, 3.0, 4.0]
    learning.forget([task], "default")
    assert not len(learning.curves(learning.load(), "default", task))
