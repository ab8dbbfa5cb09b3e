"""`scal doctor`: versions, devices, and a self-check that solves something known."""

import platform
from importlib import metadata
from typing import Any

from scal.envs import Inventory
from scal.mdp import METHODS, solve

PACKAGES = ("scal-rl", "numpy", "scipy", "highspy", "jax", "jaxlib", "gymnasium")


def examine() -> dict[str, Any]:
    """Everything that a bug report should say."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "packages": {name: _version(name) for name in PACKAGES},
        "devices": _devices(),
        "checks": self_check(),
    }


def self_check() -> dict[str, bool]:
    """Whether every method finds and proves the optimum of the inventory problem."""
    mdp = Inventory().mdp(gamma=0.99)
    solutions = {method: solve(mdp, method) for method in METHODS}
    reference = solutions["pi"].V[0]
    return {
        method: bool(solution.certificate.accepts() and abs(solution.V[0] - reference) < 1e-6)
        for method, solution in solutions.items()
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _devices() -> list[str]:
    import jax

    return [f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices()]
