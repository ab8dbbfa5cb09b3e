"""Shared MDPs. Warnings are errors (pyproject.toml), and so are floating-point surprises."""

import os
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp

from scal import FiniteMDP


def pytest_configure(config: pytest.Config) -> None:
    """What one test has compiled no other compiles again, nor the processes that they start."""
    assert config.cache is not None
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("jax")))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    # XLA tells of programs from the cache that it tuned them for this very machine
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(autouse=True)
def _strict_floats() -> Iterator[None]:
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield


def random_instance(seed: int) -> FiniteMDP:
    """An MDP of 1 to 40 states: sparse or dense, masked or not, any γ up to .999, any scale."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(1, 41)), int(rng.integers(1, 7))
    density = rng.choice([1.0, 0.3, 0.05])
    P = rng.random((S * A, S)) ** rng.choice([1, 6])
    P *= rng.random(P.shape) < density
    P[np.arange(S * A), rng.integers(0, S, S * A)] += 0.1
    P /= P.sum(axis=1, keepdims=True)
    R = rng.normal(size=(S, A)) if rng.random() < 0.7 else rng.integers(0, 3, (S, A)).astype(float)
    R *= 10.0 ** rng.integers(-2, 3)
    if rng.random() < 0.5:
        forbidden = rng.random((S, A)) < 0.4
        forbidden[np.arange(S), rng.integers(0, A, S)] = False
        R[forbidden] = -np.inf
        P[forbidden.ravel()] = 0.0
    rho0 = rng.random(S) * (rng.random(S) < rng.choice([1.0, 0.5]))
    rho0 = rho0 / rho0.sum() if rho0.sum() > 0 else None
    gamma = float(rng.choice([0.0, 0.5, 0.9, 0.99, 0.999, rng.random()]))
    return FiniteMDP(sp.csr_array(P), R, gamma, rho0)
