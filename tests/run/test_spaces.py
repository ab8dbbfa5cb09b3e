"""Environments that need MuJoCo."""

import re
import subprocess
import sys

import pytest

import scal
from scal.cli import main
from scal.run import spaces


def test_mujoco_is_silent(tmp_path):
    """HalfCheetah's deprecated attribute is not the user's to mend."""
    code = "import scal; scal.SCAL('HalfCheetah-v5')"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert (run.stdout, run.stderr) == ("", "")
    assert not list(tmp_path.iterdir())


def test_other_warnings_of_mujoco_are_passed_on(capsys):
    import mujoco

    with spaces._without_settotalmass():
        warn = mujoco.get_mju_user_warning()
        warn("compiler attribute 'settotalmass' is deprecated")
        warn("unstable simulation")
    assert capsys.readouterr().err == "WARNING: unstable simulation\n"
    assert mujoco.get_mju_user_warning() is None


def test_missing_mujoco_is_one_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    sentence = (
        "environment 'HalfCheetah-v5' needs a package that is missing: "
        'MuJoCo is not installed, run `pip install "gymnasium[mujoco]"`'
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        scal.SCAL("HalfCheetah-v5")
    out = tmp_path / "run"
    assert main(["train", "HalfCheetah-v5", "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"scal: {sentence}\n"
    assert not out.exists()
