"""What the benchmark of learners times is the work it names; its rivals need `make bench-learn`."""

import io
import json

import jax
import numpy as np
import pytest
from benchmarks import clock, contenders, learn
from rich.console import Console

from scal.bench import suites
from scal.bench.series import gather, read


@pytest.mark.parametrize("size", [4, 17])
def test_draws_come_from_the_whole_buffer_either_way(size):
    batches = []
    for in_program in (False, True):
        work, settings = contenders.replay_draws(size, 400, in_program, draws=3, seed=0)
        assert settings == {"batch_size": 128, "n_steps": 3, "stored": 400}
        batches.append(work())
    assert batches[0].window.observation.shape == (128, 3, size)
    assert batches[0].window.reward.min() < 50 < 350 < batches[0].window.reward.max()
    for called, compiled in zip(*map(jax.tree.leaves, batches), strict=True):
        np.testing.assert_array_equal(called, compiled)


def keys(runs):
    return [tuple(key) for run in runs for key in np.asarray(jax.random.key_data(run.key))]


def test_seeds_at_once_and_in_turn_do_the_same_work():
    """The same seeds, and as many steps for each."""
    at_once = contenders.scal_compiled(2, 1, steps=20, seed=5)[0]()
    in_turn = contenders.scal_compiled(1, 2, steps=20, seed=5)[0]()
    assert keys(at_once) == keys(in_turn)
    assert len(set(keys(at_once))) == 2
    for run in (*at_once, *in_turn):  # 1,000 to fill the buffer, 10 before the clock, 10 on it
        assert (run.learner.replay.stored == 1_020).all()


def test_measurements_are_taken_alone_on_one_core():
    claims = [learn.Claim("loop / draws", "scal-cartpole", "replay-call-cartpole-10000", 1e9)]
    units = {"scal-cartpole": 200, "replay-call-cartpole-10000": 500}
    measured = learn.interleaved(units, repeats=1)
    for name, facts in measured.items():
        assert facts["units"] == units[name]
        assert len(facts["seconds"]) == 1
        assert min(facts["seconds"]) > 0
        assert sum(facts["cpu_seconds"]) < 1.1 * sum(facts["seconds"])
    assert measured["scal-cartpole"]["settings"]["batch_size"] == 128
    report = {"claims": learn.judged(claims, measured), "contenders": measured}
    assert report["claims"][0]["met"] is False
    assert json.loads(json.dumps(report)) == report
    console = Console(file=io.StringIO(), width=120)
    learn.show(report, console)
    assert "0 of 1 targets met\nmissed: loop / draws" in console.file.getvalue()


def test_ratios_are_those_of_median_speeds():
    def repeats(*seconds):
        return [{"seconds": 9, "cpu_seconds": s, "units": 12, "settings": {}} for s in seconds]

    measured = {"a": learn.summary(repeats(1, 9, 2)), "b": learn.summary(repeats(8, 6, 1))}
    assert measured["a"]["per_cpu_second"] == 6
    claims = [learn.Claim("", "a", "b", 3.0), learn.Claim("", "a", "b", 3.1)]
    judged = learn.judged(claims, measured)
    assert [(row["ratio"], row["met"]) for row in judged] == [(3.0, True), (3.0, False)]
    assert judged[0]["ratio_by_the_clock"] == 1


def test_every_claim_is_about_contenders_that_exist():
    named = {name for claim in learn.CLAIMS for name in (claim.ours, claim.rival)}
    by_the_clock = {f"{cell.algorithm}-{cell.env}" for cell in suites.continuous()}
    assert named | by_the_clock == set(contenders.CONTENDERS)
    assert set(clock.UNITS) == set(contenders.LEARNERS)
    assert {(cell.algorithm, cell.settings) for cell in suites.continuous()} == set(
        contenders.LEARNERS.items()
    )
    assert set(learn.UNITS) == {name for name in named if not name.startswith("replay")}


def test_a_contender_that_fails_says_why():
    with pytest.raises(RuntimeError, match=r"no-such failed:(.|\n)*KeyError: 'no-such'"):
        learn.measured_alone("no-such", 1, 0)


def test_returns_by_the_clock_are_read_off_the_curves():
    """100 steps/s: after 60 s half way between marks, after 120 s at the end, then over."""

    def result(seed, returns, **facts):
        cell = {"algorithm": "ppo", "env": "Hopper-v5", "steps": 12_000, "seed": seed, "seeds": 1}
        cell |= {"settings": "zoo", "options": [], "evaluations": 3, "gradients": False} | facts
        return {"cell": cell, "steps": [4_000, 8_000, 12_000], "returns": [returns]}, 1.0

    measured = [result(1, [0.0, 10.0, 20.0]), result(2, [10.0, 20.0, 50.0])]
    others = [result(1, [1.0, 2.0, 3.0], settings="default"), result(1, [9.0] * 3, env="Ant-v5")]
    speeds = {"ppo-Hopper-v5": 100.0}
    found = clock.rows(gather(measured + others), speeds)
    assert found == [["Hopper-v5", "PPO (zoo)", "2", "100", "10", "35", "(35)"]]
    assert clock.rows(gather(measured), {"ppo-Hopper-v5": 1.0})[0][-1] == "5"


def test_the_page_shows_the_measured_table():
    report = json.loads(clock.RESULTS.read_text())
    assert report["clean"] is True
    assert clock.markdown(report) in (clock.CURVES.parents[2] / "docs" / "results.md").read_text()


def test_speeds_and_curves_are_of_the_same_options():
    contenders = json.loads(clock.RESULTS.read_text())["contenders"]
    results = [result for result, _ in read([clock.CURVES])]
    for result in results:
        if result["cell"]["algorithm"] == "scal":
            timed = contenders[f"scal-{result['cell']['env']}"]["settings"]
            assert timed | {"anneal_steps": None} == result["config"] | {"anneal_steps": None}


def test_a_learner_of_figure_6_is_timed_on_its_own_steps():
    work, settings = contenders.CONTENDERS["scal-Hopper-v5"](8, 0)
    learned_from = contenders.WARM_UP - settings["warmup"] + 8
    assert work().updates == settings["updates"] * learned_from
    assert settings["slack"] == "lookahead"
