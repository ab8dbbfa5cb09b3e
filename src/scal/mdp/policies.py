"""From values, slacks and multipliers to policies (paper, equations for π* in section 2).

    from V    π(s) = argmax_a r(s, a) + γ E[V(s')]
    from x    π(a|s) = w(s, a) x(s, a) / Σ_a' w(s, a') x(s, a')

Where the optimum is unique the two agree. Where it is not, `ties` says so.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scal.mdp import validate
from scal.mdp.model import FiniteMDP
from scal.mdp.types import Actions, Array, Policy

LARGEST_VALUE = 1e150
"""Of |V|: its square is a number too."""


def policy_from_values(mdp: FiniteMDP, V: ArrayLike) -> Actions:
    """The greedy policy of V, shape (S,); the lowest action among equals."""
    return mdp.greedy(check_values(mdp, V))[0]


def policy_from_multipliers(mdp: FiniteMDP, x: ArrayLike, w: ArrayLike | None = None) -> Array:
    """π(a|s) ∝ w·x, shape (S, A); uniform over feasible actions where a state has no mass."""
    return proportional(mdp, check_weights(mdp, w) * check_multipliers(mdp, x))


def proportional(mdp: FiniteMDP, y: Array) -> Array:
    """Every row of [y]₊ divided by its sum; uniform over feasible actions where that is zero."""
    y = np.where(mdp.feasible, np.maximum(y, 0.0), 0.0)
    empty = ~(y > 0.0).any(axis=1)
    y[empty] = mdp.feasible[empty]
    return y / y.sum(axis=1, keepdims=True)


def check_policy(mdp: FiniteMDP, policy: Any) -> Policy:
    """A policy as actions (S,) or probabilities (S, A), feasible in every state."""
    array = np.asarray(policy)
    if array.ndim == 1:
        actions = validate.index_array("policy", array, mdp.n_states, mdp.n_actions)
        bad = np.flatnonzero(~mdp.feasible[np.arange(mdp.n_states), actions])
        if bad.size:
            raise ValueError(
                f"policy[{bad[0]}] is {actions[bad[0]]}, which state {bad[0]} does not have; "
                "choose a feasible action"
            )
        return actions
    probabilities = check_pairs(mdp, "policy", array)
    for s in np.flatnonzero(np.abs(probabilities.sum(axis=1) - 1.0) > validate.ROW_SUM_TOLERANCE):
        raise ValueError(
            f"policy[{s}] sums to {probabilities[s].sum():.9g}; divide the row by its sum"
        )
    for s, a in np.argwhere((probabilities < 0.0) | (~mdp.feasible & (probabilities != 0.0))):
        raise ValueError(
            f"policy[{s}, {a}] is {probabilities[s, a]:g}; use no negative probability, "
            "and 0 for an action that the state does not have"
        )
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def check_mdp(mdp: Any) -> None:
    """A `FiniteMDP`."""
    if not isinstance(mdp, FiniteMDP):
        raise ValueError(
            f"mdp is a {type(mdp).__name__}; pass a FiniteMDP, such as FiniteMDP.from_dense(P, R)"
        )


def check_values(mdp: FiniteMDP, V: Any) -> Array:
    """Finite values, one per state."""
    array = validate.real_array("V", V, [1])
    if array.size != mdp.n_states:
        raise ValueError(f"V has {array.size} entries where {mdp.n_states} are needed; make it fit")
    for s in np.flatnonzero(~(np.abs(array) < LARGEST_VALUE)):
        raise ValueError(f"V[{s}] is {array[s]:g}; use finite values below {LARGEST_VALUE:g}")
    return array


def check_pairs(mdp: FiniteMDP, name: str, value: Any) -> Array:
    """Numbers of shape (S, A), finite at every feasible pair."""
    array = validate.real_array(name, value, [2])
    if array.shape != mdp.R.shape:
        raise ValueError(f"{name} has shape {array.shape}; make it {mdp.R.shape}")
    for s, a in np.argwhere(mdp.feasible & ~np.isfinite(array)):
        raise ValueError(f"{name}[{s}, {a}] is {array[s, a]:g}; use finite numbers")
    return array


def check_multipliers(mdp: FiniteMDP, x: Any) -> Array:
    """Multipliers of shape (S, A), zero where a state does not have the action."""
    array = check_pairs(mdp, "x", x)
    for s, a in np.argwhere(~mdp.feasible & (array != 0.0)):
        raise ValueError(
            f"x[{s}, {a}] is {array[s, a]:g}, but state {s} does not have action {a}; use 0 there"
        )
    return array


def check_weights(mdp: FiniteMDP, w: Any = None) -> Array:
    """The weights w(s, a) > 0 of the multipliers; uniform over feasible pairs if left out."""
    if w is None:
        return np.broadcast_to(1.0 / np.count_nonzero(mdp.feasible), mdp.R.shape)
    array = check_pairs(mdp, "w", w)
    for s, a in np.argwhere(np.where(mdp.feasible, ~(array > 0.0), array != 0.0)):
        raise ValueError(
            f"w[{s}, {a}] is {array[s, a]:g}; use positive weights, and 0 only where the state "
            "does not have the action"
        )
    if abs(array.sum() - 1.0) > validate.ROW_SUM_TOLERANCE:
        raise ValueError(f"w sums to {array.sum():.9g}; divide it by its sum")
    return array
