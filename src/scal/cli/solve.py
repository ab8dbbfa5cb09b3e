"""`scal solve`."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from scal import present
from scal.cli.targets import check_target
from scal.mdp import solve
from scal.problems import find_problem


@dataclass(frozen=True)
class Solve:
    """Solve a finite MDP exactly and prove it."""

    problem: tyro.conf.Positional[str]
    """inventory, random:STATES,ACTIONS,SUCCESSORS,SEED, a toy-text id, or an .npz file."""
    method: str = "auto"
    """auto, alm (the paper's Algorithm 1), lp (HiGHS), vi, pi or mpi."""
    gamma: float | None = None
    """Discount factor; 0.99 unless the file says otherwise."""
    tolerance: float = 1e-6
    """Largest gap between the proven bounds."""
    json: bool = False
    """Print one JSON object instead of a table."""
    out: str | None = None
    """Write V, h, x, policy and certificate to this .npz file."""
    plot: str | None = None
    """Draw value and policy into this .png, .svg or .pdf file."""

    def run(self) -> int:
        """Solve, show, and say whether the tolerance was reached."""
        for path, kinds in ((self.out, {".npz"}), (self.plot, present.PLOT_KINDS)):
            if path is not None:
                check_target(path, kinds)
        if self.out is not None and Path(self.out).resolve() == Path(self.problem).resolve():
            raise ValueError(f"file {self.out} holds the problem itself; write to another")
        problem = find_problem(self.problem, self.gamma)
        start = time.perf_counter()
        solution = solve(problem.mdp, self.method, self.tolerance)
        seconds = time.perf_counter() - start
        proof = solution.certificate
        if self.out:
            solution.save(self.out)
        if self.plot:
            present.plot_solution(self.plot, problem, solution)
        if self.json:
            print(
                json.dumps(
                    {
                        "states": problem.mdp.n_states,
                        "actions": problem.mdp.n_actions,
                        "gamma": problem.mdp.gamma,
                        "method": solution.method,
                        "objective": solution.objective,
                        "upper": proof.upper,
                        "lower": proof.lower,
                        "gap": proof.gap,
                        "tolerance": self.tolerance,
                        "proven": solution.proven,
                        "iterations": solution.iterations,
                        "seconds": seconds,
                        "policy": solution.policy.tolist(),
                    }
                )
            )
        else:
            console = Console()
            present.print_solution(console, problem, solution, seconds)
            for path in filter(None, (self.out, self.plot)):
                console.print(f"wrote {path}")
        if not solution.proven:
            print(
                f"scal: the proven gap {proof.gap:.2e} is above the tolerance {self.tolerance:g}; "
                f"rounding alone accounts for {proof.margin:.1e}",
                file=sys.stderr,
            )
            return 1
        return 0
