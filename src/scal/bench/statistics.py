"""What several seeds say together: the interquartile mean, and how sure it is."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

RESAMPLES = 2_000


def iqm(scores: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
    """Mean of the middle half: less noisy than the median, and no outlier moves it.

    >>> float(iqm(np.array([0.0, 1.0, 3.0, 100.0])))
    2.0
    """
    return np.asarray(stats.trim_mean(scores, 0.25, axis=axis))


def interval(
    strata: Sequence[NDArray[np.float64]], level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap interval of the IQM, drawing seeds anew within each stratum (an environment)."""
    rng = np.random.default_rng(seed)
    drawn = [scores[rng.integers(len(scores), size=(RESAMPLES, len(scores)))] for scores in strata]
    low, high = np.quantile(iqm(np.concatenate(drawn, axis=1), axis=1), _tails(level))
    return float(low), float(high)


def _tails(level: float) -> tuple[float, float]:
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0
