"""The README does what it says."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from benchmarks import learn
from benchmarks.mdp import readme_table

import scal
from scal.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", [body for kind, body in BLOCKS if kind == "python"])
def test_python_blocks_run(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    if printed:
        assert printed in README


def test_example_ends_in_a_number_beside_the_exact_one():
    example = next(body for kind, body in BLOCKS if kind == "python")
    assert "against" in example.splitlines()[-1]


def test_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scal.random_mdp(20, 3, 4).save("my.npz")
    lines = [
        shlex.split(line, comments=True)
        for kind, body in BLOCKS
        if kind == "sh"
        for line in body.splitlines()
    ]
    commands = [line[1:] for line in lines if line and line[0] == "scal"]
    assert len(commands) >= 5
    for command in commands:
        assert main(command) == 0, command
    capsys.readouterr()
    with np.load("solved.npz") as stored:
        assert stored["gap"] < 1e-6
    assert Path("solved.png").stat().st_size > 1000


def test_demo_output_is_what_the_readme_shows(capsys):
    assert main(["solve", "inventory"]) == 0
    printed = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
    shown = next(body for kind, body in BLOCKS if kind == "text" and "optimum" in body)
    for line in shown.strip().splitlines():
        words = re.sub(r"\s+", " ", line.strip()).split(" ±")[0]
        assert words in printed


def test_figures_come_from_the_committed_results():
    report = json.loads((ROOT / "benchmarks" / "results" / "mdp.json").read_text())
    assert readme_table(report) in README


def test_learners_in_the_readme_are_those_of_the_results():
    report = json.loads((ROOT / "benchmarks/results/learn.json").read_text())
    assert learn.readme_table(report) in README
