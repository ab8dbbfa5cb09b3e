"""MDPs on disk: plain .npz arrays, read without pickle, written whole or not at all."""

import os
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FORMAT = "scal-mdp-1"
FIELDS = ("data", "indices", "indptr", "R", "gamma", "rho0")


def save_arrays(path: str | PathLike[str], **arrays: Any) -> None:
    """Write arrays to an .npz file; a file already there survives a failed write."""
    target = Path(path)
    if not target.parent.is_dir():
        raise ValueError(f"folder {target.parent} does not exist; create it first")
    partial = target.with_name(target.name + ".partial")
    try:
        with open(partial, "wb") as stream:
            np.savez(stream, **arrays)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def save_mdp(
    path: str | PathLike[str], P: sp.csr_array, R: NDArray[Any], gamma: float, rho0: NDArray[Any]
) -> None:
    """Write the canonical storage of an MDP."""
    save_arrays(
        path,
        format=FORMAT,
        data=P.data,
        indices=P.indices,
        indptr=P.indptr,
        R=R,
        gamma=gamma,
        rho0=rho0,
    )


def load_mdp(path: str | PathLike[str]) -> tuple[sp.csr_array, NDArray[Any], float, NDArray[Any]]:
    """Read the canonical storage of an MDP: P, R, gamma, rho0."""
    if not Path(path).is_file():
        raise ValueError(f"file {path} does not exist; write one with FiniteMDP.save")
    try:
        with open(path, "rb") as stream:
            stored = np.load(stream, allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            if "format" not in stored or str(stored["format"]) != FORMAT:
                raise ValueError("FiniteMDP.save did not write it")
            data, indices, indptr, R, gamma, rho0 = (stored[name] for name in FIELDS)
        shape = (R.size, R.shape[0])
        if not all(np.issubdtype(part.dtype, np.integer) for part in (indices, indptr)):
            raise ValueError("indices are not whole numbers")
        P = sp.csr_array((data, indices, indptr), shape=shape)
        P.check_format(full_check=True)
        return P, R, float(gamma), rho0
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        OSError,
        EOFError,
        zipfile.BadZipFile,
    ) as e:
        raise ValueError(
            f"file {path} is not a whole {FORMAT} file ({_reason(e)}); "
            "write one with FiniteMDP.from_dense(P, R, gamma).save(FILE)"
        ) from None


def _reason(error: Exception) -> str:
    """What went wrong, without NumPy's advice to load the file unsafely."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return "it is no .npz archive" if "pickle" in text else text
