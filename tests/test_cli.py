"""The command, run as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import scal
from scal.cli import main

KEYS = [
    "states",
    "actions",
    "gamma",
    "method",
    "objective",
    "upper",
    "lower",
    "gap",
    "tolerance",
    "proven",
    "iterations",
    "seconds",
    "policy",
]


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("method", scal.mdp.METHODS)
def test_json_is_exactly_one_object(capsys, method):
    code, out, err = run(capsys, "solve", "inventory", "--method", method, "--json")
    report = json.loads(out)
    assert code == 0
    assert err == ""
    assert list(report) == KEYS
    assert report["policy"] == [7] + [0] * 100
    assert report["lower"] <= report["objective"] <= report["upper"]
    assert report["gap"] <= report["tolerance"] == 1e-6
    assert report["proven"] is True
    assert (report["states"], report["actions"], report["gamma"]) == (101, 101, 0.99)


def test_table_for_people(capsys):
    code, out, _ = run(capsys, "solve", "inventory")
    assert code == 0
    for words in ("49.77", "stock 0: order 7", "stock 1–100: order 0", "gap", "ties"):
        assert words in out


def test_files_in_and_out(capsys, tmp_path):
    mdp = scal.random_mdp(30, 3, 4, seed=9, gamma=0.9)
    mdp.save(tmp_path / "mdp.npz")
    code, out, _ = run(
        capsys,
        "solve",
        str(tmp_path / "mdp.npz"),
        "--json",
        "--out",
        str(tmp_path / "solution.npz"),
        "--plot",
        str(tmp_path / "solution.svg"),
    )
    report = json.loads(out)
    assert code == 0
    assert report["gamma"] == 0.9
    with np.load(tmp_path / "solution.npz") as stored:
        assert stored["policy"].tolist() == report["policy"]
        assert scal.certify(mdp, V=stored["V"], x=stored["x"]).accepts(1e-5)
    assert (tmp_path / "solution.svg").read_text().startswith("<?xml")
    _, out, _ = run(capsys, "solve", str(tmp_path / "mdp.npz"), "--gamma", "0.5", "--json")
    assert json.loads(out)["gamma"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["chess"], "problem 'chess' is unknown"),
        (["inventory", "--gamma", "high"], "could not convert string to float: 'high'"),
        (["inventory", "--speed", "3"], "--speed"),
        ([], "see scal solve --help"),
        (["inventory", "--gamma", "1"], "gamma is 1; choose"),
        (["inventory", "--gamma", "-0.5"], "gamma is -0.5; choose"),
        (["inventory", "--method", "magic"], "method is 'magic'; use one of"),
        (["inventory", "--tolerance", "0"], "tolerance is 0.0; use a positive"),
        (["random:5,2"], "is not of the form random:"),
        (["random:5,2,9,0"], "successors is 9 with 5 states"),
        (["nowhere.npz"], "file nowhere.npz does not exist"),
        (["CartPole-v1"], "has no transition table"),
        (["inventory", "--plot", "figure.bmp"], "is of no known kind"),
        (["inventory", "--out", ""], "is of no known kind"),
        (["no_module:Foo-v0"], "problem 'no_module:Foo-v0' is unknown"),
        ([":::"], "problem ':::' is unknown"),
        (["random:3000000000,1,1,0"], "states is 3000000000; use fewer"),
        (["inventory", "--out", "missing/folder/x.npz"], "does not exist; create it"),
        (["inventory", "--out", "/proc/x.npz"], "folder /proc cannot be written into"),
        (["HalfCheetah-v5"], "has no transition table"),
        (["mine.npz", "--out", "./mine.npz"], "file ./mine.npz holds the problem itself"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(capsys, arguments, sentence):
    code, out, err = run(capsys, "solve", *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("scal: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_bad_option_of_the_learner(capsys):
    code, _, err = run(capsys, "train", "CartPole-v1", "--mu", "-1")
    assert (code, err) == (2, "scal: mu is -1.0; use a positive number\n")
    code, _, err = run(capsys, "train", "CartPole-v1", "--preset", "best")
    assert (code, err) == (2, "scal: preset is 'best'; use one of default, replayed, paper\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "CartPole-v1", "--speed", "3"], "see scal train --help"),
        (["train", "CartPole-v1", "--steps", "-5"], "steps is -5; use a whole number"),
        (["train", "CartPole-v1", "--preset", "x", "--out", "."], "preset is 'x'; use one of"),
        (["train", "CartPole-v1", "--out", "file"], "folder file is a file; name another"),
        (["train", "CartPole-v1", "--out", "/proc/x"], "folder /proc/x cannot be written into"),
        (["resume", "nowhere"], "there is no folder nowhere; name the one that was saved to"),
        (["eval", "."], "folder . holds no checkpoint; name one that scal train or save"),
        (["eval", "cut"], "folder cut holds no checkpoint; name one that scal train or save"),
        (["report", "nowhere.json"], "there is no file nowhere.json"),
        (["report", "cut"], "run scal bench SUITE --out cut first"),
        (["report", "file", "--figures", "/proc/x"], "folder /proc/x cannot be written into"),
        (
            ["theory", "lemmas", "--out", "file"],
            "folder file is a file or lies in one; name",
        ),
        (["theory", "lemmas", "--out", "file/x"], "folder file/x is a file or lies in one"),
    ],
)
def test_bad_input_of_other_verbs(capsys, monkeypatch, tmp_path, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text("{}")
    code, _, err = run(capsys, *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert sentence in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut", "file"]


def test_help_shows_the_defaults_of_the_environment_that_is_named(capsys):
    """Eight copies of Pendulum are stepped together, one of CartPole."""

    def told(*words):
        with pytest.raises(SystemExit) as end:
            main(["train", *words])
        assert not end.value.code
        text = " ".join(capsys.readouterr().out.replace("│", " ").split())
        return text.split("--environments INT")[1].split("default:")[1].split(")")[0].strip()

    assert told("CartPole-v1", "--help") == "1"
    assert told("--steps", "1000", "Pendulum-v1", "-h") == "8"
    assert told("--help") == "1"


def test_whoever_has_seen_enough_is_no_error():
    script = f"{sys.executable} -m scal.cli train --help | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_version(capsys):
    assert run(capsys, "--version") == (0, scal.__version__ + "\n", "")


def test_unreachable_tolerance_is_a_failure(capsys):
    code, out, _ = run(capsys, "solve", "inventory", "--tolerance", "1e-13")
    assert "not within 1e-13" in out
    code, out, err = run(capsys, "solve", "inventory", "--tolerance", "1e-13", "--json")
    assert code == 1
    assert json.loads(out)["gap"] > 1e-13
    assert "is above the tolerance" in err


def test_doctor(capsys):
    code, out, _ = run(capsys, "doctor", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["packages"]["scal-rl"] == scal.__version__
    assert report["devices"]
    assert set(report["checks"]) == set(scal.mdp.METHODS)
    assert all(report["checks"].values())
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert out.count("proved optimal") == len(scal.mdp.METHODS)


def test_installed_command():
    command = Path(sys.executable).with_name("scal")
    result = subprocess.run([command, "solve", "nope"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
