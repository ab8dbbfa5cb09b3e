"""Every way to get it wrong: one sentence that names the argument, the place and the fix."""

import re

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp

import scal
from scal import FiniteMDP, certify, policy_from_multipliers, policy_from_values, random_mdp, solve
from scal.problems import find_problem

NAN, INF = float("nan"), float("inf")
P2 = [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]  # two states, two actions
R2 = [[1.0, 2.0], [3.0, 4.0]]
MDP = FiniteMDP(P2, R2, 0.9)
MASKED = FiniteMDP.from_dense([[[1.0], [1.0]]], [[1.0, -INF]], 0.9)


def put(rows, row, column, value):
    changed = [list(r) for r in rows]
    changed[row][column] = value
    return changed


def canonical(P=P2, R=R2, gamma=0.9, rho0=None):
    return FiniteMDP(P, R, gamma, rho0)


def duplicated():
    P = sp.csr_array(np.array(P2))
    data, indices = np.append(P.data[:1] / 2, P.data), np.append(P.indices[:1], P.indices)
    data[1] /= 2
    return sp.csr_array((data, indices, np.append([0], P.indptr[1:] + 1)), shape=(4, 2))


def unsound():
    P = sp.csr_array(np.array(P2))
    P.indices[-1] = 7
    return P


def functions(transition, n_states=2):
    return FiniteMDP.from_functions(n_states, 1, transition, lambda s, a: 0.0, 0.9)


CASES = {
    "row sum too small": (lambda: canonical(put(P2, 2, 0, 0.9)), r"P\[1, 0\] sums to 0\.9"),
    "row sum too large": (lambda: canonical(put(P2, 1, 0, 0.1)), r"P\[0, 1\] sums to 1\.1"),
    "row sum zero": (lambda: canonical(put(P2, 2, 0, 0.0)), r"P\[1, 0\] sums to 0"),
    "negative probability": (
        lambda: canonical([[1.5, -0.5], *P2[1:]]),
        r"P\[0, 0, 1\] is -0\.5",
    ),
    "NaN probability": (lambda: canonical(put(P2, 3, 1, NAN)), r"P\[1, 1, 1\] is nan"),
    "infinite probability": (lambda: canonical(put(P2, 3, 1, INF)), r"P\[1, 1, 1\] is inf"),
    "complex P": (lambda: canonical(np.array(P2) + 1j), "P is not an array of real numbers"),
    "complex sparse P": (lambda: canonical(sp.csr_array(np.array(P2) + 1j)), "P is not a matrix"),
    "text P": (lambda: canonical([["a", "b"]]), "P is not an array of real numbers"),
    "ragged P": (lambda: canonical([[1.0], [0.5, 0.5]]), "P is not an array of real numbers"),
    "P of one dimension": (lambda: canonical([1.0]), "P has 1 dimensions"),
    "P with a row missing": (lambda: canonical(P2[:3]), r"P has shape \(3, 2\) but R .* \(4, 2\)"),
    "P with a column too many": (lambda: canonical(np.eye(4)), r"P has shape \(4, 4\) but R"),
    "duplicate entries": (lambda: canonical(duplicated()), r"next state 0 twice in P\[0, 0\]"),
    "gamma negative": (lambda: canonical(gamma=-0.1), "gamma is -0.1; choose"),
    "gamma one": (lambda: canonical(gamma=1.0), "gamma is 1; choose"),
    "gamma above one": (lambda: canonical(gamma=1.5), "gamma is 1.5; choose"),
    "gamma NaN": (lambda: canonical(gamma=NAN), "gamma is nan; choose"),
    "gamma text": (lambda: canonical(gamma="high"), "gamma is 'high'; pass a number"),
    "gamma missing": (lambda: canonical(gamma=None), "gamma is None; pass a number"),
    "gamma too close to one": (
        lambda: FiniteMDP([[1.0 + 9e-9]], [[1.0]], 1 - 1e-9),
        "cannot be told from infinite ones; choose",
    ),
    "gamma one but for rounding": (
        lambda: canonical(gamma=1 - 1e-15),
        "cannot be told from infinite ones; choose",
    ),
    "R of one dimension": (lambda: canonical(R=[1.0, 2.0]), "R has 1 dimensions"),
    "R NaN": (lambda: canonical(R=put(R2, 1, 0, NAN)), r"R\[1, 0\] is nan; use a finite"),
    "R plus infinity": (lambda: canonical(R=put(R2, 0, 1, INF)), r"R\[0, 1\] is inf; use a finite"),
    "R text": (lambda: canonical(R=[["a", "b"]]), "R is not an array of real numbers"),
    "R empty": (lambda: canonical(np.empty((0, 0)), np.empty((0, 0))), "at least one state"),
    "R without actions": (lambda: canonical(R=np.empty((2, 0))), "at least one state and one"),
    "state without actions": (
        lambda: canonical([[0, 0], [0, 0], [1, 0], [1, 0]], [[-INF, -INF], [0, 0]]),
        "state 0 has no action; give every state",
    ),
    "entries for a forbidden action": (
        lambda: canonical(R=put(R2, 0, 1, -INF)),
        r"P\[0, 1\] has entries but R\[0, 1\] is -inf",
    ),
    "row that sums to one in float32 only": (
        lambda: canonical(put(P2, 0, slice(None), np.float32([0.3, 0.7]) + np.float32(1e-7))),
        "divide the row by its sum, in float64",
    ),
    "reward function": (
        lambda: FiniteMDP.from_functions(1, 1, lambda s, a: {0: 1.0}, lambda s, a: "x", 0.9),
        r"reward\(0, 0\) gave 'x'; return a number",
    ),
    "transition function": (
        lambda: FiniteMDP.from_functions(1, 1, lambda s, a: 0, lambda s, a: 1.0, 0.9),
        r"transition\(0, 0\) gave 0; return a dict",
    ),
    "no MDP to certify": (lambda: certify(P2, V=[1.0, 2.0]), "mdp is a list; pass a FiniteMDP"),
    "V too large": (lambda: certify(canonical(), V=[1e308, 0.0]), r"V\[0\] is 1e\+308; use finite"),
    "rho0 too short": (lambda: canonical(rho0=[1.0]), "rho0 has 1 entries where 2"),
    "rho0 negative": (lambda: canonical(rho0=[1.5, -0.5]), r"rho0\[1\] is -0.5"),
    "rho0 NaN": (lambda: canonical(rho0=[NAN, 1.0]), r"rho0\[0\] is nan"),
    "rho0 not normalised": (lambda: canonical(rho0=[0.5, 0.4]), "rho0 sums to 0.9; divide"),
    "rho0 a matrix": (lambda: canonical(rho0=[[1.0, 0.0]]), "rho0 has 2 dimensions"),
    "dense P of two dimensions": (
        lambda: FiniteMDP.from_dense(P2, R2, 0.9),
        "P has 2 dimensions",
    ),
    "dense P with unequal states": (
        lambda: FiniteMDP.from_dense(np.full((2, 3, 4), 0.25), np.zeros((2, 3)), 0.9),
        "2 states and 4 next states",
    ),
    "dense P in the other order": (
        lambda: FiniteMDP.from_dense(np.full((3, 2, 2), 0.5), np.zeros((2, 3)), 0.9),
        "the other order",
    ),
    "dense P empty": (
        lambda: FiniteMDP.from_dense(np.empty((0, 0, 0)), np.empty((0, 0)), 0.9),
        "non-empty",
    ),
    "unknown order": (
        lambda: FiniteMDP.from_dense(np.ones((1, 1, 1)), [[0.0]], 0.9, order="ssa"),
        "order is 'ssa'; use 'sas'",
    ),
    "dense R of another shape": (
        lambda: FiniteMDP.from_dense(np.ones((1, 1, 1)), [[0.0, 1.0]], 0.9),
        r"R has shape \(1, 2\) where P needs \(1, 1\)",
    ),
    "dense R per next state of another shape": (
        lambda: FiniteMDP.from_dense(np.ones((1, 1, 1)), np.ones((1, 1, 2)), 0.9),
        r"R has shape \(1, 1, 2\) where P has \(1, 1, 1\)",
    ),
    "mask of another shape": (
        lambda: FiniteMDP.from_dense(np.ones((1, 1, 1)), [[0.0]], 0.9, feasible=[True]),
        "feasible has shape",
    ),
    "mask of numbers": (
        lambda: FiniteMDP.from_dense(np.ones((1, 1, 1)), [[0.0]], 0.9, feasible=[[1]]),
        "pass booleans",
    ),
    "mask without actions": (
        lambda: FiniteMDP.from_dense(np.ones((1, 1, 1)), [[0.0]], 0.9, feasible=[[False]]),
        "state 0 has no action",
    ),
    "no sparse matrices": (lambda: FiniteMDP.from_sparse([], R2, 0.9), "P is an empty list"),
    "sparse matrices of two sizes": (
        lambda: FiniteMDP.from_sparse([sp.eye_array(2), sp.eye_array(3)], R2, 0.9),
        r"P\[1\] has shape \(3, 3\)",
    ),
    "sparse matrix not square": (
        lambda: FiniteMDP.from_sparse([sp.csr_array(np.ones((2, 3)))], R2, 0.9),
        r"P\[0\] has shape \(2, 3\)",
    ),
    "pair twice": (
        lambda: FiniteMDP.from_pairs([0, 0], [1, 1], [[1.0], [1.0]], [0, 0], 0.9),
        r"pair \(state 0, action 1\) is given at 0 and at 1",
    ),
    "pair of an unknown state": (
        lambda: FiniteMDP.from_pairs([0, 2], [0, 0], np.eye(2), [0, 0], 0.9),
        r"states\[1\] is 2; use integers from 0 to 1",
    ),
    "pair with a negative action": (
        lambda: FiniteMDP.from_pairs([0, 1], [0, -1], np.eye(2), [0, 0], 0.9),
        r"actions\[1\] is -1",
    ),
    "pairs of unequal length": (
        lambda: FiniteMDP.from_pairs([0], [0, 0], np.eye(2), [0, 0], 0.9),
        "states has 1 entries where 2",
    ),
    "pairs with fractional states": (
        lambda: FiniteMDP.from_pairs([0.5, 1.0], [0, 0], np.eye(2), [0, 0], 0.9),
        "states is not a list of integers",
    ),
    "pairs with too few rewards": (
        lambda: FiniteMDP.from_pairs([0, 1], [0, 0], np.eye(2), [0], 0.9),
        "R has 1 entries where P has 2",
    ),
    "no pairs": (
        lambda: FiniteMDP.from_pairs([], [], np.empty((0, 2)), [], 0.9),
        "at least one state-action pair",
    ),
    "state that no pair mentions": (
        lambda: FiniteMDP.from_pairs([0], [0], [[1.0, 0.0]], [0], 0.9),
        "state 1 has no action",
    ),
    "transition out of range": (lambda: functions(lambda s, a: {5: 1.0}), "leads to state 5"),
    "transition of another form": (
        lambda: functions(lambda s, a: [1.0]),
        r"transition\(0, 0\) gave",
    ),
    "transition not normalised": (lambda: functions(lambda s, a: {0: 0.3}), r"P\[0, 0\] sums to"),
    "transition twice": (
        lambda: functions(lambda s, a: [(1, 0.5), (1, 0.5)]),
        r"next state 1 twice in P\[0, 0\]",
    ),
    "no states": (lambda: functions(lambda s, a: {}, n_states=0), "at least one state"),
    "random without states": (lambda: random_mdp(0, 1, 1), "states is 0"),
    "random with too many successors": (lambda: random_mdp(3, 1, 4), "successors is 4 with 3"),
    "random with a negative seed": (lambda: random_mdp(3, 1, 1, seed=-1), "seed is -1"),
    "unknown method": (lambda: solve(MDP, "magic"), "method is 'magic'; use one of auto, alm"),
    "tolerance zero": (lambda: solve(MDP, tolerance=0.0), "tolerance is 0.0; use a positive"),
    "unknown option": (lambda: solve(MDP, speed=3), "option 'speed' is unknown to auto; use"),
    "no iterations": (lambda: solve(MDP, max_iterations=0), "max_iterations is 0; use a positive"),
    "half an iteration": (lambda: solve(MDP, "vi", max_iterations=1.5), "use a positive whole"),
    "mu negative": (lambda: solve(MDP, "alm", mu=-1.0), "mu is -1.0; use a positive number"),
    "tolerance text": (lambda: solve(MDP, tolerance="x"), "tolerance is 'x'; use a positive"),
    "no MDP": (lambda: solve(3), "mdp is a int; pass a FiniteMDP"),
    "rewards that overflow": (
        lambda: canonical(R=put(R2, 0, 0, 1e305)),
        "values overflow; measure",
    ),
    "unsound sparse matrix": (lambda: canonical(unsound()), "P is not a sound sparse matrix"),
    "one sparse matrix": (lambda: FiniteMDP.from_sparse(sp.eye_array(2), R2, 0.9), "pass a list"),
    "transition to half a state": (lambda: functions(lambda s, a: {0.5: 1.0}), r"gave \(0\.5, 1"),
    "x on a forbidden action": (
        lambda: certify(MASKED, V=[-10.0], x=[[0.0, 5.0]]),
        r"x\[0, 1\] is 5, but state 0 does not have action 1; use 0",
    ),
    "x NaN on a forbidden action": (lambda: certify(MASKED, x=[[1.0, NAN]]), r"x\[0, 1\] is nan"),
    "w NaN on a forbidden action": (lambda: solve(MASKED, w=[[1.0, NAN]]), r"w\[0, 1\] is nan"),
    "mixed policy next to one": (
        lambda: certify(
            FiniteMDP(np.ones((1000, 1)), np.full((1, 1000), -1.0), 1 - 5e-14),
            policy=np.full((1, 1000), 1e-3),
        ),
        "too close to one for the rounding errors of this policy; choose",
    ),
    "order of half an item": (
        lambda: gym.make("scal/Inventory-v0", disable_env_checker=True).unwrapped.step(-50),
        "action is -50; order a whole number from 0 to 100",
    ),
    "tolerance NaN": (lambda: solve(MDP, tolerance=NAN), "tolerance is nan; use a positive"),
    "nothing to certify": (lambda: certify(MDP), "pass V, policy or x"),
    "V too long": (lambda: certify(MDP, V=[0, 0, 0]), "V has 3 entries where 2"),
    "V NaN": (lambda: certify(MDP, V=[0, NAN]), r"V\[1\] is nan; use finite"),
    "V for a policy": (lambda: policy_from_values(MDP, [0.0]), "V has 1 entries where 2"),
    "policy with an unknown action": (lambda: certify(MDP, policy=[0, 2]), r"policy\[1\] is 2"),
    "policy with a forbidden action": (
        lambda: certify(MASKED, policy=[1]),
        r"policy\[0\] is 1, which state 0 does not have",
    ),
    "policy not normalised": (
        lambda: certify(MDP, policy=[[0.5, 0.5], [0.5, 0.4]]),
        r"policy\[1\] sums to 0.9",
    ),
    "policy negative": (
        lambda: certify(MDP, policy=[[1.5, -0.5], [1.0, 0.0]]),
        r"policy\[0, 1\] is -0.5",
    ),
    "policy on a forbidden action": (
        lambda: certify(MASKED, policy=[[0.5, 0.5]]),
        r"policy\[0, 1\] is 0.5; .* the state does not have",
    ),
    "policy too short": (lambda: certify(MDP, policy=[0]), "policy has 1 entries where 2"),
    "x of another shape": (lambda: certify(MDP, x=[[1.0]]), r"x has shape \(1, 1\); make it"),
    "x NaN": (lambda: policy_from_multipliers(MDP, put(R2, 0, 0, NAN)), r"x\[0, 0\] is nan"),
    "h infinite": (lambda: certify(MDP, V=[0, 0], h=put(R2, 1, 1, INF)), r"h\[1, 1\] is inf"),
    "w zero": (
        lambda: solve(MDP, "alm", w=[[0.5, 0.5], [0.0, 0.0]]),
        r"w\[1, 0\] is 0; use positive weights",
    ),
    "w not normalised": (lambda: solve(MDP, w=R2), "w sums to 10; divide"),
    "inventory without room": (lambda: scal.Inventory(capacity=0), "capacity is 0"),
    "inventory with a negative price": (lambda: scal.Inventory(price=-1.0), "price is -1.0"),
    "inventory with infinite demand": (lambda: scal.Inventory(demand=INF), "demand is inf"),
    "unknown problem": (lambda: find_problem("chess"), "problem 'chess' is unknown; use inventory"),
    "problem without a table": (lambda: find_problem("CartPole-v1"), "has no transition table"),
    "random problem cut short": (lambda: find_problem("random:3,2"), "is not of the form random:"),
    "missing file": (lambda: find_problem("nowhere.npz"), "file nowhere.npz does not exist"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_sentence(name):
    call, sentence = CASES[name]
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert caught.value.__cause__ is None
    message = str(caught.value)
    assert "\n" not in message
    assert re.search(r"; |, or ", message), "the sentence says how to fix it"


def test_enough_cases():
    assert len(CASES) >= 50


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: b"",
        lambda blob: b"not a zip archive",
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob[:-40],
        lambda blob: bytes([*blob[:200], *(255 - b for b in blob[200:260]), *blob[260:]]),
    ],
)
def test_damaged_file(tmp_path, damage):
    path = tmp_path / "mdp.npz"
    random_mdp(5, 2, 3).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"is not a whole scal-mdp-1 file"):
        FiniteMDP.load(path)


def test_foreign_and_inconsistent_files(tmp_path):
    path = tmp_path / "mdp.npz"
    np.savez(path, something=np.ones(3))
    with pytest.raises(ValueError, match=r"FiniteMDP.save did not write it\); write one with"):
        FiniteMDP.load(path)
    with open(path, "wb") as stream:
        np.save(stream, np.ones(3))
    with pytest.raises(ValueError, match="it is a single array"):
        FiniteMDP.load(path)
    random_mdp(5, 2, 3).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **(arrays | {"indices": arrays["indices"] + 3}))
    with pytest.raises(ValueError, match="indices must be < 5"):
        FiniteMDP.load(path)
    broken = arrays["indptr"].copy()
    broken[1] = 10**6
    np.savez(path, **(arrays | {"indptr": broken}))
    with pytest.raises(ValueError, match="is not a whole scal-mdp-1 file"):
        FiniteMDP.load(path)
    np.savez(path, **(arrays | {"gamma": np.array(1.5)}))
    with pytest.raises(ValueError, match=r"gamma is 1\.5"):
        FiniteMDP.load(path)
    np.savez(path, **(arrays | {"R": np.array([object()])}), allow_pickle=True)
    with pytest.raises(ValueError, match="is not a whole scal-mdp-1 file"):
        FiniteMDP.load(path)


def test_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "mdp.npz"
    mdp = random_mdp(5, 2, 3)
    mdp.save(path)
    before = path.read_bytes()

    def fail(stream, **arrays):
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        mdp.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match="does not exist; create it first"):
        mdp.save(tmp_path / "missing" / "mdp.npz")
