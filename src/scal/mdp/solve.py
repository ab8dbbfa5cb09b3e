"""One call for every exact method: V, h, x, a policy, and the certificate that they are optimal."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scal.mdp import dynamic, files
from scal.mdp.alm import augmented_lagrangian_method
from scal.mdp.certificate import Certificate, judge
from scal.mdp.dynamic import Iteration, Outcome
from scal.mdp.model import FiniteMDP
from scal.mdp.policies import check_mdp, check_weights
from scal.mdp.programs import solve_program
from scal.mdp.types import Actions, Array

METHODS: dict[str, Callable[..., Outcome]] = {
    "auto": dynamic.adaptive_policy_iteration,
    "alm": augmented_lagrangian_method,
    "lp": solve_program,
    "vi": dynamic.value_iteration,
    "pi": dynamic.policy_iteration,
    "mpi": dynamic.modified_policy_iteration,
}


@dataclass(frozen=True, eq=False)
class Solution:
    """An MDP solved: the three unknowns of the paper, a policy, and the proof."""

    mdp: FiniteMDP
    method: str
    tolerance: float
    V: Array
    """Values (S,)."""
    h: Array
    """Slacks (S, A): what choosing a in s would lose; +inf where s has no action a."""
    x: Array
    """Multipliers (S, A): discounted visits of (s, a), divided by w(s, a)."""
    policy: Actions
    """One action per state."""
    certificate: Certificate
    iterations: int
    history: list[Iteration]

    def __repr__(self) -> str:
        proof = f"gap {self.certificate.gap:.1e}, {'' if self.proven else 'not '}proven"
        return f"Solution({self.method}, {self.mdp}, objective {self.objective:.6g}, {proof})"

    @property
    def objective(self) -> float:
        """ρ₀ᵀV_π, what the policy earns: the optimum, to within the gap of the certificate."""
        proof = self.certificate
        return min(max(proof.dual_value, proof.lower), proof.upper)

    @property
    def proven(self) -> bool:
        """Whether the certificate reaches the tolerance; rounding can be in the way."""
        return self.certificate.gap <= self.tolerance

    @cached_property
    def candidates(self) -> NDArray[np.bool_]:
        """Actions (S, A) that the certificate does not prove worse than the best of their state."""
        resolution = (1.0 + self.mdp.gamma) * self.certificate.value_error
        candidates: NDArray[np.bool_] = self.h <= resolution
        candidates[np.arange(len(self.policy)), self.policy] = True
        return candidates

    @property
    def ties(self) -> Actions:
        """States with more than one candidate, in order: there the optimum need not be unique."""
        return np.flatnonzero(self.candidates.sum(axis=1) > 1)

    def save(self, path: str | PathLike[str]) -> None:
        """Write V, h, x, the policy and the certificate to an .npz file."""
        numbers = self.certificate.as_dict()
        files.save_arrays(path, V=self.V, h=self.h, x=self.x, policy=self.policy, **numbers)


def solve(
    mdp: FiniteMDP,
    method: str = "auto",
    tolerance: float = 1e-6,
    *,
    w: ArrayLike | None = None,
    **options: Any,
) -> Solution:
    """Solve to a certified gap of `tolerance`, as far as rounding lets it.

    Methods: `auto` (policy iteration, adaptively evaluated), `alm` (the paper's Algorithm 1), `lp`
    (HiGHS), `vi`, `pi`, `mpi`. `w` weighs the multipliers x. Options go to the method:
    `max_iterations` to all, `mu` to `alm`, `sweeps` to `mpi`.

    >>> mdp = FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, 2.0]], gamma=0.5)
    >>> solution = solve(mdp)
    >>> solution.V, solution.policy, solution.certificate.accepts()
    (array([4.]), array([1]), True)
    """
    check_mdp(mdp)
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method is {method!r}; use one of {', '.join(METHODS)}")
    if not (isinstance(tolerance, int | float | np.number) and tolerance > 0.0):
        raise ValueError(f"tolerance is {tolerance!r}; use a positive number such as 1e-6")
    _check_options(method, options)
    weights = check_weights(mdp, w)
    if method == "alm":
        options["w"] = w
    outcome = METHODS[method](mdp, tolerance, **options)
    judged = judge(
        mdp,
        V=outcome.V,
        policy=outcome.policy,
        h=None,
        x=None,
        w=weights,
        precision=0.01 * tolerance,
    )
    return Solution(
        mdp=mdp,
        method=method,
        tolerance=tolerance,
        V=judged.V,
        h=judged.h,
        x=judged.x,
        policy=outcome.policy,
        certificate=judged.certificate,
        iterations=outcome.iterations or len(outcome.history),
        history=outcome.history,
    )


def _check_options(method: str, options: dict[str, Any]) -> None:
    """Options exist, and are positive: whole numbers, but for `mu`."""
    known = set(signature(METHODS[method]).parameters) - {"mdp", "tolerance", "w", "start"}
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"option {name!r} is unknown to {method}; use {', '.join(known)}")
        kinds = int | float | np.number if name == "mu" else int | np.integer
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < np.inf:
            wanted = "number" if name == "mu" else "whole number"
            raise ValueError(f"{name} is {value!r}; use a positive {wanted}")
