"""Who stands where at the end: what a terminal, a page and a document all say."""

from collections.abc import Iterable
from typing import NamedTuple

from scal.bench.series import Series
from scal.bench.statistics import interval, iqm

UNKNOWN = "–"


class Standing(NamedTuple):
    """A line of a table; of one seed there is no spread."""

    who: str
    seeds: str
    mean: str
    worst: str
    middle: str
    interval: str
    gap: str
    """Exact relative loss, mean and worst, where the MDP is known."""
    best: bool

    @property
    def words(self) -> list[str]:
        """In the order of `HEADS`."""
        return [self.who, self.seeds, self.mean, self.worst, self.middle, self.interval, self.gap]


HEADS = ("who", "seeds", "mean ± std", "worst", "IQM", "95 %", "exact gap, worst")


def standings(series: Iterable[Series]) -> list[Standing]:
    """Of series in one environment, best first; those that are level are all the best."""
    ordered = sorted(series, key=lambda one: -float(iqm(one.last)))
    return [_standing(one, iqm(one.last) == iqm(ordered[0].last)) for one in ordered]


def _standing(one: Series, best: bool) -> Standing:
    scores, several = one.last, len(one.last) > 1
    low, high = interval([scores])
    gaps = None if one.gaps is None else one.gaps[:, -1]
    return Standing(
        who=one.who,
        seeds=str(len(scores)),
        mean=f"{scores.mean():,.1f} ± {scores.std():,.1f}" if several else f"{scores.mean():,.1f}",
        worst=f"{scores.min():,.1f}",
        middle=f"{float(iqm(scores)):,.1f}",
        interval=f"{low:,.1f} to {high:,.1f}" if several else UNKNOWN,
        gap="" if gaps is None else f"{gaps.mean():.2%}, {gaps.max():.2%}",
        best=bool(best),
    )
