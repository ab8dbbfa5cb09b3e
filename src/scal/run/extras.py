"""Packages that only some users need."""

from importlib import import_module
from typing import Any


def require(module: str, extra: str) -> Any:
    """The module, or one sentence on how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ValueError(
            f'package {module} is missing; install it with pip install ".[{extra}]" in a clone of '
            "scal"
        ) from None
