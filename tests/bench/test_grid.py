"""Every cell of a grid gets its result, the same one whatever happens on the way."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest

from scal.bench import execute
from scal.bench.cell import Cell
from scal.bench.execute import write_json
from scal.bench.grid import Grid
from scal.bench.show import BEGINNING, SPEED, estimate
from scal.run.agent import SCAL

TINY = (("batch_size", 16), ("warmup", 100), ("width", 16))
CELLS = [
    Cell("scal", "CartPole-v1", 1_200, seed=3, seeds=2, options=TINY, evaluations=6, episodes=2),
    Cell("scal", "Pendulum-v1", 600, seed=1, options=TINY, evaluations=3, episodes=1),
]
DRIVER = """
import json, sys
from pathlib import Path
from scal.bench.cell import Cell
from scal.bench.grid import Grid
from scal.bench.runners import Processes, Ray
cells = [Cell.read(facts) for facts in json.loads(sys.argv[2])]
runner = Processes(2) if sys.argv[3] == "local" else Ray(workers=2)
for event in Grid(Path(sys.argv[1]), cells).run(runner):
    print(event.state, event.cell.name, flush=True)
"""


def start(folder, runner="local", cells=CELLS):
    text = json.dumps([asdict(cell) for cell in cells])
    return subprocess.Popen([sys.executable, "-c", DRIVER, str(folder), text, runner])


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "cells").glob("*.json")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    assert start(folder).wait(900) == 0
    return files(folder)


def test_results_have_all_seeds_and_marks(undisturbed):
    assert sorted(undisturbed) == sorted(f"{cell.name}.json" for cell in CELLS)
    for cell in CELLS:
        result = json.loads(undisturbed[f"{cell.name}.json"])
        assert Cell.read(result["cell"]) == cell
        assert result["steps"] == cell.marks
        assert [len(curve) for curve in result["returns"]] == [cell.evaluations] * cell.seeds
        assert "gaps" not in result


@pytest.mark.parametrize("runner", ["local", "ray"])
def test_killed_five_times_it_gives_the_same(undisturbed, tmp_path, runner):
    if runner == "ray":
        pytest.importorskip("ray", reason="needs the extra ray")
    chance = random.Random(0)
    for _ in range(5):
        process = start(tmp_path, runner)
        time.sleep(chance.uniform(1.0, 9.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(tmp_path, runner).wait(900) == 0
    assert files(tmp_path) == undisturbed
    assert not list((tmp_path / "unfinished").glob("*/"))


def test_ray_finishes_while_its_workers_are_killed(tmp_path):
    pytest.importorskip("ray", reason="needs the extra ray")
    cells = [replace(CELLS[1], steps=200, evaluations=1, seed=seed) for seed in range(5)]
    process, chance = start(tmp_path, "ray", cells), random.Random(1)
    killed = 0
    while process.poll() is None:
        time.sleep(chance.uniform(2.0, 4.0))
        workers = subprocess.run(["pgrep", "-f", "ray::elsewhere"], capture_output=True).stdout
        if workers and killed < 5:
            os.kill(int(chance.choice(workers.split())), signal.SIGKILL)
            killed += 1
    assert process.wait() == 0
    assert killed > 0
    assert sorted(files(tmp_path)) == sorted(f"{cell.name}.json" for cell in cells)


def test_what_is_there_is_not_run_again(tmp_path):
    grid = Grid(tmp_path, CELLS)
    for cell in CELLS:
        grid.result(cell).parent.mkdir(exist_ok=True)
        grid.result(cell).write_text("{}")
    assert grid.missing() == []
    assert list(grid.run()) == []


def test_a_failing_cell_is_listed_with_its_reason(tmp_path):
    impossible = Cell("scal", "NoSuchThing-v0", 100, evaluations=1)
    events = list(Grid(tmp_path, [impossible]).run())
    assert [event.state for event in events] == ["running"] * 3 + ["failed"]
    assert "environment 'NoSuchThing-v0' cannot be made" in events[-1].reason


def test_marks_that_one_step_passes_together_are_refused(tmp_path):
    """Eight copies of Pendulum make a step together."""
    with pytest.raises(ValueError, match=r"use at least 160 steps"):
        execute.run(Cell("scal", "Pendulum-v1", 100, episodes=1), tmp_path)


def test_a_killed_cell_goes_on_from_what_was_saved(tmp_path, monkeypatch):
    """Unless other code began it: then all of it is learned anew."""
    cell, calls = CELLS[0], []
    undisturbed, _ = execute.run(cell, tmp_path / "undisturbed")
    real = execute._score_scal

    def score_until_killed(*given):
        calls.append(given)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(execute, "_score_scal", score_until_killed)
    monkeypatch.setattr(execute, "SAVING", 1.0)
    with pytest.raises(KeyboardInterrupt):
        execute.run(cell, tmp_path / "killed")
    shutil.copytree(tmp_path / "killed", tmp_path / "of other code")
    result, _ = execute.run(cell, tmp_path / "killed")
    assert len(calls) == 5 + 2
    assert result == undisturbed
    monkeypatch.setattr(execute, "fingerprint", lambda: "other")
    execute.run(cell, tmp_path / "of other code")
    assert len(calls) == 7 + cell.evaluations


@pytest.mark.parametrize("name", ["Drifting", "Shrinking"])
def test_a_killed_cell_begins_anew_where_episodes_cannot_be_played_again(
    name, tmp_path, monkeypatch
):
    """Its environment does not do twice what it did, or ends where it did not end before."""
    name, begun = f"tests.run.failing:{name}-v0", []
    begin = execute._begin
    monkeypatch.setattr(execute, "_begin", lambda *given: begun.append(given) or begin(*given))
    cell = Cell("scal", name, 300, options=TINY, evaluations=3, episodes=1)
    agent = SCAL(name, **dict(TINY)).learn(152)
    agent.save(tmp_path)
    code = [execute.fingerprint(), execute.versions(execute.PACKAGES)]
    write_json(tmp_path / "scores.json", {"scores": [{}], "seconds": 9.0, "code": code})
    result, seconds = execute.run(cell, tmp_path)
    assert len(result["returns"][0]) == 3
    assert seconds > 0.0
    assert len(begun) == 1


def test_an_exception_is_told_without_what_is_said_after_it(tmp_path):
    grid = Grid(tmp_path, CELLS)
    log = tmp_path / "logs" / f"{CELLS[0].name}.txt"
    log.parent.mkdir()
    log.write_text(
        "Traceback:\n  ...\njax.errors.SomeError: too large\n----\nFor simplicity, ...\n"
    )
    assert grid._reason(CELLS[0]) == "jax.errors.SomeError: too large"
    log.write_text("one word\n")
    assert grid._reason(CELLS[0]) == "one word"


def test_cells_that_differ_have_different_names():
    first = CELLS[0]
    assert first.name != Cell.read({**asdict(first), "options": ()}).name
    with pytest.raises(ValueError, match="7 evaluations do not divide"):
        Cell("scal", "CartPole-v1", 100, evaluations=7)


def test_a_time_that_nobody_took_is_no_speed(tmp_path):
    """Of a result from elsewhere the time may be unknown, which is filed as 0."""
    done, missing = (Cell("ppo", "Hopper-v5", 700_000, seed) for seed in (0, 1))
    timing = tmp_path / "timing" / f"{done.name}.json"
    timing.parent.mkdir()
    grid = Grid(tmp_path, [done, missing])
    grid.result(done).parent.mkdir()
    grid.result(done).write_text("{}")
    timing.write_text('{"seconds": 0.0}')
    assert estimate(grid) == {missing: BEGINNING + 700_000 / SPEED["ppo"]}
    timing.write_text('{"seconds": 70.0}')
    assert estimate(grid) == {missing: BEGINNING + 70.0}


def test_compiled_runs_are_estimated_by_their_preset(tmp_path):
    slow, fast = (Cell("scal", "CartPole-v1", 20_000, 0, 5, s) for s in ("default", "replayed"))
    found = estimate(Grid(tmp_path, [slow, fast]))
    assert found[slow] > 3 * (found[fast] - BEGINNING) > 100
