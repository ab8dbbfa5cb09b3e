"""The convolutional layers that embed frames, ahead of the perceptrons (paper, section 6.1).

    screens   16 filters of 8×8 every 4 pixels, then 32 of 4×4 every 2       (Mnih et al., 2013)
    boards    16 filters of 4×4 every 2 pixels

The declared shape alone decides which; a filter's side decides its stride. Zeros are added below
and to the right where the last filters would not fit, so that every pixel is seen.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from scal.envs.functional import SCREEN, Spaces

Array = jax.Array

SCREEN_FILTERS = ((16, 8), (32, 4))
BOARD_FILTERS = ((16, 4),)
"""(filters, side) of every layer."""


class Layer(NamedTuple):
    """An affine map, of all inputs or of every patch."""

    weight: Array
    """(inputs, outputs), or (side, side, planes, filters)."""
    bias: Array


def stride(side: int) -> int:
    """How far apart filters of that side are applied.

    >>> [stride(8), stride(4)]
    [4, 2]
    """
    return side // 2


def init_convolution(key: Array, spaces: Spaces) -> list[Layer]:
    """Random layers; none if observations are vectors."""
    draw = jax.nn.initializers.orthogonal(math.sqrt(2.0))
    return [
        Layer(draw(jax.random.fold_in(key, number), shape, jnp.float32), jnp.zeros(shape[-1]))
        for number, shape in enumerate(_shapes(spaces), 1)
    ]


def embedded_size(spaces: Spaces) -> int:
    """Length of what `embed` returns.

    >>> embedded_size(Spaces(4 * 84 * 84, 6, discrete=True, image=(1, 84, 84), stack=4))
    2592
    """
    shapes = _shapes(spaces)
    if not shapes:
        return spaces.observation_size
    _, *sides = spaces.image
    for side, *_ in shapes:
        sides = [(length + _missing(length, side) - side) // stride(side) + 1 for length in sides]
    return math.prod(sides) * shapes[-1][-1]


def embed(layers: list[Layer], observation: Array) -> Array:
    """Frames (…, planes, height, width) as vectors; without layers, vectors as they are."""
    if not layers:
        return observation
    *many, _, height, width = observation.shape
    pixels = jnp.moveaxis(observation.reshape(-1, *observation.shape[-3:]), 1, -1)
    apply = _convolve if min(height, width) >= SCREEN else _convolve_patches
    for layer in layers:
        side = layer.weight.shape[0]
        missing = [(0, _missing(length, side)) for length in pixels.shape[1:3]]
        pixels = jax.nn.relu(apply(layer, jnp.pad(pixels, [(0, 0), *missing, (0, 0)])))
    return pixels.reshape(*many, math.prod(pixels.shape[1:]))


def _shapes(spaces: Spaces) -> list[tuple[int, int, int, int]]:
    """Of the weights."""
    if not spaces.image:
        return []
    filters = SCREEN_FILTERS if spaces.screen else BOARD_FILTERS
    inputs = [spaces.stack * spaces.image[0], *(count for count, _ in filters)]
    return [
        (side, side, planes, count) for planes, (count, side) in zip(inputs, filters, strict=False)
    ]


def _missing(length: int, side: int) -> int:
    """Pixels to add so that filters fit."""
    return max(side - length, (side - length) % stride(side))


def _convolve(layer: Layer, pixels: Array) -> Array:
    step = stride(layer.weight.shape[0])
    names = ("NHWC", "HWIO", "NHWC")
    return layer.bias + jax.lax.conv_general_dilated(
        pixels, layer.weight, (step, step), "VALID", dimension_numbers=names
    )


def _convolve_patches(layer: Layer, pixels: Array) -> Array:
    """The same as one matrix product: in a compiled loop on a CPU several times as fast."""
    side, *_, filters = layer.weight.shape
    step = stride(side)
    rows, columns = ((length - side) // step + 1 for length in pixels.shape[1:3])
    shifted = [
        pixels[:, i : i + step * rows : step, j : j + step * columns : step]
        for i in range(side)
        for j in range(side)
    ]
    return jnp.concatenate(shifted, axis=-1) @ layer.weight.reshape(-1, filters) + layer.bias
