"""Solutions and learned policies for people: a table, a policy in words, a picture."""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from scal.mdp import Solution
from scal.problems import Problem
from scal.run.exact import Comparison

if TYPE_CHECKING:
    from scal.theory.report import Report as StudyReport

PLOT_KINDS = {".png", ".svg", ".pdf"}


def print_solution(console: Console, problem: Problem, solution: Solution, seconds: float) -> None:
    """The bounds, what they cost, and the policy."""
    mdp, proof = problem.mdp, solution.certificate
    table = Table(title=f"{problem.name}, solved by {solution.method}", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("size", f"{mdp.n_states:,} states × {mdp.n_actions:,} actions, γ = {mdp.gamma:g}")
    middle = 0.5 * (proof.lower + proof.upper)
    how_well = "proven" if solution.proven else f"not within {solution.tolerance:g}"
    table.add_row("optimum", f"{middle:.9g} ± {0.5 * proof.gap:.1e}, {how_well}")
    table.add_row("gap", f"{proof.gap:.2e}, of which rounding {proof.margin:.1e}")
    table.add_row("value error", f"{proof.value_error:.2e} in every {problem.state}, at most")
    table.add_row(f"value at {problem.state} 0", f"{solution.V[0]:.6g}")
    table.add_row("primal violation", f"{proof.primal_violation:.1e}")
    table.add_row("dual flow residual", f"{proof.flow_residual:.1e}")
    table.add_row("complementarity", f"{proof.complementarity:.1e}")
    table.add_row("iterations, time", f"{solution.iterations:,}, {seconds:.3f} s")
    table.add_row(
        "policy", "\n".join(policy_in_words(solution.policy, problem.state, problem.action))
    )
    ties = solution.ties
    some = ", ".join(str(s) for s in ties[:8]) + (", …" if len(ties) > 8 else "")
    unique = f"none: {problem.action} is unique in every {problem.state}"
    table.add_row("ties", f"in {len(ties):,}: {problem.state} {some}" if len(ties) else unique)
    console.print(table)


def print_comparison(console: Console, comparison: Comparison, seed: int) -> None:
    """A learned policy beside the optimal one, with what it loses."""
    title = f"policy of seed {seed} and exact optimum, γ = {comparison.gamma:g}"
    table = Table(title=title)
    for title in ("", "learned", "optimal"):
        table.add_column(title)
    best, (state, action) = comparison.optimum, comparison.words
    table.add_row(f"value at {state} 0", f"{comparison.values[0]:.4g}", f"{best.V[0]:.4g}")
    table.add_row("mean loss, relative", f"{comparison.relative_gap:.2%}", "0")
    policies = (comparison.policy, best.policy)
    table.add_row("policy", *("\n".join(policy_in_words(p, state, action)) for p in policies))
    console.print(table)


def print_slopes(console: Console, report: "StudyReport") -> None:
    """The slopes of a study, measured and predicted."""
    table = Table(title=f"{report.study}, seed {report.seed}, {report.seconds:.0f} s")
    for title in ("quantity", "over", "range", "measured", "predicted", ""):
        table.add_column(title, justify="right" if title in ("measured", "predicted") else "left")
    for slope in report.slopes:
        predicted = f"{'≤ ' if slope.kind == 'bound' else ''}{slope.predicted:g}"
        table.add_row(
            slope.quantity,
            slope.variable,
            f"{slope.low:.4g} … {slope.high:.4g}",
            f"{slope.measured:.2f}",
            predicted,
            "" if slope.holds else "missed",
        )
    console.print(table)


def policy_in_words(
    policy: NDArray[np.int64], state: str, action: str, longest: int = 12
) -> list[str]:
    """One line per run of states with the same action, a few of them.

    >>> policy_in_words(np.array([7, 0, 0]), "stock", "order")
    ['stock 0: order 7', 'stock 1–2: order 0']
    """
    lines, start = [], 0
    for chosen, group in groupby(policy.tolist()):
        end = start + len(list(group)) - 1
        where = f"{start}" if start == end else f"{start}–{end}"
        lines.append(f"{state} {where}: {action} {chosen}")
        start = end + 1
        if len(lines) > longest:
            break
    if len(lines) > longest:
        lines[-1] = "… (--json gives all of it)"
    return lines


def plot_solution(path: str, problem: Problem, solution: Solution) -> None:
    """Draw V and the policy over the states, into a file of one of `PLOT_KINDS`."""
    proof = solution.certificate
    _draw(
        path,
        f"{problem.name}, γ = {problem.mdp.gamma:g}: optimum within {proof.gap:.1e}, certified",
        (problem.state, "optimal value", f"optimal {problem.action}"),
        [("optimal", "#1f5fa8", solution.V, solution.policy)],
    )


def plot_comparison(path: str, comparison: Comparison, name: str) -> None:
    """Draw what was learned over the optimum, into a file of one of `PLOT_KINDS`."""
    best = comparison.optimum
    _draw(
        path,
        f"{name}, γ = {comparison.gamma:g}: mean loss {comparison.relative_gap:.1%}, exactly",
        (comparison.words[0], "value", comparison.words[1]),
        [
            ("optimal", "#1f5fa8", best.V, best.policy),
            ("learned", "#c4452f", comparison.values, comparison.policy),
        ],
    )


Curve = tuple[str, str, NDArray[np.float64], NDArray[np.int64]]
"""Name, colour, values, policy."""


def _draw(path: str, title: str, names: tuple[str, str, str], curves: list[Curve]) -> None:
    """Values above, actions below, over the states."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "scal"  # the same figure is the same file
    import matplotlib.pyplot as plt

    target, (state, value, action) = Path(path), names
    figure, (values, actions) = plt.subplots(
        2, 1, sharex=True, figsize=(7, 4.6), height_ratios=(2, 1), layout="constrained"
    )
    for number, (name, colour, V, policy) in enumerate(curves):
        states, thick = np.arange(len(V)), len(curves) - number
        values.plot(states, V, color=colour, linewidth=1.2 * thick, label=name)
        actions.plot(states, policy, ".", color=colour, markersize=4 * thick, label=name)
    values.set_ylabel(value)
    values.set_title(title, fontsize=11)
    if len(curves) > 1:
        values.legend(frameon=False)
    actions.set_ylabel(action)
    actions.set_xlabel(state)
    for axis in (actions.xaxis, actions.yaxis):
        axis.get_major_locator().set_params(integer=True)
    for axes in (values, actions):
        axes.grid(alpha=0.3)
    figure.savefig(target, dpi=150, metadata={"Date": None} if target.suffix == ".svg" else None)
    plt.close(figure)
