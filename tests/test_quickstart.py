"""Every command and every line of Python in docs/quickstart.md runs, on a short budget."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from scal.cli import main

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "quickstart.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)
LINES = [
    shlex.split(line, comments=True)
    for kind, body in BLOCKS
    if kind == "sh"
    for line in body.splitlines()
]


def test_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("scal.run.training.FURTHER", 1_000)
    short = {"--steps": "1000", "--seeds": "2", "--episodes": "2"}
    commands = [line[1:] for line in LINES if line[0] == "scal"]
    assert {command[0] for command in commands} == {"train", "eval", "resume", "bench", "report"}
    for command in commands:
        before = ["", *command[:-1]]
        budget = [short.get(name, word) for name, word in zip(before, command, strict=True)]
        assert main(budget) == 0, (command, capsys.readouterr().err)
    for path in ("cp.mp4", "cp/log.jsonl", "cp/curve.png", "watched/tensorboard", "hill.html"):
        assert Path(path).exists()


def test_everything_else_is_installation():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command, *words in [line for line in LINES if line[0] != "scal"]:
        if command == "make":
            assert set(words) <= set(targets)
        elif command == "pip":
            (wanted,) = re.fullmatch(r"\.\[(\w+)\]", words[-1]).groups()
            assert wanted in extras["optional-dependencies"]
        else:
            assert command == "."


@pytest.mark.parametrize("code", [body for kind, body in BLOCKS if kind == "python"])
def test_python_blocks_run(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    short = code.replace("25_000", "1_000")
    assert short != code
    exec(compile(short, "quickstart.md", "exec"), {})
    assert capsys.readouterr().out
