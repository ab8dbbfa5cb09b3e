"""Checkpoints hold what is there, and give it back bit for bit."""

import jax
import jax.numpy as jnp
import pytest

from scal.run import checkpoint

TREE = {
    "ring": jnp.zeros((1_000, 2, 3)).at[4, 1, 2].set(7.0),
    "empty": jnp.zeros((4, 2)),
    "vector": jnp.array([1.0, 0.0, 0.0]),
    "count": jnp.int32(4),
    "key": jax.random.key(3),
}


def test_rows_of_zeros_at_the_end_take_no_space(tmp_path):
    arrays, _ = checkpoint.read(checkpoint.save(tmp_path, TREE, {"steps": 1}))
    assert arrays["['ring']"].shape == (5, 2, 3)
    assert arrays["['empty']"].shape == (0, 2)
    assert checkpoint.digest(checkpoint.restore(TREE, arrays)) == checkpoint.digest(TREE)


def test_another_shape_is_refused(tmp_path):
    arrays, _ = checkpoint.read(checkpoint.save(tmp_path, TREE, {"steps": 1}))
    for ring in (jnp.zeros((3, 2, 3)), jnp.zeros((1_000, 2, 4)), jnp.zeros(6)):
        with pytest.raises(ValueError, match="checkpoint holds"):
            checkpoint.restore(TREE | {"ring": ring}, arrays)
