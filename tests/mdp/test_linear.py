"""The linear systems of a policy against dense algebra, on chains that mix fast and slowly."""

import numpy as np
import pytest
import scipy.sparse as sp

from scal.mdp import linear
from scal.mdp.kernels import RowBlocks


def chain(kind: str, S: int) -> sp.csr_array:
    rng = np.random.default_rng(S)
    if kind == "random":
        P = rng.random((S, S)) * (rng.random((S, S)) < 20 / S) + 1e-3 * np.eye(S)
        return sp.csr_array(P / P.sum(axis=1, keepdims=True))
    if kind == "walk":
        half = np.full(S - 1, 0.5)
        ends = np.zeros(S)
        ends[[0, -1]] = 0.5
        return sp.csr_array(sp.diags_array([ends, half, half], offsets=[0, 1, -1]))
    if kind == "cycle":
        return sp.csr_array((np.ones(S), (np.arange(S), (np.arange(S) + 1) % S)), shape=(S, S))
    blocks = [chain("random", S // 2), chain("random", S - S // 2)]
    return sp.csr_array(sp.block_diag(blocks, format="csr"))


@pytest.mark.parametrize("strong", ["factor", "krylov"])
@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("kind", ["random", "walk", "cycle", "two islands"])
@pytest.mark.parametrize("S", [40, 700])
def test_against_dense_algebra(S, kind, gamma, strong, monkeypatch):
    monkeypatch.setattr(linear, "FACTOR_STATES", 5000 if strong == "factor" else 0)
    P = chain(kind, S)
    rng = np.random.default_rng(0)
    r, rho0 = rng.normal(size=S), rng.random(S)
    rho0 /= rho0.sum()
    dense = np.eye(S) - gamma * P.toarray()
    V = linear.values(P, r, gamma)
    np.testing.assert_allclose(V, np.linalg.solve(dense, r), atol=1e-10 / (1 - gamma))
    d = linear.occupancy(P, rho0, gamma)
    np.testing.assert_allclose(d, np.linalg.solve(dense.T, rho0), atol=1e-10 / (1 - gamma))
    for error in (1e-2, 1e-6):
        rough = linear.values(P, r, gamma, start=np.zeros(S), error=error)
        assert np.abs(rough - V).max() <= error


def test_row_blocks_multiply_like_one_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    M = sp.csr_array(rng.random((60, 9)) * (rng.random((60, 9)) < 0.5))
    for small in (0, 10**9):
        monkeypatch.setattr("scal.mdp.kernels.SMALL", small)
        blocks = RowBlocks(M, group=5)
        assert all(rows.start % 5 == 0 for rows, _ in blocks.blocks)
        v = rng.random(9)
        np.testing.assert_array_equal(blocks @ v, M @ v)
