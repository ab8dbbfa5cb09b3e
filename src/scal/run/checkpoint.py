"""Checkpoints that cannot execute code: safetensors for arrays, JSON for the rest.

A checkpoint is a folder, written beside its place and renamed into it, so that it is whole or not
there. Its name counts the saves, of which the last two are kept. The manifest holds the sha256 of
the arrays; loading verifies it.

Rows of zeros at the end of an array are left out: a buffer takes the space of what it holds.
"""

import hashlib
import json
import operator
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

FORMAT = "scal-checkpoint-9"
KEPT = 2
RUNS = "checkpoints"
"""Where a run has them, in its folder."""


def save(folder: Path, tree: Any, facts: dict[str, Any]) -> Path:
    """Write `tree` and `facts` as folder/save-K-step-N, N being facts["steps"]."""
    folder = _home(folder)
    folder.mkdir(parents=True, exist_ok=True)
    last = max(map(_count, _all(folder)), default=0)
    target = folder / f"save-{last + 1:06d}-step-{facts['steps']}"
    partial = folder / f".{target.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    blob = save_tensors({name: _used(np.asarray(leaf)) for name, leaf in _named(tree).items()})
    (partial / "arrays.safetensors").write_bytes(blob)
    manifest = {"format": FORMAT, "sha256": hashlib.sha256(blob).hexdigest(), **facts}
    (partial / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    os.replace(partial, target)
    for old in _all(folder)[:-KEPT]:
        shutil.rmtree(old)
    return target


def latest(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The newest checkpoint that can be read, in a folder of checkpoints or of a run."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; name the one that was saved to")
    found = _all(_home(folder))
    if not found:
        raise ValueError(
            f"folder {folder} holds no checkpoint; name one that scal train or save has written"
        )
    problems = []
    for path in reversed(found):
        try:
            return read(path)
        except ValueError as error:
            problems.append(str(error))
    raise ValueError(problems[0])


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays by name, and the manifest, verified."""
    try:
        manifest = json.loads((path / "manifest.json").read_text())
        blob = (path / "arrays.safetensors").read_bytes()
        other = manifest["format"] != FORMAT
        if not other and hashlib.sha256(blob).hexdigest() != manifest["sha256"]:
            raise ValueError("its arrays are not those that were written")
        arrays = {} if other else load_tensors(blob)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise ValueError(
            f"checkpoint {path} is damaged ({error}); restore it from a copy, or train anew"
        ) from None
    if other:
        raise ValueError(
            f"checkpoint {path} is of another version of scal ({manifest['format']}, here "
            f"{FORMAT}); use the version that wrote it, or train anew"
        )
    return arrays, manifest


def restore(template: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The arrays in the shape of `template`, which may hold shapes only."""
    paths, structure = jax.tree_util.tree_flatten_with_path(template)
    leaves = {jax.tree_util.keystr(path): leaf for path, leaf in paths}
    if set(leaves) != set(arrays):
        raise ValueError("checkpoint belongs to another configuration; load it with its own")
    values = []
    for name, leaf in leaves.items():
        array = _filled(arrays[name], leaf.shape)
        if _is_key(leaf):
            array = jax.random.wrap_key_data(array)
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise ValueError(f"checkpoint holds {name} of shape {array.shape}, not {leaf.shape}")
        values.append(array)
    return jax.tree.unflatten(structure, values)


def apart(tree: Any, count: int) -> list[Any]:
    """The trees that stand side by side in one, as views of arrays on the host."""
    here = jax.tree.map(_on_host, tree)
    return [jax.tree.map(operator.itemgetter(number), here) for number in range(count)]


def restore_abreast(template: Any, arrays: dict[str, np.ndarray], count: int) -> Any:
    """What `apart` took apart, side by side again, in the shape of `template`."""
    one = jax.eval_shape(partial(jax.tree.map, operator.itemgetter(0)), template)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *restore([one] * count, arrays))


def digest(tree: Any) -> str:
    """sha256 of a pytree's contents."""
    total = hashlib.sha256()
    for name, leaf in _named(tree).items():
        total.update(name.encode())
        total.update(np.asarray(leaf).tobytes())
    return total.hexdigest()


def _used(array: np.ndarray) -> np.ndarray:
    """The array without its last rows, where they are zeros."""
    if array.ndim < 2:
        return array
    used = np.flatnonzero(array.any(axis=tuple(range(1, array.ndim))))
    return array[: used[-1] + 1 if len(used) else 0]


def _filled(array: np.ndarray, shape: tuple[int, ...]) -> jax.Array:
    """The array with the rows that `_used` left out."""
    missing = shape[0] - len(array) if array.ndim > 1 and len(shape) > 1 else 0
    if missing <= 0:
        return jnp.asarray(array)
    return jnp.asarray(np.pad(array, [(0, missing), *[(0, 0)] * (array.ndim - 1)]))


def _home(folder: Path) -> Path:
    """Where a folder has its checkpoints, be it that of a run or not."""
    return folder / RUNS if (folder / RUNS).is_dir() else folder


def _all(folder: Path) -> list[Path]:
    """Checkpoints in the order in which they were saved."""
    return sorted(folder.glob("save-*-step-*"), key=_count)


def _count(path: Path) -> int:
    return int(path.name.split("-")[1])


def _named(tree: Any) -> dict[str, Any]:
    """Leaves by path; random keys as their data."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): _data(leaf) for path, leaf in leaves}


def _data(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _on_host(leaf: Any) -> Any:
    return leaf if _is_key(leaf) else np.asarray(leaf)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
