"""Certificates bound the truth, and refuse everything that is not true."""

import math
from fractions import Fraction

import numpy as np
import pytest

import scal
from scal import FiniteMDP, certify, solve
from tests.conftest import random_instance
from tests.mdp.rational import exact

SMALL = [s for s in range(400) if random_instance(s).n_states <= 5][:40]


@pytest.mark.parametrize("seed", SMALL)
def test_bounds_hold_in_exact_arithmetic_for_arbitrary_inputs(seed):
    """Whatever V or policy is handed in, lower ≤ ρ₀ᵀV* ≤ upper, and value_error is a bound."""
    mdp = random_instance(seed)
    V_star, objective = exact(mdp)
    rng = np.random.default_rng(seed)
    spread = 1.0 + mdp.largest_reward
    near = np.array([float(v) for v in V_star])
    greedy = solve(mdp).policy
    for V in (
        near,
        near + 1e-9 * rng.normal(size=near.shape),
        spread * rng.normal(size=near.shape),
    ):
        for proof in (certify(mdp, V=V), certify(mdp, V=V, policy=greedy)):
            assert Fraction(proof.lower) <= objective <= Fraction(proof.upper)
            error = max(abs(Fraction(v) - t) for v, t in zip(V.tolist(), V_star, strict=True))
            assert error <= Fraction(proof.value_error)
    mixed = mdp.feasible * rng.random(mdp.R.shape)
    mixed /= mixed.sum(axis=1, keepdims=True)
    for policy in (greedy, mixed):
        proof = certify(mdp, policy=policy)
        assert Fraction(proof.lower) <= objective <= Fraction(proof.upper)
        assert proof.margin >= 0.0


def test_gap_of_a_known_policy():
    """Never ordering loses 15.8 % of mean |V*| on the inventory problem at γ = .99."""
    mdp = scal.Inventory().mdp(0.99)
    best = solve(mdp)
    never = certify(mdp, policy=np.zeros(101, dtype=int))
    assert never.lower < best.certificate.lower
    loss = best.certificate.lower - never.lower
    assert loss / np.abs(best.V).mean() == pytest.approx(0.158, abs=5e-4)


def test_substochastic_rounding_is_accounted_for():
    """Rows that sum to 1 + 9·10⁻⁹ move V* by more than rounding; the bounds move with it."""
    p = 0.5 + 4.5e-9
    mdp = FiniteMDP([[p, p], [p, p]], [[1.0], [2.0]], gamma=0.999)
    _, objective = exact(mdp)
    assert float(objective) - 1500.0 > 1e-3
    for method in scal.mdp.METHODS:
        proof = solve(mdp, method).certificate
        assert Fraction(proof.lower) <= objective <= Fraction(proof.upper), method
        assert proof.gap < 1e-6, method


def test_subnormal_values():
    for mdp in (
        FiniteMDP(np.eye(10), np.full((10, 1), 1.5e-323), 0.0),
        FiniteMDP(np.full((10, 10), 0.1), np.full((10, 1), 2e-323), 0.5),
    ):
        _, objective = exact(mdp)
        proof = solve(mdp).certificate
        assert Fraction(proof.lower) <= objective <= Fraction(proof.upper)


FALSIFICATIONS = {
    "V of one state too high": lambda V, h, x, pi, s, a, e: (_add(V, s, e), h, x, pi),
    "V of one state too low": lambda V, h, x, pi, s, a, e: (_add(V, s, -e), h, x, pi),
    "V too high everywhere": lambda V, h, x, pi, s, a, e: (V + e, h, x, pi),
    "V too low everywhere": lambda V, h, x, pi, s, a, e: (V - e, h, x, pi),
    "V of other states": lambda V, h, x, pi, s, a, e: (np.roll(V, 1), h, x, pi),
    "h of one pair too large": lambda V, h, x, pi, s, a, e: (V, _add(h, (s, a), e), x, pi),
    "h of one pair negative": lambda V, h, x, pi, s, a, e: (V, _add(h, (s, pi[s]), -e), x, pi),
    "x of one pair too large": lambda V, h, x, pi, s, a, e: (V, h, _add(x, (s, a), e * x.size), pi),
    "x scaled": lambda V, h, x, pi, s, a, e: (V, h, x * (1 + e), pi),
    "a worse action": lambda V, h, x, pi, s, a, e: (V, h, x, _set(pi, s, a)),
}


@pytest.mark.parametrize("name", FALSIFICATIONS)
@pytest.mark.parametrize("seed", range(10))
def test_falsified_solutions_are_rejected(seed, name):
    mdp = scal.random_mdp(20, 4, 6, seed=seed, gamma=0.95)
    solution = solve(mdp, tolerance=1e-9)
    parts = solution.V, solution.h, solution.x, solution.policy
    assert certify(mdp, **dict(zip("Vhx", parts, strict=False)), policy=parts[3]).accepts(1e-6)
    rng = np.random.default_rng(seed)
    s = int(rng.integers(20))
    a = int(solution.h[s].argmax())
    V, h, x, policy = FALSIFICATIONS[name](*parts, s, a, 10.0 ** rng.uniform(-4, 0))
    assert not certify(mdp, V=V, h=h, x=x, policy=policy).accepts(1e-6)


def test_suboptimal_but_feasible_multipliers_are_rejected():
    mdp = scal.random_mdp(20, 4, 6, seed=1, gamma=0.95)
    solution = solve(mdp)
    worst = solve(FiniteMDP(mdp.P, -mdp.R, mdp.gamma))
    proof = certify(mdp, V=solution.V, policy=solution.policy, x=worst.x)
    assert proof.flow_residual < 1e-9
    assert not proof.accepts(1e-3)


def test_certificate_from_multipliers_alone():
    mdp = random_instance(5)
    proof = certify(mdp, x=solve(mdp).x)
    best = solve(mdp).certificate
    assert proof.lower == pytest.approx(best.lower, abs=1e-6 * (1 + abs(best.lower)))


def test_numbers_of_a_one_state_mdp():
    mdp = FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, 2.0]], gamma=0.5)
    proof = certify(mdp, V=[3.0], policy=[0])
    assert proof.upper == pytest.approx(3.0 + 0.5 / 0.5)
    assert proof.lower == pytest.approx(2.0)
    assert proof.primal_violation == pytest.approx(0.5)
    assert proof.dual_value == pytest.approx(2.0)
    assert proof.complementarity == pytest.approx((2.0 / 0.5) * (3.0 - 1.0 - 1.5))
    assert proof.gap == proof.upper - proof.lower == proof.as_dict()["gap"]
    assert math.nextafter(4.0, 5.0) <= proof.upper


def _add(array, where, amount):
    changed = array.copy()
    changed[where] += amount
    return changed


def _set(array, where, value):
    changed = array.copy()
    changed[where] = value
    return changed
