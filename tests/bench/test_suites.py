"""Suites name cells that can be run, and a terminal shows them."""

import io
from dataclasses import asdict, replace

import numpy as np
import pytest
from rich.console import Console

from scal.bench import baselines, show, suites
from scal.bench.cell import Cell, score
from scal.bench.grid import Grid
from scal.bench.panels import panels
from scal.bench.series import gather, read
from scal.bench.standings import standings
from scal.bench.statistics import interval, iqm
from scal.bench.suites import SUITES
from scal.cli import main
from scal.learn.config import PRESETS
from scal.run.agent import SCAL


@pytest.mark.parametrize("suite", SUITES)
def test_every_cell_can_be_told_from_the_others_and_has_settings(suite):
    cells = SUITES[suite]()
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells:
        if cell.algorithm != "scal":
            known = {"default": {}, "normalized": {"normalize": True}}
            zoo = baselines.ZOO.get((cell.algorithm, cell.env))
            assert baselines.settings_of(cell) == known.get(cell.settings, zoo)


def test_the_paper_is_all_of_them_and_smoke_has_every_algorithm():
    parts = ("inventory", "discrete", "continuous", "multistep", "gradient")
    assert set(SUITES["paper"]()) == {cell for name in parts for cell in SUITES[name]()}
    assert {cell.algorithm for cell in SUITES["smoke"]()} == {"scal", *baselines.HOMES}


def test_an_ablation_undoes_every_deviation_once():
    """Together they make the paper's preset."""
    for kind in ("discrete", "continuous"):
        usual, paper = (getattr(PRESETS[name], kind) for name in ("default", "paper"))
        none, *changes = suites.undone(usual, paper)
        assert none == ()
        names = [name for change in changes for name, _ in change]
        assert len(set(names)) == len(names)
        assert replace(usual, **dict(sum(changes, ()))) == paper
    one_of = {cell.env: cell for cell in SUITES["ablation"](seeds=3)}
    assert one_of["CartPole-v1"].seeds == 3
    assert one_of["Ant-v5"].seeds == 1


def test_rivals_know_their_settings():
    tuned = baselines.settings_of(Cell("dqn", "CartPole-v1", 100, settings="zoo", evaluations=1))
    assert tuned["target_update_interval"] == 10
    with pytest.raises(ValueError, match="there are no 'zoo' settings of ppo for Pendulum-v1"):
        baselines.settings_of(Cell("ppo", "Pendulum-v1", 100, settings="zoo", evaluations=1))
    with pytest.raises(ValueError, match="algorithm is 'a2c'; use scal or one of dqn, ppo"):
        baselines.settings_of(Cell("a2c", "Pendulum-v1", 100, evaluations=1))


def test_intervals_hold_the_middle_and_shrink_with_seeds():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=5), rng.normal(size=500)
    low, high = interval([few])
    assert low <= float(iqm(few)) <= high
    assert np.subtract(*interval([many])[::-1]) < (high - low) / 3
    assert interval([few]) == (low, high)
    low, high = interval([np.zeros(5), np.ones(5)])  # environments are not drawn, seeds are
    assert (low, high) == (0.5, 0.5)


def printed(table):
    console = Console(file=io.StringIO(), width=120)
    console.print(table)
    return console.file.getvalue()


def test_plan_and_summary(tmp_path):
    cells = SUITES["discrete"](seeds=2, first=0)
    shown = printed(show.plan(Grid(tmp_path, cells), workers=2))
    assert f"{len(cells)} cells, {len(cells)} of them missing" in shown
    assert "zoo" in shown
    options = (("n_steps", 5),)
    cell = Cell("scal", "scal/Inventory-v0", 200, seeds=2, options=options, evaluations=2)
    result = {
        "cell": asdict(cell),
        "steps": cell.marks,
        "returns": [[1.0, 10.0], [2.0, 30.0]],
        "gaps": [[0.5, 0.1], [0.5, 0.3]],
    }
    (series,) = gather([(result, 4.0)])
    assert series.speed == 100.0
    row = next(line for line in printed(show.summary([series])).splitlines() if "n_steps" in line)
    for part in ("20.0 ± 10.0", "10.0", "20.00%"):
        assert part in row


def result_of(cell, *returns, **more):
    facts = {"cell": asdict(cell), "steps": cell.marks, **more}
    return facts | {"returns": [[value] * cell.evaluations for value in returns]}, 1.0


def test_who_stands_where():
    """Those that are level are all the best; of one seed there is no spread."""
    cells = [Cell(name, "CartPole-v1", 20, evaluations=1) for name in ("scal", "ppo", "trpo")]
    many = replace(cells[0], seeds=2)
    series = gather([
        result_of(many, 400.0, 500.0), result_of(cells[1], 500.0), result_of(cells[2], 500.0),
    ])  # fmt: skip
    found = standings(series)
    assert [one.who for one in found if one.best] == ["PPO", "TRPO"]
    assert (found[0].mean, found[0].interval) == ("500.0", "–")
    assert (found[2].who, found[2].mean) == ("SCAL", "450.0 ± 50.0")
    assert found[2].interval == "400.0 to 500.0"


def test_curves_with_other_marks_have_names_of_their_own():
    coarse, fine = (Cell("scal", "CartPole-v1", 20, seed=1, evaluations=n) for n in (1, 2))
    names = [one.who for one in gather([result_of(coarse, 1.0), result_of(fine, 2.0)])]
    assert sorted(names) == ["SCAL, evaluated 1×", "SCAL, evaluated 2×"]


@pytest.mark.parametrize(
    ("env", "word"), [("FrozenLake-v1", "action"), ("scal/Inventory-v0", "order")]
)
def test_policies_are_drawn_beside_the_optimum(env, word):
    """Of a toy-text environment, too."""
    cell = Cell("scal", env, 20, evaluations=1)
    agent = SCAL(env, width=8, lookahead_width=8)
    found = {name: [[value]] for name, (value,) in score(np.ones((1, 1)), [agent]).items()}
    result = result_of(cell, 1.0, gaps=found["gaps"], policies=found["policies"][0])
    assert ("late_returns" in found) == (word == "order")
    drawn = next(panel for panel in panels(gather([result])) if "policies" in panel.name)
    assert [line.name for line in drawn.lines] == ["SCAL", "optimum"]
    assert len(drawn.lines[1].mean) == len(found["policies"][0][0])
    assert drawn.up == word


def test_a_folder_without_results(tmp_path):
    with pytest.raises(ValueError, match="holds no results; run scal bench SUITE --out"):
        read([tmp_path])


def test_the_command(tmp_path, capsys):
    assert main(["bench", "everything"]) == 2
    assert "suite is 'everything'; use one of inventory" in capsys.readouterr().err
    assert main(["bench", "smoke", "--steps", "9"]) == 2
    assert "--steps is for an environment that is named" in capsys.readouterr().err
    assert main(["bench", "smoke", "--algorithms", "a2c"]) == 2
    assert "algorithm is 'a2c'; smoke has dqn, ppo, sac, scal, trpo" in capsys.readouterr().err
    assert main(["bench", "smoke", "--envs", "CartPole-v1", "Cartpole-v1"]) == 2
    assert "environment is 'Cartpole-v1'; smoke has CartPole-v1" in capsys.readouterr().err
    assert main(["bench", "Acrobot-v1", "--steps", "-20"]) == 2
    assert "at least 1" in capsys.readouterr().err
    assert main(["bench", "scal/Catch-v0"]) == 2
    assert "scal/Catch-v0 shows frames" in capsys.readouterr().err
    assert main(["bench", "smoke", "--workers", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err
    out = tmp_path / "results"
    assert main(["bench", "smoke", "--dry-run", "--out", str(out)]) == 0
    assert "8 cells, 8 of them missing" in capsys.readouterr().out
    assert not out.exists()
    words = ["bench", "smoke", "--dry-run", "--algorithms", "scal", "--envs", "CartPole-v1"]
    assert main(words) == 0
    assert "1 cells, 1 of them missing" in capsys.readouterr().out


def test_any_environment_may_be_named(capsys):
    words = ["--steps", "2000", "--seeds", "2", "--dry-run"]
    assert main(["bench", "MountainCar-v0", *words]) == 0
    shown = capsys.readouterr().out
    assert "8 cells" in shown  # of four algorithms
    assert "dqn" in shown
    assert "sac" not in shown
    assert main(["bench", "Pendulum-v1", *words]) == 0
    shown = capsys.readouterr().out
    assert "7 cells" in shown  # SCAL's seeds are one
    assert "sac" in shown


def test_missing_rivals_are_told_before_anything_is_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(baselines, "HOMES", {"dqn": "no_such_library"})
    words = ["bench", "smoke", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "package no_such_library is missing; install it with" in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*"))


def test_a_rival_is_evaluated_like_scal(tmp_path):
    pytest.importorskip("sb3_contrib", reason="needs the extra rivals")
    from scal.bench.execute import run

    cell = Cell("trpo", "scal/Inventory-v0", 400, evaluations=2, episodes=1)
    cell = Cell.read({**vars(cell), "options": [["batch_size", 100], ["n_steps", 200]]})
    (first, _), (again, _) = (run(cell, tmp_path / name) for name in ("a", "b"))
    assert first == again
    assert all(gap > 0 for gap in first["gaps"][0])
    assert len(first["policies"][0]) == 101
