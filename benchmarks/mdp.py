"""Exact solvers side by side, each pair in one run: a table of ratios and a JSON file.

    auto   against QuantEcon's modified policy iteration (and mdpsolver's) to the same accuracy
    alm    against HiGHS on the same linear program
    auto   on a million states

Times are medians of interleaved repeats; nobody is charged for building a model, and everybody
starts cold (mdpsolver, which starts from its last solution, gets a new model for every repeat).
"""

import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import tyro
from rich.console import Console
from rich.table import Table

try:
    import mdpsolver
except ImportError:  # it has no wheels for some systems
    mdpsolver = None

import scal
from benchmarks.provenance import provenance
from scal.mdp import programs

TOLERANCE = 1e-6
ACTIONS = SUCCESSORS = 10


Contender = Callable[[], Callable[[], Any]]
"""Makes itself ready, and returns what is to be timed."""


def interleaved(contenders: dict[str, Contender], repeats: int) -> dict[str, float]:
    """Median seconds of each contender, run in turns after one run that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, ready in contenders.items():
            run = ready()
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def against_quantecon(name: str, mdp: scal.FiniteMDP, repeats: int) -> dict[str, Any]:
    """`auto` with its certificate, and QuantEcon's MPI, both to 1e-6."""
    from quantecon.markov import DiscreteDP

    states, gamma = mdp.n_states, mdp.gamma
    s, a = np.divmod(np.arange(mdp.R.size), mdp.n_actions)
    rival = DiscreteDP(mdp.R.ravel(), mdp.P, gamma, s, a)
    contenders: dict[str, Contender] = {
        "auto": lambda: lambda: scal.solve(mdp, tolerance=TOLERANCE),
        "quantecon": lambda: lambda: rival.solve(method="mpi", epsilon=TOLERANCE),
    }
    if mdpsolver is not None and name == "random" and states <= 10_000:
        contenders["mdpsolver"] = lambda: mdpsolver_ready(mdp)
    seconds = interleaved(contenders, repeats)
    ours, theirs = contenders["auto"]()(), contenders["quantecon"]()()
    return {
        "problem": name,
        "states": states,
        "gamma": gamma,
        "seconds": seconds,
        "ratio": seconds["quantecon"] / seconds["auto"],
        "gap": ours.certificate.gap,
        "quantecon_gap": scal.certify(mdp, V=theirs.v, policy=theirs.sigma).gap,
    }


def grid(n: int, gamma: float) -> scal.FiniteMDP:
    """Walk to a corner of an n × n board, one move in five random: a chain that mixes slowly."""
    place = np.arange(n * n).reshape(n, n)
    pad = np.pad(place, 1, mode="edge")
    ends = (pad[2:, 1:-1], pad[:-2, 1:-1], pad[1:-1, 2:], pad[1:-1, :-2])
    shape = (n * n, n * n)
    moves = [sp.csr_array((np.ones(n * n), (place.ravel(), to.ravel())), shape) for to in ends]
    anywhere = 0.05 * (moves[0] + moves[1] + moves[2] + moves[3])
    cost = -1.0 * (place.ravel() != n * n - 1)
    return scal.FiniteMDP.from_sparse([0.8 * move + anywhere for move in moves], cost, gamma)


def mdpsolver_ready(mdp: scal.FiniteMDP) -> Callable[[], Any]:
    """The same MDP in mdpsolver's nested lists."""
    shape = (mdp.n_states, mdp.n_actions, -1)
    model = mdpsolver.model()
    model.mdp(
        discount=mdp.gamma,
        rewards=mdp.R.tolist(),
        tranMatProbs=mdp.P.data.reshape(shape).tolist(),
        tranMatColumns=mdp.P.indices.reshape(shape).tolist(),
    )
    return lambda: model.solve(algorithm="mpi", tolerance=TOLERANCE)


def against_highs(states: int, limit: float, repeats: int) -> dict[str, Any]:
    """`alm` with its certificate, and HiGHS on (P): its default, and its interior point method."""
    mdp = scal.random_mdp(states, ACTIONS, SUCCESSORS, seed=0)
    program = programs.primal(mdp)
    start = time.perf_counter()
    solution = scal.solve(mdp, "alm", TOLERANCE)
    first = time.perf_counter() - start
    row: dict[str, Any] = {"states": states, "gap": solution.certificate.gap, "highs": {}}
    alm: Contender = lambda: lambda: scal.solve(mdp, "alm", TOLERANCE)  # noqa: E731
    row["seconds"] = interleaved({"alm": alm}, repeats)["alm"]
    row["seconds_first"] = first
    for solver in ("choose", "ipm"):
        start = time.perf_counter()
        try:
            highs = programs.run_highs(program, solver, limit)
            V = np.array(highs.getSolution().col_value)
            gap, finished = scal.certify(mdp, V=V).gap, True
        except RuntimeError:
            gap, finished = None, False
        seconds = time.perf_counter() - start
        row["highs"][solver] = {
            "finished": finished,
            "seconds": seconds,
            "ratio": seconds / row["seconds"],
            "gap": gap,
        }
    return row


def a_million(states: int, actions: int) -> dict[str, Any]:
    """`auto` on a large MDP in a process of its own, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_solve_large, (states, actions))


def peak_gib() -> float:
    """Peak resident memory of this process; ru_maxrss would count its parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def _solve_large(states: int, actions: int) -> dict[str, Any]:
    mdp = scal.random_mdp(states, actions, SUCCESSORS, seed=0)
    built = peak_gib()
    start = time.perf_counter()
    solution = scal.solve(mdp, tolerance=TOLERANCE)
    seconds = time.perf_counter() - start
    return {
        "states": states,
        "actions": actions,
        "seconds": seconds,
        "gap": solution.certificate.gap,
        "model_gib": (mdp.P.data.nbytes + mdp.P.indices.nbytes + mdp.P.indptr.nbytes) / 2**30,
        "peak_gib_after_building": built,
        "peak_gib": peak_gib(),
    }


def problems(small: bool) -> Iterator[tuple[str, scal.FiniteMDP]]:
    """What both sides are given, one at a time."""
    for states in (1_000,) if small else (1_000, 10_000, 200_000):
        for gamma in (0.99, 0.999):
            yield "random", scal.random_mdp(states, ACTIONS, SUCCESSORS, seed=0, gamma=gamma)
    yield "grid", grid(30 if small else 300, 0.999)


def show(report: dict[str, Any]) -> None:
    """The three tables."""
    console = Console()
    table = Table(
        "problem", "states", "γ", "auto", "QuantEcon", "mdpsolver", "times as fast", "gap"
    )
    for row in report["quantecon"]:
        times = {name: f"{seconds:.4f} s" for name, seconds in row["seconds"].items()}
        table.add_row(
            row["problem"],
            f"{row['states']:,}",
            f"{row['gamma']:g}",
            times["auto"],
            times["quantecon"],
            times.get("mdpsolver", "–"),
            f"{row['ratio']:.2f}×",
            f"{row['gap']:.1e}",
        )
    console.print(table)
    table = Table("states", "alm", "gap", "HiGHS", "time", "times as fast", "gap of HiGHS")
    for row in report["highs"]:
        for solver, rival in row["highs"].items():
            table.add_row(
                f"{row['states']:,}",
                f"{row['seconds']:.4f} s",
                f"{row['gap']:.1e}",
                {"choose": "default", "ipm": "interior point"}[solver],
                f"{rival['seconds']:.2f} s" if rival["finished"] else "gave up at the limit",
                f"{rival['ratio']:.0f}×" if rival["finished"] else f"over {rival['ratio']:.0f}×",
                f"{rival['gap']:.1e}" if rival["finished"] else "–",
            )
    console.print(table)
    large = report["large"]
    console.print(
        f"{large['states']:,} states × {large['actions']} actions: {large['seconds']:.1f} s, "
        f"gap {large['gap']:.1e}, peak memory {large['peak_gib']:.2f} GiB "
        f"(the model alone {large['model_gib']:.2f} GiB)"
    )


def readme_table(report: dict[str, Any]) -> str:
    """The figures as the README shows them."""
    lines = [
        "| problem | scal | rival | times as fast |",
        "|---|---|---|---|",
    ]
    for row in report["quantecon"]:
        lines.append(
            f"| {row['problem']}, {row['states']:,} states, γ = {row['gamma']:g} "
            f"| `auto` {row['seconds']['auto']:.3g} s "
            f"| QuantEcon MPI {row['seconds']['quantecon']:.3g} s | {row['ratio']:.2f}× |"
        )
    for row in report["highs"]:
        for solver, rival in row["highs"].items():
            name = {"choose": "HiGHS default", "ipm": "HiGHS interior point"}[solver]
            seconds = f"{rival['seconds']:.3g} s" if rival["finished"] else "no answer"
            over = "" if rival["finished"] else "over "
            lines.append(
                f"| {row['states']:,} states, as an LP | `alm` {row['seconds']:.3g} s "
                f"| {name} {seconds} | {over}{rival['ratio']:,.0f}× |"
            )
    large = report["large"]
    lines.append(
        f"| {large['states']:,} states × {large['actions']} actions "
        f"| `auto` {large['seconds']:.2g} s, {large['peak_gib']:.2g} GiB at most | | |"
    )
    return "\n".join(lines)


def main(
    out: Path = Path("benchmarks/results/mdp.json"),
    repeats: int = 7,
    limit: float = 100.0,
    small: bool = False,
) -> None:
    """Measure, print, and write JSON.

    Args:
        out: where the JSON goes.
        repeats: runs of each contender that count.
        limit: seconds after which HiGHS is stopped.
        small: a quick run with small sizes, to see that everything works.
    """
    programs_of = (200,) if small else (1_000, 10_000)
    report = {
        **provenance(),
        "tolerance": TOLERANCE,
        "quantecon": [against_quantecon(name, mdp, repeats) for name, mdp in problems(small)],
        "highs": [against_highs(states, limit, repeats) for states in programs_of],
        "large": a_million(10_000 if small else 1_000_000, 4),
    }
    show(report)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    tyro.cli(main)
