"""Checkpoints that cannot execute code: safetensors for arrays, JSON for the rest.

A checkpoint is a folder, written beside its place and renamed into it, so that it is whole or not
there. The manifest holds the sha256 of the arrays; loading verifies it. The last two are kept.

Rows of zeros at the end of an array are left out: a buffer takes the space of what it holds.
"""

import hashlib
import json
import operator
import os
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

FORMAT = "scal-checkpoint-7"
KEPT = 2
RUNS = "checkpoints"
"""Where a run has them, in its folder."""


def save(folder: Path, tree: Any, facts: dict[str, Any]) -> Path:
    """Write `tree` and `facts` as folder/step-N, N being facts["steps"]."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"step-{facts['steps']:012d}"
    partial = folder / f".{target.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    blob = save_tensors({name: _used(np.asarray(leaf)) for name, leaf in _named(tree).items()})
    (partial / "arrays.safetensors").write_bytes(blob)
    manifest = {"format": FORMAT, "sha256": hashlib.sha256(blob).hexdigest(), **facts}
    (partial / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    shutil.rmtree(target, ignore_errors=True)
    os.replace(partial, target)
    for old in _all(folder)[:-KEPT]:
        shutil.rmtree(old)
    return target


def latest(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The newest checkpoint that can be read, in a folder of checkpoints or of a run."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; name the one that was saved to")
    found = sorted([*_all(folder), *_all(folder / RUNS)], key=lambda path: path.name)
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
    """The arrays in the shape of `template`."""
    named = _named(template)
    if set(named) != set(arrays):
        raise ValueError("checkpoint belongs to another configuration; load it with its own")
    leaves, structure = jax.tree.flatten(template)
    values = []
    for name, leaf in zip(named, leaves, strict=True):
        array = _filled(arrays[name], leaf.shape)
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            array = jax.random.wrap_key_data(array)
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise ValueError(f"checkpoint holds {name} of shape {array.shape}, not {leaf.shape}")
        values.append(array)
    return jax.tree.unflatten(structure, values)


def apart(tree: Any, count: int) -> list[Any]:
    """The trees that stand side by side in one."""
    return [jax.tree.map(operator.itemgetter(number), tree) for number in range(count)]


def abreast(trees: list[Any]) -> Any:
    """Trees side by side in one."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


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


def _all(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"))


def _named(tree: Any) -> dict[str, Any]:
    """Leaves by path; random keys as their data."""
    named = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        named[jax.tree_util.keystr(path)] = leaf
    return named
