"""Where a figure comes from: commit, versions, machine."""

import os
import platform
import subprocess
from importlib import metadata
from typing import Any

PACKAGES = (
    "scal-rl", "numpy", "scipy", "highspy", "jax", "gymnasium", "quantecon", "mdpsolver",
    "mujoco", "torch", "stable-baselines3", "sbx-rl", "ale-py", "opencv-python-headless",
)  # fmt: skip


def provenance() -> dict[str, Any]:
    """The facts that a result file opens with."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "clean": _git("status", "--porcelain", "--", "src", "benchmarks/*.py") == "",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
