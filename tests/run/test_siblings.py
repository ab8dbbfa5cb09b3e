"""Several seeds of a Gymnasium environment are what each of them would be alone, and resume."""

import json
from operator import itemgetter

import jax
import numpy as np
import pytest

import scal
from scal.bench import work
from scal.bench.cell import Cell
from scal.cli import main
from scal.run import checkpoint, training
from scal.run.siblings import Siblings

FAST = {
    "width": 16,
    "lookahead_width": 16,
    "batch_size": 16,
    "warmup": 96,
    "environments": 4,
    "replay_size": 2_000,
    "anneal_steps": 600,
}
ENV = "MountainCar-v0"  # no copy in JAX
SMALL = [
    word for name, value in FAST.items() for word in (f"--{name.replace('_', '-')}", f"{value}")
]


def test_each_learns_what_it_would_learn_alone():
    siblings = Siblings("Hopper-v5", 2, seed=3, **FAST)
    *_, line = siblings.iterate(200, every=100)
    alone = scal.SCAL("Hopper-v5", 4, **FAST)
    *_, record = alone.iterate(200, every=100)
    learners = jax.tree.map(itemgetter(1), siblings._carry.learner), alone.learner
    for one, other in zip(*map(jax.tree.leaves, learners), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)
    assert line["returns"][1] == pytest.approx(record["return"], rel=1e-3)
    returns = siblings.evaluate(2)
    assert not np.array_equal(returns[0], returns[1])
    np.testing.assert_allclose(returns[1], alone.evaluate(2), rtol=1e-2)
    np.testing.assert_allclose(returns[1], siblings.agent(1).evaluate(2), rtol=1e-3)


def test_processes_that_step_the_environments_change_nothing(tmp_path):
    """Five lanes each in two processes, and a run that is saved and loaded in its middle."""
    options = FAST | {"environments": 5, "warmup": 100}
    here = Siblings(ENV, 2, seed=3, **options)
    there = Siblings(ENV, 2, seed=3, workers=2, **options)
    lines = [list(one.iterate(300, every=100)) for one in (here, there)]
    assert lines[0] == lines[1]
    there.save(tmp_path)
    again = Siblings.load(tmp_path)
    after = [list(one.iterate(300, every=100)) for one in (here, there, again)]
    assert after[0] == after[1] == after[2]
    digests = {checkpoint.digest(one._carry) for one in (here, there, again)}
    assert len(digests) == 1
    np.testing.assert_array_equal(here.evaluate(2), again.evaluate(2))


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train = ["train", ENV, "--seed", "3", "--seeds", "2", *SMALL, "--quiet"]
    assert main([*train, "--steps", "400", "--out", "half"]) == 0
    assert "over 2 seeds after 400" in capsys.readouterr().out
    assert main(["resume", "half", "--steps", "200", "--quiet"]) == 0
    assert main([*train, "--steps", "600", "--workers", "2"]) == 0
    whole = tmp_path / "runs" / f"{ENV}-3-4"
    assert training.digest(tmp_path / "half") == training.digest(whole)
    capsys.readouterr()
    assert main(["eval", "half", "--episodes", "2", "--json"]) == 0
    assert np.shape(json.loads(capsys.readouterr().out)["returns"]) == (2, 2)
    with pytest.raises(ValueError, match=r"several seeds; use scal.run.siblings.Siblings.load"):
        scal.SCAL.load(tmp_path / "half" / "checkpoints")


def test_a_cell_of_several_seeds(tmp_path):
    options = tuple(FAST.items())
    cell = Cell("scal", ENV, 400, seed=3, seeds=2, options=options, evaluations=2, episodes=1)
    work.work(tmp_path, cell)
    result = json.loads((tmp_path / "cells" / f"{cell.name}.json").read_text())
    assert np.shape(result["returns"]) == (2, 2)
    siblings = Siblings(ENV, 2, seed=3, **FAST)
    list(siblings.iterate(400))
    assert [of_seed[-1] for of_seed in result["returns"]] == siblings.evaluate(1)[:, 0].tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_what_breaks_in_a_process_is_said_in_this_one(workers):
    siblings = Siblings("tests.run.failing:Failing-v0", 2, workers=workers)
    with pytest.raises(RuntimeError, match="raised ZeroDivisionError at step 2 of episode 0: out"):
        list(siblings.iterate(10))


def test_bad_numbers():
    with pytest.raises(ValueError, match="seeds is 0; use a whole number of at least 1"):
        Siblings(ENV, 0)
    with pytest.raises(ValueError, match="workers is -1; use a whole number of at least 0"):
        Siblings(ENV, 1, workers=-1)
    with pytest.raises(ValueError, match="seed is -1; use one between 0 and"):
        Siblings(ENV, 1, seed=-1)


def test_workers_are_for_seeds_that_python_steps(capsys):
    for seeds in ([], ["--seeds", "2"]):
        assert main(["train", "CartPole-v1", *seeds, "--workers", "2"]) == 2
        assert "workers is 2, for --seeds of environments without" in capsys.readouterr().err


def test_more_episodes_than_lanes():
    """17 episodes in 16 lanes, the last of them alone, are those that SCAL plays."""
    siblings = Siblings(ENV, 1, seed=3, **FAST)
    list(siblings.iterate(100))
    played = siblings.evaluate(17)
    assert played.shape == (1, 17)
    np.testing.assert_array_equal(played[0], siblings.agent(0).evaluate(17))
