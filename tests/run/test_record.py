"""What a run leaves behind says what happened."""

import sys

import pytest

from scal.cli import main
from scal.run import record, training
from tests.run.events import events, scalars


class Counting:
    """Learns nothing, on record."""

    env_id, steps = "CartPole-v1", 0

    def iterate(self, steps, every):
        for _ in range(steps // every):
            self.steps += every
            returned = None if self.steps == every else self.steps / 7
            yield {
                "step": self.steps, "return": returned, "mass": 0.1, "returns": [returned, None]
            }  # fmt: skip

    def save(self, path):
        return path


def test_event_files_hold_what_the_log_holds(tmp_path):
    agent = Counting()
    for _ in range(2):
        assert training.train(agent, 2_000, tmp_path, progress=False, tensorboard=True)
    lines = record.read(tmp_path / "log.jsonl")
    assert [line["step"] for line in lines] == [1_000, 2_000, 3_000, 4_000]
    expected = {}
    for line in lines:
        named = {"return": line["return"], "returns/0": line["returns"][0], "mass": line["mass"]}
        expected |= {(line["step"], name): value for name, value in named.items() if value}
    found = scalars(tmp_path / "tensorboard")
    assert {(step, name): value for step, name, value in found} == pytest.approx(expected)
    assert len(found) == len(expected) == 10


def test_a_resumed_run_hides_events_beyond_its_checkpoint(tmp_path):
    for done in (0, 3_000):
        with record.tensorboard(tmp_path, done) as add:
            add({"step": done + 1_000, "return": 1.0})
    starts = [event.step for event in events(tmp_path) if event.session_log.status == 1]
    assert starts == [1, 3_001]


def test_no_event_files_unless_asked_for(tmp_path):
    assert training.train(Counting(), 1_000, tmp_path, progress=False)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["curve.png", "log.jsonl", "run.json"]


def test_missing_tensorboard_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    out = tmp_path / "run"
    assert main(["train", "CartPole-v1", "--tensorboard", "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        'scal: package tensorboardX is missing; install it with pip install ".[tensorboard]" '
        "in a clone of scal\n"
    )
    assert not out.exists()


def test_curve_shows_the_band_between_the_worst_and_the_best_seed(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    bands = []
    monkeypatch.setattr(
        Axes, "fill_between", lambda _, steps, low, high, **__: bands.append((steps, low, high))
    )
    lines = [
        {"step": 1, "return": None, "returns": [None, None]},
        {"step": 2, "return": 3.0, "returns": [3.0, None]},
        {"step": 3, "return": 4.0, "returns": [3.0, 5.0]},
    ]
    record.plot_curve(tmp_path / "several.png", lines, "")
    assert bands == [([2, 3], [3.0, 3.0], [3.0, 5.0])]
    record.plot_curve(tmp_path / "one.png", [{"step": 1, "return": 2.0}], "")
    assert len(bands) == 1
