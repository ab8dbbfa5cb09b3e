"""Which code a result comes from."""

import subprocess

import pytest

from scal.run import source
from scal.run.source import Source, source_of


def git(folder, *words):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def package(tmp_path):
    """A package that is committed."""
    home = tmp_path / "src" / "package"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("one = 1\n")
    (tmp_path / ".gitignore").write_text("site-packages\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return home


def test_a_commit_and_whether_the_code_is_as_in_it(package, tmp_path):
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    assert source_of(package) == Source(commit, True)
    (tmp_path / "result.json").write_text("{}")
    assert source_of(package) == Source(commit, True)
    script = tmp_path / "script.py"
    script.write_text("")
    assert source_of(package) == Source(commit, False)
    script.unlink()
    (package / "__init__.py").write_text("one = 2\n")
    assert source_of(package) == Source(commit, False)


def test_what_has_no_history_has_no_commit(package, tmp_path, monkeypatch):
    """Though another repository may lie around it, or git may be missing."""
    installed = tmp_path / "site-packages" / "package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert source_of(installed) == Source(None, None)
    monkeypatch.setenv("PATH", "")
    assert source_of(package) == Source(None, None)


def test_the_fingerprint_is_that_of_the_files(package, monkeypatch):
    monkeypatch.setattr(source, "PACKAGE", package)
    fingerprint = source.fingerprint.__wrapped__
    first = fingerprint()
    assert fingerprint() == first
    (package / "__init__.py").write_text("one = 2\n")
    assert fingerprint() != first
