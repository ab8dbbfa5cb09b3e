"""Where a figure comes from: commit, versions, machine."""

import os
import platform
from typing import Any

from scal.run.source import source, versions

PACKAGES = (
    "scal-rl", "numpy", "scipy", "highspy", "jax", "gymnasium", "quantecon", "mdpsolver",
    "mujoco", "torch", "stable-baselines3", "sbx-rl", "ale-py", "opencv-python-headless",
)  # fmt: skip


def provenance() -> dict[str, Any]:
    """The facts that a result file opens with."""
    return {
        **source()._asdict(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "versions": versions(PACKAGES),
    }
