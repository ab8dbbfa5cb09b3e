"""What the documents point to exists."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from scal.learn.metrics import Metrics

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def rows() -> list[tuple[str, str]]:
    """(function, test) of every row of the paper map."""
    text = (ROOT / "docs" / "paper_map.md").read_text()
    found = re.findall(r"\| `(scal[\w.]+)` \| `(tests[\w/.:]+)` \|$", text, re.MULTILINE)
    assert len(found) == text.count("\n| ") - 1
    return found


@pytest.mark.parametrize(("function", "test"), rows())
def test_paper_map_resolves(function, test):
    parts = function.split(".")
    for split in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            found = getattr(found, name)
        break
    assert callable(found)
    path, name = test.split("::")
    tree = ast.parse((ROOT / path).read_text())
    assert name.startswith("test_")
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if not link.startswith("http"):
            assert (document.parent / link).exists(), link


def test_every_metric_is_explained():
    text = (ROOT / "docs" / "metrics.md").read_text()
    explained = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert explained == ["step", "return", *Metrics._fields, "returns"]
