"""Committed results, their figures and what the documents say of them agree."""

import json
import re

import numpy as np
import pytest
from experiments import rerun, tables
from experiments.rerun import FIGURES, RESULTS

from scal.bench.cell import Cell
from scal.bench.execute import run
from scal.bench.grid import Grid
from scal.bench.panels import panels
from scal.bench.series import gather, read
from scal.bench.suites import SUITES, part
from scal.run.source import source

THERE = [suite for suite in tables.SUITES if (RESULTS / f"{suite}.json").exists()]
TINY = (("batch_size", 16), ("warmup", 100), ("width", 16))
PAGE = FIGURES.parent / "results.md"


@pytest.mark.parametrize("suite", THERE)
def test_results_are_cells_of_the_suite_and_the_page_shows_them(suite):
    path = RESULTS / f"{suite}.json"
    facts = json.loads(path.read_text())
    assert re.fullmatch("[0-9a-f]{40}", facts["provenance"]["commit"])
    assert all(re.fullmatch("[0-9a-f]{40}", one["commit"]) for one in facts["cells"])
    cells = {Cell.read(one["cell"]) for one in facts["cells"]}
    assert cells <= set(SUITES[suite]())
    for panel in panels(gather(read([path]))):
        for line in panel.lines:
            assert np.isfinite(line.mean).all()
            assert len(line.across) == len(line.mean)
    page = PAGE.read_text()
    assert tables.table(suite) in page
    drawn = re.findall(r"figures/(fig\d_\w+\.svg)", page)
    assert drawn
    assert all((FIGURES / name).exists() for name in drawn)


def test_a_suite_measured_in_parts(tmp_path):
    """What a file holds is filed as if it had been run here, and keeps its commit."""
    packed, again = RESULTS / "discrete.json", tmp_path / "again.json"
    known = json.loads(packed.read_text())
    one, *others = known["cells"][:3]
    known["cells"] = [one | {"commit": "a" * 40}, *others]
    part = tmp_path / "part.json"
    part.write_text(json.dumps(known))
    grid = Grid(tmp_path / "grid", SUITES["discrete"]())
    everything = len(grid.missing())
    rerun.adopt(grid, part)
    assert len(grid.missing()) == everything - 3
    rerun.pack_up(grid, "discrete", {}, again)
    written = json.loads(again.read_text())["cells"]
    assert sorted(written, key=_name) == sorted(known["cells"], key=_name)


def test_a_suite_is_begun_anew_where_nothing_was_run(monkeypatch, tmp_path):
    """What is to be measured is written down before the first cell."""
    cells = [Cell("scal", "Pendulum-v1", 300, options=TINY, evaluations=3, episodes=1)]
    monkeypatch.setitem(rerun.SUITES, "discrete", lambda: cells)
    monkeypatch.setattr(rerun, "RESULTS", tmp_path)
    words = ["fig5", "--run", "--anew", "--folder", str(tmp_path / "grid")]
    monkeypatch.setattr("sys.argv", words)
    rerun.main("discrete", None)
    (result,) = json.loads((tmp_path / "discrete.json").read_text())["cells"]
    assert Cell.read(result["cell"]) == cells[0]
    assert result["commit"] == source().commit
    assert result["seconds"] > 0.0


def test_results_of_other_options_are_told(tmp_path, capsys):
    cell = Cell("scal", "Pendulum-v1", 300, options=TINY, evaluations=1, episodes=1)
    result, _ = run(cell, tmp_path)
    rerun.warn([result])
    assert capsys.readouterr().out == ""
    older = {name: value for name, value in result["config"].items() if name != "updates"}
    rerun.warn([result | {"config": older | {"mu": 0.5}}])
    assert "before mu, updates changed" in capsys.readouterr().out
    untold = {name: value for name, value in result.items() if name != "config"}
    rerun.warn([untold | {"commit": "7a5ca4782558ed08af89d5efea95c19c7807464e"}])
    assert "options, which are those of commit 7a5ca47" in capsys.readouterr().out


def test_a_part_of_a_suite_is_run_seed_by_seed():
    cells = part(SUITES["continuous"](), ["ppo", "trpo"], ["Hopper-v5"])
    assert {(cell.algorithm, cell.env) for cell in cells} == {
        ("ppo", "Hopper-v5"), ("trpo", "Hopper-v5"),
    }  # fmt: skip
    assert [cell.seed for cell in cells] == sorted(2 * list(range(7_000, 7_005)))
    assert len(part(SUITES["continuous"](), None, None)) == len(SUITES["continuous"]())


def _name(packed):
    return Cell.read(packed["cell"]).name


def test_every_figure_of_section_7_has_a_script():
    scripts = sorted(path.stem for path in (FIGURES.parents[1] / "experiments").glob("fig*.py"))
    assert [name[:4] for name in scripts] == ["fig2", "fig3", "fig4", "fig5", "fig6"]


def test_a_seed_counts_once():
    """Though a folder has it in two cells, as after another number of seeds."""

    def result(first, seeds):
        cell = vars(Cell("scal", "Acrobot-v1", 20, first, seeds, evaluations=1))
        returns = [[float(seed)] for seed in range(first, first + seeds)]
        return {"cell": cell, "steps": [20], "returns": returns}, 6.0

    (series,) = gather([result(7, 2), result(7, 3), result(12, 1)])
    assert series.last.tolist() == [7.0, 8.0, 9.0, 12.0]
    assert series.seconds == 3.0 + 3.0 + 2.0 + 6.0


def test_what_was_not_measured_is_not_drawn(monkeypatch, tmp_path):
    monkeypatch.setattr(rerun, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["fig6_continuous"])
    with pytest.raises(SystemExit, match="suite continuous has not been measured yet; use --run"):
        rerun.main("continuous", "fig6_continuous")


def test_a_table_of_ablations():
    """Undone options against environments; exact losses where the optimum is known."""

    def result(env, options, returns, **more):
        cell = vars(Cell("scal", env, 20, options=options, seeds=2, evaluations=1))
        return {"cell": cell, "steps": [20], "returns": returns} | more, 1.0

    series = gather([
        result("Known", (), [[3.0], [4.0]], gaps=[[0.01], [0.03]]),
        result("Unknown", (), [[3.0], [4.0]]),
        result("Unknown", (("flow", 0.0),), [[-3.0], [1.0]]),
    ])  # fmt: skip
    assert tables.ablation(series).splitlines() == [
        "| undone | Known | Unknown |",
        "| --- | --- | --- |",
        "| nothing | 2.00% (3.00%) | 3.5 (3.0) |",
        "| flow | – | -1.0 (-3.0) |",
    ]
