"""Sparse matrix times vector on all cores.

SciPy multiplies on one core, but lets go of the interpreter while it does. Cut into blocks of
rows, which are views, the same product runs on every core at the speed of the memory.
"""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import scipy.sparse as sp

from scal.mdp.types import Array

SMALL = 200_000
"""Stored entries below which one thread is faster than several."""


class RowBlocks:
    """A CSR matrix as consecutive blocks of rows; a block holds a multiple of `group` rows."""

    def __init__(self, matrix: sp.csr_array, group: int = 1) -> None:
        cores = _cores() if matrix.nnz >= SMALL else 1
        self.rows, self.columns = matrix.shape
        cuts = np.linspace(0, self.rows // group, cores + 1).astype(int) * group
        self.blocks = [
            (slice(start, stop), _view(matrix, start, stop))
            for start, stop in itertools.pairwise(cuts)
        ]

    def each(self, work: Callable[[slice, sp.csr_array], None]) -> None:
        """Run `work(rows, block)` on every block, in parallel, one of them on this very thread."""
        others = [_pool().submit(work, *block) for block in self.blocks[1:]]
        work(*self.blocks[0])
        for other in others:
            other.result()

    def __matmul__(self, vector: Array) -> Array:
        if len(self.blocks) == 1:
            return np.asarray(self.blocks[0][1] @ vector)
        out = np.empty(self.rows)

        def multiply(rows: slice, block: sp.csr_array) -> None:
            out[rows] = block @ vector

        self.each(multiply)
        return out


def _view(matrix: sp.csr_array, start: int, stop: int) -> sp.csr_array:
    if stop - start == matrix.shape[0]:
        return matrix
    first, last = matrix.indptr[start], matrix.indptr[stop]
    return sp.csr_array(
        (
            matrix.data[first:last],
            matrix.indices[first:last],
            matrix.indptr[start : stop + 1] - first,
        ),
        shape=(stop - start, matrix.shape[1]),
    )


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_cores(), thread_name_prefix="scal")
