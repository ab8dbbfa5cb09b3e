"""The search for the paper's numbers."""

import numpy as np
from benchmarks.search import TASKS, draw, ranked, scores

from scal.learn.config import PRESETS


def test_settings_are_those_that_the_paper_allows():
    """κ = μβ exceeds one, and both targets are copied at the same time."""
    drawn = draw(100, seed=0)
    assert (drawn["mu"] * drawn["beta"] > 1.0).all()
    assert (drawn["period_value"] == drawn["period_multiplier"]).all()
    assert {len(values) for values in drawn.values()} == {100}


def test_the_worst_counts_first():
    even, uneven, both = [[0.5, 0.5]], [[1.0, 0.1]], [[0.5, 0.9]]
    assert ranked(np.array([[*even, *uneven, *both]])).tolist() == [2, 0, 1]


def test_every_setting_is_scored_on_every_seed():
    task = TASKS[0]._replace(steps=1_200)
    found = scores(task, PRESETS["paper"].discrete, draw(2, seed=0), first=0, seeds=3)
    assert found.shape == (2, 3)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert found.any()
