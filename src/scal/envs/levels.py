"""Whole numbers as the levels they have reached, an input that networks can tell apart."""

from typing import Any

import numpy as np


def levels(number: Any, low: int, high: int, xp: Any = np) -> Any:
    """+1 for each of the levels low + 1 … high that a number has reached, −1 for the others.

    Near numbers look alike, and any two differ by at least one whole input; `xp` is the library of
    the arrays.

    >>> levels(2, 0, 4).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    return xp.where(xp.asarray(number)[..., None] > xp.arange(low, high), 1.0, -1.0)
