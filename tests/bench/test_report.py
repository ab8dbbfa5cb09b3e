"""The page of a report holds what its results say, and needs nothing from elsewhere."""

import json
from dataclasses import asdict
from html.parser import HTMLParser

import pytest

from scal.bench.cell import Cell
from scal.bench.report import ticks
from scal.cli import main

VOID = {"meta", "input", "path", "line", "polygon", "polyline"}


class Page(HTMLParser):
    """Text and scripts of a page whose tags are all closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.scripts, self.attributes = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self.open[-1:] == ["script"] else self.words).append(data)


@pytest.fixture
def results(tmp_path):
    """Two algorithms on two environments, one of them with a name that HTML could stumble over."""
    versions = {"scal-rl": "0.1.0"}
    for env, gaps in (("CartPole-v1", None), ("my/<Env>&Co-v0", 0.25)):
        for algorithm, score in (("scal", 500.0), ("ppo", 120.0)):
            cell = Cell(algorithm, env, 2_000, seeds=2, evaluations=2)
            result = {
                "cell": asdict(cell),
                "versions": versions,
                "steps": cell.marks,
                "returns": [[10.0, score], [20.0, score - 50]],
                "gaps": [[gaps, gaps]] * 2,
            }
            path = tmp_path / "grid" / "cells" / f"{cell.name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result))
    return tmp_path / "grid"


def test_the_page(results, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert main(["report", str(results), "--out", str(out)]) == 0
    assert "wrote" in capsys.readouterr().out
    page = Page(out.read_text())
    words = " ".join(page.words)
    for part in ("475.0 ± 25.0", "95.0 ± 25.0", "25.00%", "my/<Env>&Co-v0", "0.1.0"):
        assert part in words
    assert words.index("475.0 ± 25.0") < words.index("95.0 ± 25.0")  # the best comes first
    addresses = [value for name, value in page.attributes if name in ("src", "href")]
    assert addresses == []
    facts = json.loads(page.scripts[0])
    assert facts["series"]["SCAL"]["mean"] == [15.0, 475.0]


def test_what_cannot_be_reported(results, tmp_path, capsys):
    assert main(["report", "--out", str(tmp_path / "report.html")]) == 2
    assert "no folder of results is named" in capsys.readouterr().err
    assert main(["report", str(results), "--out", "report.txt"]) == 2
    assert "is of no known kind" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-1.3, 1.2, [-1.0, -0.5, 0.0, 0.5, 1.0]), (0, 9_300, [0, 2_000, 4_000, 6_000, 8_000])],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)
