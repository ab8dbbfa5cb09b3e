"""A known, finite Markov decision process (S, A, P, r, ρ₀, γ): paper, section 2.

    P(s' | s, a)   one sparse matrix of shape (S·A, S), row s·A + a
    r(s, a)        an array of shape (S, A), −∞ where state s has no action a
    ρ₀(s)          the distribution of the initial state
    γ              the discount factor, 0 ≤ γ < 1

Nothing here makes P dense. Rows may miss one by rounding: certificates account for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from scal.mdp import files, storage, validate
from scal.mdp.kernels import RowBlocks
from scal.mdp.types import Actions, Array, Pairs, Policy


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """A finite MDP. The constructor takes the canonical storage; `from_*` take everything else.

    Parameters
    ----------
    P : sparse or dense array of shape (S·A, S), row s·A + a the distribution of the next state.
    R : array of shape (S, A), the expected reward; −inf forbids action a in state s.
    gamma : discount factor, 0 ≤ gamma < 1.
    rho0 : distribution of the initial state; uniform if left out.

    >>> mdp = FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, 2.0]], gamma=0.5)
    >>> mdp.backup([0.0])
    array([[1., 2.]])
    """

    P: sp.csr_array
    R: Array
    gamma: float
    rho0: Array = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        states, actions = self.R.shape
        kept = f"{self.P.nnz:,} transitions"
        return f"FiniteMDP({states:,} states, {actions:,} actions, {kept}, gamma {self.gamma:g})"

    def __post_init__(self) -> None:
        R = validate.real_array("R", self.R, [2]).copy()  # nobody else may change it
        validate.rewards(R)
        P = storage.csr("P", self.P)
        validate.transitions(P, R)
        states = len(R)
        rho0 = np.full(states, 1.0 / states) if self.rho0 is None else self.rho0
        object.__setattr__(self, "P", P)
        object.__setattr__(self, "R", R)
        object.__setattr__(self, "gamma", validate.discount(self.gamma))
        object.__setattr__(self, "rho0", validate.distribution("rho0", rho0, states).copy())
        for array in (R, self.rho0):
            array.flags.writeable = False
        largest_sum = self.row_sum_range[1]
        if self.gamma * largest_sum * (1.0 + 1e-15 * (self.width + 8)) >= 1.0:
            raise ValueError(
                f"gamma is {self.gamma!r} and a row of P sums to {largest_sum!r}, so values cannot "
                "be told from infinite ones; choose a smaller gamma, or divide each row by its sum"
            )

        if self.largest_reward / (1.0 - self.gamma) > 1e300:
            raise ValueError(
                f"R has a reward of size {self.largest_reward:g}, so that values overflow; "
                "measure rewards in a larger unit"
            )

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return int(self.R.shape[0])

    @property
    def n_actions(self) -> int:
        """Number of actions, A, feasible in every state or not."""
        return int(self.R.shape[1])

    @cached_property
    def feasible(self) -> NDArray[np.bool_]:
        """Which actions each state has, shape (S, A)."""
        return np.isfinite(self.R)

    @cached_property
    def row_sum_range(self) -> tuple[float, float]:
        """Smallest and largest computed sum of a row of P, 1 up to rounding."""
        sums = validate.row_sums(self.P)[self.feasible.ravel()]
        return float(sums.min()), float(sums.max())

    @cached_property
    def width(self) -> int:
        """Most next states that any pair (s, a) has."""
        return int(np.diff(self.P.indptr).max())

    @cached_property
    def largest_reward(self) -> float:
        """max |r(s, a)| over feasible pairs."""
        return float(np.abs(self.R[self.feasible]).max())

    @cached_property
    def _blocks(self) -> RowBlocks:
        return RowBlocks(self.P, group=self.n_actions)

    def backup(self, V: ArrayLike) -> Array:
        """Q(s, a) = r(s, a) + γ E[V(s')], shape (S, A), −inf where infeasible."""
        Q, V = np.empty(self.R.size), np.asarray(V, dtype=np.float64)

        def work(rows: slice, P: sp.csr_array) -> None:
            Q[rows] = self._lookahead(rows, P, V).ravel()

        self._blocks.each(work)
        return Q.reshape(self.R.shape)

    def lookahead(self, V: Array) -> Array:
        """γ E[V(s')], shape (S, A), 0 where infeasible."""
        return (self._blocks @ (self.gamma * V)).reshape(self.R.shape)

    def greedy(self, V: Array) -> tuple[Actions, Array]:
        """The greedy policy argmax_a Q(s, a), lowest action first, and TV = max_a Q(s, a)."""
        policy, TV = np.empty(self.n_states, dtype=np.int64), np.empty(self.n_states)

        def work(rows: slice, P: sp.csr_array) -> None:
            Q = self._lookahead(rows, P, V)
            states = slice(rows.start // self.n_actions, rows.stop // self.n_actions)
            best = Q.argmax(axis=1)
            policy[states] = best
            TV[states] = Q[np.arange(len(best)), best]

        self._blocks.each(work)
        return policy, TV

    def _lookahead(self, rows: slice, P: sp.csr_array, V: Array) -> Array:
        Q: Array = P @ (self.gamma * V)
        Q += self.R.reshape(-1)[rows]
        return Q.reshape(-1, self.n_actions)

    def rounding(self, V: Array) -> float:
        """Bound on the rounding errors in r + γPV − V, as the certificate counts them."""
        unit = np.finfo(np.float64).eps / 2
        return float((self.width + 8) * unit * (self.largest_reward + 3.0 * np.abs(V).max()))

    def objective(self, V: Array) -> float:
        """ρ₀ᵀV. (Not a BLAS dot: its threads spin on, and slow the next backup down.)"""
        return float((self.rho0 * V).sum())

    def flow(self, pairs: Pairs, y: Array) -> Array:
        """Left side of the dual constraint: Σ_a y(s', a) − γ Σ_{s,a} P(s'|s, a) y(s, a).

        `pairs` are the states and the actions at which y is not zero.
        """
        s, a = pairs
        inflow: Array = self.P[s * self.n_actions + a].T @ y
        inflow *= -self.gamma
        inflow += np.bincount(s, weights=y, minlength=self.n_states)
        return inflow

    def under(self, policy: Policy) -> tuple[sp.csr_array, Array]:
        """The Markov reward process (P_π, r_π) of a policy of either kind."""
        S, A = self.R.shape
        if policy.ndim == 1:
            rows = np.arange(S) * A + policy
            return self.P[rows], self.R.ravel()[rows]
        s, a = np.nonzero(policy)
        choose = sp.csr_array((policy[s, a], (s, s * A + a)), shape=(S, S * A))
        return choose @ self.P, choose @ np.where(self.feasible, self.R, 0.0).ravel()

    @classmethod
    def from_dense(
        cls,
        P: ArrayLike,
        R: ArrayLike,
        gamma: float,
        rho0: ArrayLike | None = None,
        *,
        order: Literal["sas", "ass"] = "sas",
        feasible: ArrayLike | None = None,
    ) -> "FiniteMDP":
        """From a dense array P[s, a, s'] (`order="sas"`) or P[a, s, s'] (`order="ass"`).

        R has shape (S,), (S, A), or that of P: rewards that depend on the next state, in the same
        order. `feasible` of shape (S, A) forbids actions; their rows of P are ignored.
        """
        return cls(*storage.from_dense(P, R, order, feasible), gamma, rho0)  # type: ignore[arg-type]

    @classmethod
    def from_sparse(
        cls,
        P: Sequence[Any],
        R: ArrayLike,
        gamma: float,
        rho0: ArrayLike | None = None,
        *,
        feasible: ArrayLike | None = None,
    ) -> "FiniteMDP":
        """From a list with one sparse (S, S) matrix per action, and R of shape (S,) or (S, A)."""
        return cls(*storage.from_sparse(P, R, feasible), gamma, rho0)  # type: ignore[arg-type]

    @classmethod
    def from_pairs(
        cls,
        states: ArrayLike,
        actions: ArrayLike,
        P: Any,
        R: ArrayLike,
        gamma: float,
        rho0: ArrayLike | None = None,
    ) -> "FiniteMDP":
        """From L feasible pairs: states (L,), actions (L,), P (L, S) sparse or dense, R (L,)."""
        return cls(*storage.from_pairs(states, actions, P, R), gamma, rho0)  # type: ignore[arg-type]

    @classmethod
    def from_functions(
        cls,
        n_states: int,
        n_actions: int,
        transition: Callable[[int, int], storage.Outcomes | None],
        reward: Callable[[int, int], float],
        gamma: float,
        rho0: ArrayLike | None = None,
    ) -> "FiniteMDP":
        """From `transition(s, a)`, a dict {s': p} or pairs (s', p), and `reward(s, a)`.

        A transition of None means that state s has no action a.
        """
        rows = storage.from_functions(n_states, n_actions, transition, reward)
        return cls(*rows, gamma, rho0)  # type: ignore[arg-type]

    @classmethod
    def from_gymnasium(cls, env: Any, gamma: float = 0.99) -> "FiniteMDP":
        """From a toy-text environment, whose `env.unwrapped.P[s][a]` lists (p, s', r, terminated).

        Where an episode ends in a state that still pays or moves, the ending goes to one extra
        absorbing state without reward, the last one.
        """
        P, R, rho0 = storage.from_toy_text(env)
        return cls(P, R, gamma, rho0)  # type: ignore[arg-type]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the MDP to an .npz file."""
        files.save_mdp(path, self.P, self.R, self.gamma, self.rho0)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "FiniteMDP":
        """Read an MDP that `save` wrote; nothing in the file is executed."""
        return cls(*files.load_mdp(path))
