"""Which code a result comes from: the commit that scal is imported from, and what it stands on."""

import hashlib
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import scal

PACKAGE = Path(scal.__file__).parent


class Source(NamedTuple):
    """A state of the code."""

    commit: str | None
    """None where scal was installed without its history; then its version has to do."""
    clean: bool | None
    """Whether all Python code is as in that commit."""


@cache
def source() -> Source:
    """Of the code that this process runs, as it was when first asked: ask before a measurement."""
    return source_of(PACKAGE)


def source_of(package: Path) -> Source:
    """Of a package in a folder."""
    commit = _git(package, "rev-parse", "HEAD")
    if commit is None or _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return Source(None, None)
    return Source(commit, _git(package, "status", "--porcelain", "--", ":(top)*.py") == "")


@cache
def fingerprint() -> str:
    """sha256 of scal's own files: equal if and only if the code is."""
    total = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        total.update(str(path.relative_to(PACKAGE)).encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def versions(packages: Iterable[str]) -> dict[str, str | None]:
    """Of these packages; None for those that are not installed."""
    return {name: _version(name) for name in packages}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
