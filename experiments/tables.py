"""The tables of docs/results.md, from experiments/results: `python -m experiments.tables`."""

from collections.abc import Sequence

from experiments.rerun import RESULTS
from scal.bench.panels import groups
from scal.bench.series import Series, gather, read, variance_ratio
from scal.bench.statistics import interval, iqm

SUITES = ("gradient", "multistep", "inventory", "discrete", "continuous")


def table(suite: str) -> str:
    """What a suite found, as Markdown."""
    series = gather(read([RESULTS / f"{suite}.json"]))
    return _gradients(series) if suite == "gradient" else _standings(series)


def _standings(series: Sequence[Series]) -> str:
    exact = any(one.gaps is not None for one in series)
    heads = ["environment", "steps", "who", "seeds", "mean ± std", "worst", "IQM, 95 %"]
    heads += ["exact gap, worst"] * exact
    rows = []
    for (env, steps), group in groups(series):
        for one in sorted(group, key=lambda one: -float(iqm(one.last))):
            low, high = interval([one.last])
            row = [env, f"{steps:,}", one.who, str(len(one.last))]
            row += [f"{one.last.mean():,.1f} ± {one.last.std():,.1f}", f"{one.last.min():,.1f}"]
            row += [f"{float(iqm(one.last)):,.1f} ({low:,.1f} to {high:,.1f})"]
            if exact and one.gaps is not None:
                row += [f"{one.gaps[:, -1].mean():.2%}, {one.gaps[:, -1].max():.2%}"]
            rows.append(row)
    return _markdown(heads, rows)


def _gradients(series: Sequence[Series]) -> str:
    rows = [
        [
            one.env,
            one.settings,
            str(len(one.last)),
            f"{variance_ratio(one):.2f}",
            f"{variance_ratio(one, '_given_sa'):.2f}" if one.random else "–",
        ]
        for one in series
    ]
    heads = ["environment", "preset", "seeds", "Var g₂ / Var g₁", "given s and a"]
    return _markdown(heads, rows)


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    for suite in SUITES:
        if (RESULTS / f"{suite}.json").exists():
            print(f"{suite}\n\n{table(suite)}\n")
