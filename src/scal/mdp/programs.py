"""The two linear programs of an MDP (paper, section 2.1), and HiGHS to solve them.

    (P)  min  Σ ρ(s) V(s)           s.t.  V(s) − γ Σ P(s'|s, a) V(s') ≥ r(s, a)      for all s, a
    (D)  max  Σ r(s, a) y(s, a)     s.t.  Σ_a y(s', a) − γ Σ P(s'|s, a) y(s, a) = ρ(s')   for all s'
                                          y ≥ 0,  y = w·x

One is the other's dual, so one solution carries both: V and the row duals y. A vertex of (D) is a
deterministic policy, and its values are computed anew from all of P, because HiGHS works to a
tolerance and leaves out the smallest coefficients.
"""

from typing import Any, NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from scal.mdp import linear
from scal.mdp.dynamic import Iteration, Outcome
from scal.mdp.model import FiniteMDP
from scal.mdp.types import Array


class LinearProgram(NamedTuple):
    """min or max costᵀz subject to row_lower ≤ A z ≤ row_upper and z ≥ column_lower."""

    sense: int
    """+1 to minimise, −1 to maximise."""
    cost: Array
    A: sp.csr_array
    row_lower: Array
    row_upper: Array
    column_lower: Array


def bellman_matrix(mdp: FiniteMDP) -> sp.csr_array:
    """E − γP over feasible pairs, where E repeats V(s) for every action of s; shape (L, S)."""
    pairs = np.flatnonzero(mdp.feasible)
    states = pairs // mdp.n_actions
    E = sp.csr_array(
        (np.ones(len(pairs)), states, np.arange(len(pairs) + 1)), shape=(len(pairs), mdp.n_states)
    )
    return sp.csr_array(E - mdp.gamma * mdp.P[pairs])


def primal(mdp: FiniteMDP) -> LinearProgram:
    """Program (P), with V free."""
    A, r = bellman_matrix(mdp), mdp.R[mdp.feasible]
    free = np.full(mdp.n_states, -np.inf)
    return LinearProgram(+1, relevance(mdp), A, r, np.full(len(r), np.inf), free)


def dual(mdp: FiniteMDP) -> LinearProgram:
    """Program (D) in y = w·x, one column per feasible pair."""
    A, r = bellman_matrix(mdp), mdp.R[mdp.feasible]
    rho = relevance(mdp)
    return LinearProgram(-1, r, sp.csr_array(A.T), rho, rho, np.zeros(len(r)))


def relevance(mdp: FiniteMDP) -> Array:
    """The objective ρ of (P): ρ₀, mixed with the uniform one if ρ₀ all but leaves states out.

    V* solves (P) for every positive ρ; where ρ is zero, (P) would leave V undetermined.
    """
    if mdp.rho0.min() > 1e-3 / mdp.n_states:
        return mdp.rho0
    return 0.9 * mdp.rho0 + 0.1 / mdp.n_states


def solve_program(mdp: FiniteMDP, tolerance: float, max_iterations: int = 1_000_000) -> Outcome:
    """Solve (P) with HiGHS, read the policy off the duals y, and evaluate it exactly."""
    scale = max(mdp.largest_reward, 1e-300)
    program = primal(mdp)
    program = program._replace(row_lower=program.row_lower / scale)
    try:
        solver = run_highs(program, "ipm", max_iterations=max_iterations)
    except RuntimeError:
        solver = run_highs(program, "simplex", max_iterations=max_iterations, presolve="off")
    solution, info = solver.getSolution(), solver.getInfo()
    y = np.full(mdp.R.shape, -1.0)
    y[mdp.feasible] = np.abs(solution.row_dual)
    policy = y.argmax(axis=1)
    V = linear.values(*mdp.under(policy), mdp.gamma)
    change = mdp.greedy(V)[1] - V
    line = Iteration(
        objective=scale * float(info.objective_function_value),
        primal_residual=scale * float(info.max_primal_infeasibility),
        dual_residual=float(info.max_dual_infeasibility),
        bound=float(np.abs(change).max()) / (1.0 - mdp.gamma),
    )
    steps = info.ipm_iteration_count + info.crossover_iteration_count + info.simplex_iteration_count
    return Outcome(V, policy, [line], iterations=int(steps))


def run_highs(
    program: LinearProgram,
    solver: str = "ipm",
    time_limit: float = np.inf,
    max_iterations: int = 1_000_000,
    presolve: str = "choose",
) -> Any:
    """A HiGHS instance that has run on the program; raises RuntimeError if it found no optimum."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {
        "output_flag": False,
        "solver": solver,
        "presolve": presolve,
        "time_limit": time_limit,
        "small_matrix_value": 1e-12,  # smallest that HiGHS takes; its default would drop 1e-9
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "ipm_iteration_limit": max_iterations,
        "simplex_iteration_limit": max_iterations,
    }
    for option, value in options.items():
        highs.setOptionValue(option, value)
    rows, columns = program.A.shape
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows, columns
    lp.sense_ = highspy.ObjSense.kMinimize if program.sense > 0 else highspy.ObjSense.kMaximize
    lp.col_cost_ = program.cost
    lp.col_lower_, lp.col_upper_ = program.column_lower, np.full(columns, np.inf)
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.A.indptr
    lp.a_matrix_.index_ = program.A.indices
    lp.a_matrix_.value_ = program.A.data
    highs.passModel(lp)
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(
            f"HiGHS stopped with '{highs.modelStatusToString(status)}'; use another method"
        )
    return highs
