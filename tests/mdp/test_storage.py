"""MDPs in, MDPs out, and sparse all the way."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import scal
from scal import FiniteMDP, solve
from scal.problems import find_problem
from tests.conftest import random_instance


@pytest.mark.parametrize("seed", range(20))
def test_file_round_trip_is_exact(seed, tmp_path):
    mdp = random_instance(seed)
    mdp.save(tmp_path / "mdp.npz")
    again = FiniteMDP.load(tmp_path / "mdp.npz")
    assert (again.P != mdp.P).nnz == 0
    np.testing.assert_array_equal(again.R, mdp.R)
    np.testing.assert_array_equal(again.rho0, mdp.rho0)
    assert again.gamma == mdp.gamma


@pytest.mark.parametrize("seed", range(20))
def test_constructors_agree(seed):
    mdp = random_instance(seed)
    S, A = mdp.R.shape
    cube = mdp.P.toarray().reshape(S, A, S)
    by_action = [mdp.P[np.arange(S) * A + a] for a in range(A)]
    s, a = np.nonzero(mdp.feasible)
    shuffle = np.random.default_rng(seed).permutation(len(s))
    s, a = s[shuffle], a[shuffle]
    rest = mdp.gamma, mdp.rho0
    twins = [
        FiniteMDP.from_dense(cube, mdp.R, *rest),
        FiniteMDP.from_dense(cube.transpose(1, 0, 2), mdp.R, *rest, order="ass"),
        FiniteMDP.from_sparse(by_action, mdp.R, *rest),
        FiniteMDP.from_functions(
            S,
            A,
            lambda s, a: dict(enumerate(cube[s, a])) if mdp.feasible[s, a] else None,
            lambda s, a: mdp.R[s, a],
            *rest,
        ),
    ]
    if a.max() == A - 1:
        twins.append(FiniteMDP.from_pairs(s, a, mdp.P[s * A + a], mdp.R[s, a], *rest))
    for twin in twins:
        np.testing.assert_array_equal(twin.P.toarray(), mdp.P.toarray())
        np.testing.assert_array_equal(twin.R, mdp.R)


def test_state_rewards_and_next_state_rewards():
    P = np.array([[[0.25, 0.75]], [[1.0, 0.0]]])
    per_state = FiniteMDP.from_dense(P, [3.0, 5.0], 0.5)
    np.testing.assert_array_equal(per_state.R, [[3.0], [5.0]])
    nowhere = FiniteMDP.from_dense(P, [[[4.0, 8.0]], [[1.0, np.nan]]], 0.5)  # P = 0 there
    np.testing.assert_array_equal(nowhere.R, [[7.0], [1.0]])
    both = np.repeat(P, 2, axis=1)
    both[0, 1] = 0.0
    rewards = np.zeros((2, 2, 2))
    rewards[0, 1], rewards[1, 1, 0] = -np.inf, -np.inf
    forbidden = FiniteMDP.from_dense(both, rewards, 0.5)
    np.testing.assert_array_equal(forbidden.R, [[0.0, -np.inf], [0.0, -np.inf]])
    per_next_state = FiniteMDP.from_dense(P, [[[4.0, 8.0]], [[1.0, 9.0]]], 0.5)
    np.testing.assert_array_equal(per_next_state.R, [[7.0], [1.0]])


@pytest.mark.parametrize(
    ("name", "states", "value", "gamma"),
    [
        # 13 steps of −1 around the cliff, from the corner
        ("CliffWalking-v1", 49, -(1 - 0.9**13) / (1 - 0.9), 0.9),
        # the published optimum of the slippery 4 × 4 lake at γ = .99
        ("FrozenLake-v1", 16, 0.5420259, 0.99),
    ],
)
def test_toy_text_with_known_optimum(name, states, value, gamma):
    mdp = FiniteMDP.from_gymnasium(gym.make(name), gamma)
    assert mdp.n_states == states
    for method in scal.mdp.METHODS:
        solution = solve(mdp, method)
        assert solution.certificate.accepts()
        assert solution.objective == pytest.approx(value, abs=1e-6)


def test_taxi_by_simulation():
    """The exact policy, driven through the real environment, earns exactly its value."""
    problem = find_problem("Taxi-v3", gamma=0.9)
    solution = solve(problem.mdp)
    env = gym.make(problem.name)
    for seed in range(20):
        state, _ = env.reset(seed=seed)
        start, total, discount, over = int(state), 0.0, 1.0, False
        while not over:
            state, reward, over, cut, _ = env.step(solution.policy[int(state)])
            assert not cut
            total, discount = total + discount * float(reward), 0.9 * discount
        assert total == pytest.approx(solution.V[start], abs=1e-6)


def test_environment_without_table():
    with pytest.raises(ValueError, match=r"no transition table env\.unwrapped\.P"):
        FiniteMDP.from_gymnasium(gym.make("CartPole-v1"))


BIG = """
import scal
mdp = scal.random_mdp(200_000, 10, 10)
solution = scal.solve(mdp)
assert solution.certificate.gap <= 1e-6
assert mdp.P.nnz == 20_000_000
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_two_hundred_thousand_states_stay_under_two_gibibytes():
    run = subprocess.run([sys.executable, "-c", BIG], capture_output=True, text=True, check=True)
    assert int(run.stdout) * 1024 < 2 * 1024**3
