"""Solutions for people: a table, a policy in words, a picture."""

from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from scal.mdp import Solution
from scal.problems import Problem

PLOT_KINDS = {".png", ".svg", ".pdf"}


def print_solution(console: Console, problem: Problem, solution: Solution, seconds: float) -> None:
    """The bounds, what they cost, and the policy."""
    mdp, proof = problem.mdp, solution.certificate
    table = Table(title=f"{problem.name}, solved by {solution.method}", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("size", f"{mdp.n_states:,} states × {mdp.n_actions:,} actions, γ = {mdp.gamma:g}")
    middle = 0.5 * (proof.lower + proof.upper)
    table.add_row("optimum", f"{middle:.9g} ± {0.5 * proof.gap:.1e}, proven")
    table.add_row("gap", f"{proof.gap:.2e}, of which rounding {proof.margin:.1e}")
    table.add_row("value error", f"{proof.value_error:.2e} in every {problem.state}, at most")
    table.add_row(f"value at {problem.state} 0", f"{solution.V[0]:.6g}")
    table.add_row("primal violation", f"{proof.primal_violation:.1e}")
    table.add_row("dual flow residual", f"{proof.flow_residual:.1e}")
    table.add_row("complementarity", f"{proof.complementarity:.1e}")
    table.add_row("iterations, time", f"{solution.iterations:,}, {seconds:.3f} s")
    table.add_row("policy", "\n".join(policy_in_words(solution.policy, problem)))
    ties = solution.ties
    some = ", ".join(str(s) for s in ties[:8]) + (", …" if len(ties) > 8 else "")
    unique = f"none: {problem.action} is unique in every {problem.state}"
    table.add_row("ties", f"in {len(ties):,}: {problem.state} {some}" if len(ties) else unique)
    console.print(table)


def policy_in_words(policy: NDArray[np.int64], problem: Problem, longest: int = 12) -> list[str]:
    """One line per run of states with the same action, a few of them.

    >>> from scal.mdp import FiniteMDP
    >>> mdp = FiniteMDP.from_dense([[[1.0]]], [[0.0]], gamma=0.0)
    >>> policy_in_words(np.array([7, 0, 0]), Problem("inventory", mdp, "stock", "order"))
    ['stock 0: order 7', 'stock 1–2: order 0']
    """
    lines, start = [], 0
    for action, group in groupby(policy.tolist()):
        end = start + len(list(group)) - 1
        where = f"{start}" if start == end else f"{start}–{end}"
        lines.append(f"{problem.state} {where}: {problem.action} {action}")
        start = end + 1
        if len(lines) > longest:
            break
    if len(lines) > longest:
        lines[-1] = "… (--json and --out give all of it)"
    return lines


def plot_solution(path: str, problem: Problem, solution: Solution) -> None:
    """Draw V and the policy over the states, into a file of one of `PLOT_KINDS`."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "scal"  # the same figure is the same file
    import matplotlib.pyplot as plt

    target = Path(path)
    states = np.arange(problem.mdp.n_states)
    figure, (values, actions) = plt.subplots(
        2, 1, sharex=True, figsize=(7, 4.6), height_ratios=(2, 1), layout="constrained"
    )
    values.plot(states, solution.V, color="#1f5fa8", linewidth=2)
    values.set_ylabel("optimal value V*")
    values.grid(alpha=0.3)
    proof = solution.certificate
    values.set_title(
        f"{problem.name}, γ = {problem.mdp.gamma:g}: optimum within {proof.gap:.1e}, certified",
        fontsize=11,
    )
    actions.plot(states, solution.policy, ".", color="#c4452f", markersize=4)
    actions.set_ylabel(f"optimal {problem.action}")
    actions.set_xlabel(problem.state)
    for axis in (actions.xaxis, actions.yaxis):
        axis.get_major_locator().set_params(integer=True)
    actions.grid(alpha=0.3)
    figure.savefig(target, dpi=150, metadata={"Date": None} if target.suffix == ".svg" else None)
    plt.close(figure)
