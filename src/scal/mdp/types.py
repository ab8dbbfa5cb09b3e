"""Names for the arrays that pass between the files of this package."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Real numbers: V (S,), or h, x, w, R (S, A)."""

Actions = NDArray[np.int64]
"""A deterministic policy: one action per state."""

Policy = NDArray[Any]
"""A policy of either kind: actions (S,) or probabilities (S, A)."""

Pairs = tuple[NDArray[np.int64], ...]
"""States and actions of some pairs (s, a), as `np.nonzero` gives them."""
