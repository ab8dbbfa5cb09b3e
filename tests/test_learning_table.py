"""The table of `make learn-check` says what its JSON holds."""

import io
import json

import numpy as np
from benchmarks import learning
from rich.console import Console


def printed(results):
    console = Console(file=io.StringIO(), width=140)
    console.print(learning.table(results))
    return console.file.getvalue()


def test_committed_results_cover_what_they_claim():
    results = json.loads(learning.RESULTS.read_text())
    tasks = {task.env: task for task in learning.TASKS}
    for env, found in results["environments"].items():
        curves = np.array(found["curves"])
        assert curves.shape == (tasks[env].seeds, tasks[env].steps // tasks[env].every)
        assert found["steps"][-1] == tasks[env].steps
        assert np.isfinite(curves).all()
        assert env in printed(results)


def test_the_readme_shows_it():
    readme = (learning.RESULTS.parents[2] / "README.md").read_text()
    assert learning.readme_table(json.loads(learning.RESULTS.read_text())) in readme


def test_mean_and_worst_are_judged_and_losses_the_other_way_round():
    def row(env, steps, scores):
        facts = {"steps": [steps], "curves": [[score] for score in scores]}
        return printed({"environments": {env: facts}})

    assert "met" in row("Acrobot-v1", 50_000, [-80, -85])
    assert "missed" in row("Acrobot-v1", 50_000, [-70, -95])
    assert "met" in row("scal/Inventory-v0", 50_000, [0.001, 0.015])
    assert "missed" in row("scal/Inventory-v0", 50_000, [0.001, 0.04])
    assert "4.00%" in row("scal/Inventory-v0", 50_000, [0.001, 0.04])
