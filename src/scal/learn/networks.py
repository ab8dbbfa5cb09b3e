"""The three unknowns as networks (paper, section 6.1).

    V(s)      a perceptron
    h(s, a)   discrete:   C · softplus(y_a(s) − 2), one output per action
              continuous: C · (1 − exp(−‖a − c(s)‖²)), zero at the centre c(s)
    x(s, ·)   a trunk with two heads: the mass x₁(s) > 0, and the policy x₂(s),
              logits of a softmax or the mean of a Gaussian before the tanh

Parameters are plain pytrees of layers; a layer is what gradient clipping calls one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from scal.envs.functional import Spaces
from scal.learn.config import Config

Array = jax.Array


class Layer(NamedTuple):
    """An affine map."""

    weight: Array
    bias: Array


class Multiplier(NamedTuple):
    """Parameters θ of x."""

    trunk: list[Layer]
    mass: Layer
    policy: Layer


class Networks(NamedTuple):
    """Parameters of all three."""

    value: list[Layer]
    """φ"""
    slack: list[Layer]
    """ψ"""
    multiplier: Multiplier
    """θ"""


def init_networks(key: Array, spaces: Spaces, config: Config) -> Networks:
    """Random parameters; V starts near 0, x₁ near 1, the policy near uniform."""
    keys = jax.random.split(key, 6)
    hidden = [spaces.observation_size, *[config.width] * config.depth]
    return Networks(
        value=[*_layers(keys[0], hidden), _layer(keys[5], hidden[-1], 1, 0.01)],
        slack=_layers(keys[1], [*hidden, spaces.action_size]),
        multiplier=Multiplier(
            trunk=_layers(keys[2], hidden),
            mass=_layer(keys[3], hidden[-1], 1, 0.0),
            policy=_layer(keys[4], hidden[-1], spaces.action_size, 0.01),
        ),
    )


def value(phi: list[Layer], observation: Array) -> Array:
    """V(s)."""
    return _mlp(phi, observation)[..., 0]


def slack(psi: list[Layer], observation: Array, action: Array, discrete: bool, C: float) -> Array:
    """h(s, a) ≥ 0; a continuous action is given before the tanh."""
    output = _mlp(psi, observation)
    if discrete:
        return C * jax.nn.softplus(_pick(output, action) - 2.0)
    return C * (1.0 - jnp.exp(-jnp.sum((jnp.tanh(action) - output) ** 2, axis=-1)))


def heads(theta: Multiplier, observation: Array) -> tuple[Array, Array]:
    """x₁(s), and the raw second head."""
    features = jnp.tanh(_mlp(theta.trunk, observation))
    one = jnp.log(jnp.expm1(1.0))
    mass = jax.nn.softplus(_affine(theta.mass, features)[..., 0] + one)
    return mass, _affine(theta.policy, features)


def _pick(outputs: Array, action: Array) -> Array:
    return jnp.take_along_axis(outputs, action[..., None], axis=-1)[..., 0]


def _layer(key: Array, inputs: int, outputs: int, scale: float) -> Layer:
    weight = jax.nn.initializers.orthogonal(scale)(key, (inputs, outputs), jnp.float32)
    return Layer(weight, jnp.zeros(outputs))


def _layers(key: Array, sizes: list[int]) -> list[Layer]:
    keys = jax.random.split(key, len(sizes) - 1)
    return [_layer(k, i, o, 1.0) for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True)]


def _affine(layer: Layer, x: Array) -> Array:
    return x @ layer.weight + layer.bias


def _mlp(layers: list[Layer], x: Array) -> Array:
    for layer in layers[:-1]:
        x = jnp.tanh(_affine(layer, x))
    return _affine(layers[-1], x)
