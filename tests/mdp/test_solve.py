import numpy as np
import pytest
import scipy.sparse as sp

import scal
from scal import FiniteMDP, certify, policy_from_multipliers, policy_from_values, solve
from scal.mdp import METHODS
from tests.conftest import random_instance
from tests.mdp.rational import exact

# Puterman's two-state example: in state 0 stay (r = 5, leaves with probability 1/2) or leave
# (r = 10); state 1 costs 1 for ever. Staying wins for γ > 10/11.
P_SAS = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]])
R = np.array([[5.0, 10.0], [-1.0, -np.inf]])
FEASIBLE = np.isfinite(R)


def analytic(gamma: float) -> np.ndarray:
    cost = -1.0 / (1.0 - gamma)
    stay = (5.0 + 0.5 * gamma * cost) / (1.0 - 0.5 * gamma)
    return np.array([max(stay, 10.0 + gamma * cost), cost])


def constructed(kind: str, gamma: float, tmp_path) -> FiniteMDP:
    if kind == "canonical":
        return FiniteMDP(sp.csr_array(P_SAS.reshape(4, 2)), R, gamma)
    if kind == "dense_sas":
        return FiniteMDP.from_dense(P_SAS, R, gamma)
    if kind == "dense_ass":
        return FiniteMDP.from_dense(P_SAS.transpose(1, 0, 2), R, gamma, order="ass")
    if kind == "dense_masked":
        junk = P_SAS.copy()
        junk[1, 1] = np.nan
        return FiniteMDP.from_dense(junk, np.where(FEASIBLE, R, 7.0), gamma, feasible=FEASIBLE)
    if kind == "dense_reward_per_next_state":
        cube = np.where(FEASIBLE, R, 0.0)[:, :, None] * np.ones(2)
        return FiniteMDP.from_dense(P_SAS, cube, gamma, feasible=FEASIBLE)
    if kind == "sparse":
        return FiniteMDP.from_sparse([sp.coo_array(P_SAS[:, a]) for a in (0, 1)], R, gamma)
    if kind == "pairs":
        P = sp.csr_array([[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]])
        return FiniteMDP.from_pairs([1, 0, 0], [0, 0, 1], P, [-1.0, 5.0, 10.0], gamma)
    if kind == "functions":
        table = {(0, 0): {0: 0.5, 1: 0.5}, (0, 1): [(1, 1.0)], (1, 0): {1: 1.0}}
        return FiniteMDP.from_functions(
            2, 2, lambda s, a: table.get((s, a)), lambda s, a: R[s, a], gamma
        )
    FiniteMDP.from_dense(P_SAS, R, gamma).save(tmp_path / "two.npz")
    return FiniteMDP.load(tmp_path / "two.npz")


KINDS = [
    "canonical",
    "dense_sas",
    "dense_ass",
    "dense_masked",
    "dense_reward_per_next_state",
    "sparse",
    "pairs",
    "functions",
    "file",
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_analytic_two_states(kind, method, tmp_path):
    for gamma, action in ((0.95, 0), (0.8, 1)):
        solution = solve(constructed(kind, gamma, tmp_path), method, tolerance=1e-9)
        np.testing.assert_allclose(solution.V, analytic(gamma), atol=1e-8)
        assert solution.policy.tolist() == [action, 0]
        assert solution.certificate.accepts(1e-8)
        assert solution.ties.size == 0
        # the other action of state 0 loses exactly this much
        stay, leave = 5 + gamma * 0.5 * solution.V.sum(), 10 + gamma * solution.V[1]
        np.testing.assert_allclose(solution.h[0, 1 - action], abs(stay - leave), atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("gamma", "empty", "full"),
    [(0.9, 4.63, -773), (0.95, 9.65, -898), (0.99, 49.77, -985), (0.995, 99.93, -952)],
)
def test_inventory(gamma, empty, full, method):
    solution = solve(scal.Inventory().mdp(gamma), method)
    assert solution.certificate.gap <= 1e-6
    assert round(solution.V[0], 2) == empty
    assert round(solution.V[100]) == full
    assert solution.policy.tolist() == [7] + [0] * 100


@pytest.mark.parametrize("first", range(0, 300, 20))
def test_methods_agree_within_their_certificates(first):
    for seed in range(first, first + 20):
        mdp = random_instance(seed)
        scale = max(1.0, mdp.largest_reward)
        solutions = {method: solve(mdp, method, 1e-6 * scale) for method in METHODS}
        truth = exact(mdp) if mdp.n_states <= 5 and mdp.n_actions <= 3 else None
        for method, solution in solutions.items():
            proof, where = solution.certificate, f"seed {seed}, {method}"
            assert proof.gap <= 1e-6 * scale, where
            assert proof.accepts(2e-6 * scale), where
            for other in solutions.values():
                assert proof.lower <= other.certificate.upper, where
                distance = np.abs(solution.V - other.V).max()
                assert distance <= proof.value_error + other.certificate.value_error, where
            if truth:
                V, objective = truth
                assert proof.lower <= objective <= proof.upper, where
                assert max(abs(a - b) for a, b in zip(V, solution.V.tolist(), strict=True)) <= (
                    proof.value_error
                ), where
            both_policies_agree(mdp, solution, where)


def both_policies_agree(mdp, solution, where):
    """π from V and π ∝ w·x are the same action wherever the optimum is unique and visited."""
    from_V = policy_from_values(mdp, solution.V)
    from_x = policy_from_multipliers(mdp, solution.x)
    visited = solution.x.sum(axis=1) > 0
    unique = np.setdiff1d(np.flatnonzero(visited), solution.ties)
    assert (from_V[unique] == from_x.argmax(axis=1)[unique]).all(), where
    assert np.allclose(from_x.max(axis=1)[visited], 1.0), where
    # and the multipliers carry the total mass 1 / (1 − γ)
    mass = solution.x.sum() / np.count_nonzero(mdp.feasible)
    assert mass == pytest.approx(1.0 / (1.0 - mdp.gamma), rel=1e-6), where


def test_ties_are_reported():
    mdp = FiniteMDP.from_dense(
        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], [[1.0, 1.0], [1.0, 0.5]], 0.9
    )
    for method in METHODS:
        solution = solve(mdp, method)
        assert solution.ties.tolist() == [0], method
        assert solution.candidates.tolist() == [[True, True], [True, False]], method


def test_weights_change_multipliers_but_not_their_policy():
    mdp = random_instance(7)
    rng = np.random.default_rng(0)
    w = rng.random(mdp.R.shape) * mdp.feasible + 1e-3 * mdp.feasible
    w /= w.sum()
    for method in ("alm", "auto"):
        plain, weighted = solve(mdp, method), solve(mdp, method, w=w)
        assert not np.allclose(plain.x, weighted.x)
        uniform = 1.0 / np.count_nonzero(mdp.feasible)
        np.testing.assert_allclose(plain.x * uniform, weighted.x * w, atol=1e-9)
        assert certify(mdp, V=weighted.V, x=weighted.x, w=w).accepts()


@pytest.mark.parametrize("method", ["auto", "alm", "mpi", "pi", "vi"])
def test_history_closes_in_on_the_optimum(method):
    mdp = scal.random_mdp(50, 4, 5, seed=3)
    solution = solve(mdp, method)
    bounds = [line.bound for line in solution.history]
    assert len(bounds) == solution.iterations
    assert bounds[-1] <= 1e-6 < bounds[0]
    assert solution.history[-1].objective == pytest.approx(solution.objective, abs=1e-6)


def test_slowly_mixing_chain():
    """A corridor of 2,000 states with γ = .9999: sweeps alone would take 10⁵ of them."""
    S = 2000
    left, right = np.maximum(np.arange(S) - 1, 0), np.minimum(np.arange(S) + 1, S - 1)
    ones, rows = np.ones(S), np.arange(S)
    moves = [sp.csr_array((ones, (rows, to)), shape=(S, S)) for to in (left, right)]
    R = np.zeros((S, 2))
    R[S - 1, 1] = 1.0
    mdp = FiniteMDP.from_sparse(moves, R, gamma=0.9999)
    expected = 0.9999 ** (S - 1 - np.arange(S)) / (1 - 0.9999)
    for method in ("auto", "alm"):
        solution = solve(mdp, method)
        np.testing.assert_allclose(solution.V, expected, atol=1e-6)
        assert solution.certificate.gap <= 1e-6
        assert solution.policy.tolist() == [1] * S


def deterministic(S, A, gamma, seed):
    """Every action leads to one state: nothing mixes."""
    rng = np.random.default_rng(seed)
    rows = np.arange(S * A)
    P = sp.csr_array((np.ones(S * A), (rows, rng.integers(0, S, S * A))), shape=(S * A, S))
    return FiniteMDP(P, rng.random((S, A)), gamma)


def swaps(S, gamma):
    """Stay, or change places with the neighbour."""
    i = np.arange(S)
    P = sp.csr_array((np.ones(2 * S), (np.arange(2 * S), np.stack([i, i ^ 1], 1).ravel())))
    return FiniteMDP(P, np.random.default_rng(1).normal(size=(S, 2)), gamma)


def grid(n, gamma):
    """Walk to a corner of an n × n board; one move in five is random."""
    place = np.arange(n * n).reshape(n, n)
    pad = np.pad(place, 1, mode="edge")
    ends = (pad[2:, 1:-1], pad[:-2, 1:-1], pad[1:-1, 2:], pad[1:-1, :-2])
    shape = (n * n, n * n)
    moves = [sp.csr_array((np.ones(n * n), (place.ravel(), to.ravel())), shape) for to in ends]
    anywhere = sum(moves[1:], moves[0]) * 0.05
    return FiniteMDP.from_sparse(
        [0.8 * move + anywhere for move in moves], -1.0 * (place.ravel() != n * n - 1), gamma
    )


HARD = {
    "zero rewards": lambda: FiniteMDP(scal.random_mdp(400, 5, 3).P, np.zeros((400, 5)), 0.99),
    "equal rewards": lambda: FiniteMDP(scal.random_mdp(400, 5, 3).P, np.ones((400, 5)), 0.999),
    "deterministic": lambda: deterministic(300, 20, 0.999, 0),
    "one successor": lambda: scal.random_mdp(300, 5, 1, seed=0, gamma=0.999),
    "swaps": lambda: swaps(50, 0.999),
    "grid": lambda: grid(25, 0.999),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", HARD)
def test_what_does_not_mix(name, method):
    mdp = HARD[name]()
    solution = solve(mdp, method, tolerance=1e-6)
    assert solution.proven
    assert solution.certificate.gap <= 1e-6


def test_solution_file_holds_everything(tmp_path):
    solution = solve(random_instance(3))
    solution.save(tmp_path / "solution.npz")
    with np.load(tmp_path / "solution.npz", allow_pickle=False) as stored:
        np.testing.assert_array_equal(stored["V"], solution.V)
        np.testing.assert_array_equal(stored["policy"], solution.policy)
        assert stored["gap"] == solution.certificate.gap


def test_a_solution_says_in_a_line_what_it_is():
    solution = solve(scal.random_mdp(1_000, 3, 2))
    problem = "FiniteMDP(1,000 states, 3 actions, 6,000 transitions, gamma 0.99)"
    assert repr(solution).startswith(f"Solution(auto, {problem}, objective ")
    assert repr(solution).endswith(", proven)")
