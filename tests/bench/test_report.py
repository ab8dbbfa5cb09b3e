"""The page of a report holds what its results say, and needs nothing from elsewhere."""

import html
import json
import shutil
import subprocess
from dataclasses import asdict
from html.parser import HTMLParser

import pytest

from scal.bench.cell import Cell
from scal.bench.execute import write_json
from scal.bench.report import ticks
from scal.cli import main

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
VARIANCES = {"x": 1.0, "z": 3.0, "x_given_sa": 0.5, "z_given_sa": 4.0}
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
    """Two algorithms on two environments, one of them with a name that HTML could stumble over,
    policies of a known problem, and variances of gradients."""
    versions = {"scal-rl": "0.1.0"}
    for env, gaps in (("CartPole-v1", None), ("my/<Env>&Co-v0", 0.25)):
        for algorithm, score in (("scal", 500.0), ("ppo", 120.0)):
            cell = Cell(algorithm, env, 2_000, seeds=2, evaluations=2)
            result = {
                "cell": asdict(cell),
                "versions": versions,
                "steps": cell.marks,
                "returns": [[10.0, score], [20.0, score - 50]],
            } | ({} if gaps is None else {"gaps": [[gaps, gaps]] * 2})
            path = tmp_path / "grid" / "cells" / f"{cell.name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result))
    late = Cell("scal", "scal/Inventory-v0", 2_000, evaluations=2)
    noisy = Cell("scal", "scal/NoisyAcrobot-v0", 2_000, evaluations=2, gradients=True)
    for cell, more in (
        (late, {"gaps": [[0.2, 0.1]], "late_returns": [[1.0, 4.0]], "policies": [[7] + [0] * 100]}),
        (noisy, {f"variance_{name}": [[2.0, value]] for name, value in VARIANCES.items()}),
    ):
        result = {"cell": asdict(cell), "versions": versions, "steps": cell.marks}
        result |= {"returns": [[1.0, 2.0]], **more}
        (tmp_path / "grid" / "cells" / f"{cell.name}.json").write_text(json.dumps(result))
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
    ratios = words[words.index("scal/NoisyAcrobot-v0, default") :]
    assert ratios.split()[2:4] == ["3.00", "8.00"]
    assert "optimum" in words


def test_figures_are_files_too_and_the_same_every_time(results, tmp_path, capsys):
    out = ["report", str(results), "--out", str(tmp_path / "report.html"), "--figures"]
    assert main([*out, str(tmp_path / "a")]) == main([*out, str(tmp_path / "b")]) == 0
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab"
    )
    assert first == second
    for name in ("CartPole-v1-2000-returns.svg", "scal-Inventory-v0-2000-policies.png",
                 "scal-NoisyAcrobot-v0-default-variance-given-sa.svg"):  # fmt: skip
        assert name in first


CHECK = """
<script>
addEventListener("load", () => {
  const seen = [];
  const shown = () => [...document.querySelectorAll('g.series[data-who="PPO"]')]
    .filter((group) => group.style.display !== "none").length;
  seen.push(shown());
  const box = document.querySelector('.legend input[value="PPO"]');
  box.click();
  seen.push(shown());
  box.click();
  seen.push(shown());
  const svg = document.querySelector("figure.curves svg");
  const place = svg.getBoundingClientRect();
  const at = { clientX: place.left + place.width * 0.9, clientY: place.top + 9, bubbles: true };
  svg.dispatchEvent(new PointerEvent("pointermove", at));
  seen.push(document.querySelector("figure.curves .tip").textContent);
  seen.push(document.documentElement.scrollWidth <= innerWidth);
  document.body.dataset.seen = JSON.stringify([window.wrong, ...seen]);
});
</script></body>"""
EARLY = """<head><script>
window.wrong = [];
addEventListener("error", (event) => window.wrong.push(event.message));
console.error = console.warn = (...words) => window.wrong.push(words.join(" "));
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_in_a_browser(results, tmp_path, width, capsys):
    page, picture = tmp_path / "report.html", tmp_path / "page.png"
    assert main(["report", str(results), "--out", str(page)]) == 0
    page.write_text(page.read_text().replace("<head>", EARLY).replace("</body>", CHECK))
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/user",
        f"--window-size={width},900", "--virtual-time-budget=2000",
    ]  # fmt: skip
    dumped = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120
    )
    attributes = dict(Attributes(dumped.stdout).of_body)
    wrong, before, hidden, after, tip, fits = json.loads(attributes["data-seen"])
    assert wrong == []
    assert (before, hidden, after) == (3, 0, 3)
    assert tip.splitlines() == [
        "2,000 interactions",
        "SCAL: 475 (450 to 500)",
        "PPO: 95 (70 to 120)",
    ]
    assert fits
    subprocess.run([*command, f"--screenshot={picture}", page.as_uri()], check=True, timeout=120)
    assert picture.stat().st_size > 10_000


class Attributes(HTMLParser):
    """Those of the body."""

    def __init__(self, text):
        super().__init__()
        self.of_body = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "body":
            self.of_body = attrs


def test_the_page_tells_what_everybody_was_run_with(tmp_path):
    cells = [
        Cell("scal", "CartPole-v1", 40, evaluations=2),
        Cell("ppo", "CartPole-v1", 40, settings="zoo", evaluations=2),
    ]
    for cell in cells:
        curves = {"steps": cell.marks, "returns": [[1.0, 2.0]]}
        facts = {"cell": asdict(cell), "versions": {}, "commit": "7a5ca47", "config": {"mu": 0.123}}
        result = facts | curves
        write_json(tmp_path / "cells" / f"{cell.name}.json", result)
    page = tmp_path / "report.html"
    assert main(["report", str(tmp_path), "--out", str(page)]) == 0
    text = html.unescape(page.read_text())
    assert '"commit": "7a5ca47"' in text
    assert '"mu": 0.123' in text
    assert '"n_epochs": 20' in text


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
