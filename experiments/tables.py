"""The tables of docs/results.md, from experiments/results: `python -m experiments.tables`."""

from collections.abc import Sequence

from experiments.rerun import RESULTS
from scal.bench.panels import groups
from scal.bench.series import Series, gather, read, told_ratio
from scal.bench.standings import HEADS, standings

SUITES = ("gradient", "multistep", "inventory", "discrete", "continuous", "ablation")


def table(suite: str) -> str:
    """What a suite found, as Markdown."""
    series = gather(read([RESULTS / f"{suite}.json"]))
    special = {"gradient": _gradients, "ablation": ablation}
    return special.get(suite, _standings)(series)


def _standings(series: Sequence[Series]) -> str:
    rows = [
        [env, f"{steps:,}", *one.words]
        for (env, steps), group in groups(series)
        for one in standings(group)
    ]
    shown = len(rows[0]) if any(row[-1] for row in rows) else len(rows[0]) - 1
    return _markdown(["environment", "steps", *HEADS][:shown], [row[:shown] for row in rows])


def _gradients(series: Sequence[Series]) -> str:
    rows = [
        [
            one.env,
            one.settings,
            str(len(one.last)),
            told_ratio(one),
            told_ratio(one, "_given_sa") if one.random else "–",
        ]
        for one in series
    ]
    heads = ["environment", "preset", "seeds", "Var g₂ / Var g₁", "given s and a"]
    return _markdown(heads, rows)


def ablation(series: Sequence[Series]) -> str:
    """What is undone against environments: mean, and the worst seed; exact gaps where known."""
    envs = list(dict.fromkeys(one.env for one in series))
    rows: dict[str, dict[str, str]] = {}
    for one in series:
        scores, shown, worst = one.last, "{:,.1f}", one.last.min()
        if one.gaps is not None:
            scores, shown, worst = one.gaps[:, -1], "{:.2%}", one.gaps[:, -1].max()
        undone = one.who.removeprefix("SCAL").partition("=")[0].strip() or "nothing"
        rows.setdefault(undone, {})[one.env] = (
            f"{shown.format(scores.mean())} ({shown.format(worst)})"
        )
    lines = [[undone, *(found.get(env, "–") for env in envs)] for undone, found in rows.items()]
    return _markdown(["undone", *envs], lines)


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    for suite in SUITES:
        if (RESULTS / f"{suite}.json").exists():
            print(f"{suite}\n\n{table(suite)}\n")
