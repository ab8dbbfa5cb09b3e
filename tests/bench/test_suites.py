"""Suites name cells that can be run, and a terminal shows them."""

import io
from dataclasses import asdict, replace

import numpy as np
import pytest
from rich.console import Console

from scal.bench import baselines, show, suites
from scal.bench.cell import Cell
from scal.bench.grid import Grid
from scal.bench.series import gather, read
from scal.bench.statistics import interval, iqm
from scal.bench.suites import SUITES
from scal.cli import main
from scal.learn.config import PRESETS


@pytest.mark.parametrize("suite", SUITES)
def test_every_cell_can_be_told_from_the_others_and_has_settings(suite):
    cells = SUITES[suite]()
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells:
        if cell.algorithm != "scal":
            assert baselines.settings_of(cell) is not None


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


def test_a_folder_without_results(tmp_path):
    with pytest.raises(ValueError, match="holds no results; run scal bench SUITE --out"):
        read([tmp_path])


def test_the_command(tmp_path, capsys):
    assert main(["bench", "everything"]) == 2
    assert "suite is 'everything'; use one of inventory" in capsys.readouterr().err
    assert main(["bench", "smoke", "--workers", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err
    out = tmp_path / "results"
    assert main(["bench", "smoke", "--dry-run", "--out", str(out)]) == 0
    assert "8 cells, 8 of them missing" in capsys.readouterr().out
    assert not out.exists()


def test_a_rival_is_evaluated_like_scal(tmp_path):
    pytest.importorskip("sb3_contrib", reason="needs the extra rivals")
    from scal.bench.execute import run

    cell = Cell("trpo", "scal/Inventory-v0", 400, evaluations=2, episodes=1)
    cell = Cell.read({**vars(cell), "options": [["batch_size", 100], ["n_steps", 200]]})
    (first, _), (again, _) = (run(cell, tmp_path / name) for name in ("a", "b"))
    assert first == again
    assert all(gap > 0 for gap in first["gaps"][0])
    assert len(first["policies"][0]) == 101
