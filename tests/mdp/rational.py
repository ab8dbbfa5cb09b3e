"""Ground truth without rounding: Howard's policy iteration on the stored numbers as fractions."""

from fractions import Fraction

import numpy as np

from scal import FiniteMDP


def exact(mdp: FiniteMDP) -> tuple[list[Fraction], Fraction]:
    """V* and ρ₀ᵀV* of the MDP exactly as stored."""
    S, A = mdp.n_states, mdp.n_actions
    P = [
        [[Fraction(p) for p in row] for row in mdp.P[[s * A + a for a in range(A)]].toarray()]
        for s in range(S)
    ]
    gamma = Fraction(mdp.gamma)
    feasible = [np.flatnonzero(mdp.feasible[s]).tolist() for s in range(S)]

    def q(V: list[Fraction], s: int, a: int) -> Fraction:
        expected = sum((p * v for p, v in zip(P[s][a], V, strict=True)), Fraction(0))
        return Fraction(mdp.R[s, a]) + gamma * expected

    policy = [actions[0] for actions in feasible]
    while True:
        matrix = [
            [Fraction(s == t) - gamma * P[s][policy[s]][t] for t in range(S)] for s in range(S)
        ]
        V = eliminate(matrix, [Fraction(mdp.R[s, policy[s]]) for s in range(S)])
        better = [
            max(feasible[s], key=lambda a, s=s: (q(V, s, a), a == policy[s])) for s in range(S)
        ]
        if better == policy:
            return V, sum((Fraction(p) * v for p, v in zip(mdp.rho0, V, strict=True)), Fraction(0))
        policy = better


def eliminate(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Gauss–Jordan elimination."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = next(k for k in range(i, len(rows)) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i and rows[k][i] != 0:
                factor = rows[k][i]
                rows[k] = [v - factor * w for v, w in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]
