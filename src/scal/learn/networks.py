"""The three unknowns as networks (paper, section 6.1).

    V(s)      a perceptron; a second head says how far TD errors at s spread
    h(s, a)   discrete:   C · softplus(y_a(s) − 2), one output per action
              continuous: C · (1 − exp(−‖a − c(s)‖²)), zero at the centre c(s)
              either:     a closed form of the mean target y(s, a), two perceptrons with
              normalised layers
    x(s, ·)   a trunk with two heads: the mass x₁(s) > 0, and the policy x₂(s),
              logits of a softmax or the mean of a Gaussian before the tanh, whose deviations,
              one per dimension and the same in all states, are parameters too

Where observations are frames, convolutional layers come first, for each of the three its own.

Where actions are ordered, like amounts, a logit is a sum over the levels below and above its
action, so that what is learned of one amount holds for its neighbours too.

A network is written as layers, a layer being what gradient clipping calls one, and kept as a single
vector: a step of Adam, a move of a target and a call from Python cost by the array, not by the
number of weights.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import PyTreeDef, register_dataclass

from scal.envs.functional import Spaces
from scal.envs.levels import levels
from scal.learn.config import Config
from scal.learn.convolution import Layer, embed, embedded_size, init_convolution

Array = jax.Array

SIGMA_BOUNDS = (0.1, 1.35)
"""σ is learned between these, from its start if that is lower."""

SIGMA_SPEED = 0.3
"""How fast log σ moves, relative to a weight: noise that shrinks early settles for too little."""

NOISY_DIMENSIONS = 3
"""More dimensions than these share the noise of so many: in eight joints at once, noise that lets a
hopper hop throws an ant over."""


class Value(NamedTuple):
    """The layers of V and of the spread of its TD errors."""

    convolution: list[Layer]
    trunk: list[Layer]
    value: Layer
    spread: Layer


class Slack(NamedTuple):
    """The layers of h."""

    convolution: list[Layer]
    trunk: list[Layer]


class Lookahead(NamedTuple):
    """The layers of y, in the place of those of h."""

    convolution: list[Layer]
    trunks: list[list[Layer]]
    """Two, of different starts."""


class Multiplier(NamedTuple):
    """The layers of x."""

    convolution: list[Layer]
    trunk: list[Layer]
    mass: Layer
    policy: Layer
    log_sigma: Array
    """Of continuous actions, relative to the option `sigma`, over `SIGMA_SPEED`."""


class Gaussian(NamedTuple):
    """x₂ of continuous actions."""

    mean: Array
    sigma: Array


@dataclass(frozen=True)
class Layout:
    """How a vector is cut into the arrays of a tree."""

    tree: PyTreeDef
    shapes: tuple[tuple[int, ...], ...]


@register_dataclass
@dataclass(frozen=True)
class Parameters:
    """All weights of a network, in one vector."""

    vector: Array
    layout: Layout = field(metadata={"static": True})

    @classmethod
    def of(cls, layers: Any) -> "Parameters":
        """The weights of some layers."""
        leaves, tree = jax.tree.flatten(layers)
        return cls(_join(layers), Layout(tree, tuple(leaf.shape for leaf in leaves)))

    @property
    def layers(self) -> Any:
        """The layers, differentiable."""
        return _cut(self.layout, self.vector)

    def map_layers(self, change: Callable[[Any], Any]) -> "Parameters":
        """Every layer changed, and every array that is in none."""
        layers = jax.tree.map(change, self.layers, is_leaf=lambda node: isinstance(node, Layer))
        return Parameters.of(layers)


class Networks(NamedTuple):
    """Parameters of all three."""

    value: Parameters
    """φ"""
    slack: Parameters
    """ψ"""
    multiplier: Parameters
    """θ"""


def init_networks(key: Array, spaces: Spaces, config: Config) -> Networks:
    """Random parameters; V starts near 0, x₁ near 1, the policy near uniform."""
    keys = jax.random.split(key, 6)
    hidden = [embedded_size(spaces), *[config.width] * config.depth]
    return Networks(
        value=Parameters.of(
            Value(
                convolution=init_convolution(keys[0], spaces),
                trunk=_layers(keys[0], hidden),
                value=_layer(keys[5], hidden[-1], 1, 0.01),
                spread=_layer(keys[5], hidden[-1], 1, 0.0),  # zeros, whatever the key
            )
        ),
        slack=Parameters.of(
            _lookahead(keys[1], spaces, config)
            if config.slack == "lookahead"
            else Slack(
                convolution=init_convolution(keys[1], spaces),
                trunk=_layers(keys[1], [*hidden, spaces.action_size]),
            )
        ),
        multiplier=Parameters.of(
            Multiplier(
                convolution=init_convolution(keys[2], spaces),
                trunk=_layers(keys[2], hidden),
                mass=_layer(keys[3], hidden[-1], 1, 0.0),
                policy=_layer(keys[4], hidden[-1], spaces.action_size, 0.01),
                log_sigma=jnp.zeros(0 if spaces.discrete else spaces.action_size),
            )
        ),
    )


def value(phi: Parameters, observation: Array) -> Array:
    """V(s)."""
    return value_and_spread(phi, observation)[0]


def value_and_spread(phi: Parameters, observation: Array) -> tuple[Array, Array]:
    """V(s), and the logarithm of the spread at s relative to that of all states.

    The spread uses V's features and does not shape them.
    """
    layers: Value = phi.layers
    features = jnp.tanh(_mlp(layers.trunk, embed(layers.convolution, observation)))
    spread = _affine(layers.spread, jax.lax.stop_gradient(features))[..., 0]
    return _affine(layers.value, features)[..., 0], jnp.clip(spread, -5.0, 5.0)


def slack(psi: Parameters, observation: Array, action: Array, discrete: bool, C: float) -> Array:
    """h(s, a) ≥ 0; a continuous action is given before the tanh."""
    layers: Slack = psi.layers
    output = _mlp(layers.trunk, embed(layers.convolution, observation))
    if discrete:
        return C * jax.nn.softplus(_pick(output, action) - 2.0)
    return C * (1.0 - jnp.exp(-jnp.sum((jnp.tanh(action) - output) ** 2, axis=-1)))


def lookahead(psi: Parameters, observation: Array, action: Array) -> Array:
    """Both estimates of y(s, a), along a first axis; the action is given before the tanh."""
    layers: Lookahead = psi.layers
    seen = jnp.concatenate([embed(layers.convolution, observation), jnp.tanh(action)], axis=-1)
    return _estimates(layers, seen)[..., 0]


def lookahead_of_all(psi: Parameters, observation: Array, spaces: Spaces) -> Array:
    """Both estimates of y(s, ·), one output per discrete action, along a first axis."""
    layers: Lookahead = psi.layers
    return _by_action(_estimates(layers, embed(layers.convolution, observation)), spaces)


def heads(
    theta: Parameters, observation: Array, spaces: Spaces, config: Config
) -> tuple[Array, Any]:
    """x₁(s) and x₂(s): logits, or a `Gaussian`."""
    layers: Multiplier = theta.layers
    features = jnp.tanh(_mlp(layers.trunk, embed(layers.convolution, observation)))
    one = jnp.log(jnp.expm1(1.0))
    mass = jax.nn.softplus(_affine(layers.mass, features)[..., 0] + one)
    head = _affine(layers.policy, features)
    if not spaces.discrete:
        sigma = jnp.full(spaces.action_size, config.sigma)
        if config.learn_sigma:
            sigma = sigma * math.sqrt(noise_share(spaces))
            change = jnp.exp(SIGMA_SPEED * layers.log_sigma)
            low, high = SIGMA_BOUNDS
            sigma = jnp.clip(sigma * change, jnp.minimum(low, sigma), high)
        return mass, Gaussian(head, sigma)
    return mass, _by_action(head, spaces)


def noise_share(spaces: Spaces) -> float:
    """How much of its variance each dimension has where there are many."""
    return 1.0 if spaces.discrete else min(1.0, NOISY_DIMENSIONS / spaces.action_size)


def _by_action(outputs: Array, spaces: Spaces) -> Array:
    """An output per discrete action; where these are ordered, sums over levels below and above."""
    if not spaces.ordered:
        return outputs
    count = spaces.action_size
    reached = levels(jnp.arange(1, count + 1), 0, count, xp=jnp)  # by each action
    return outputs @ (reached.T / math.sqrt(count))


def _join(layers: Any) -> Array:
    return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(layers)])


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _cut(layout: Layout, vector: Array) -> Any:
    """The tree of a vector. Its derivative joins the parts; autodiff would pad and add them."""
    leaves, end = [], 0
    for shape in layout.shapes:
        start, end = end, end + math.prod(shape)
        leaves.append(vector[..., start:end].reshape(*vector.shape[:-1], *shape))
    return jax.tree.unflatten(layout.tree, leaves)


def _cut_forward(layout: Layout, vector: Array) -> tuple[Any, None]:
    return _cut(layout, vector), None


def _cut_backward(layout: Layout, _: None, gradient: Any) -> tuple[Array]:
    return (_join(gradient),)


_cut.defvjp(_cut_forward, _cut_backward)


def _pick(outputs: Array, action: Array) -> Array:
    return jnp.take_along_axis(outputs, action[..., None], axis=-1)[..., 0]


def _layer(key: Array, inputs: int, outputs: int, scale: float) -> Layer:
    weight = jax.nn.initializers.orthogonal(scale)(key, (inputs, outputs), jnp.float32)
    return Layer(weight, jnp.zeros(outputs))


def _layers(key: Array, sizes: list[int]) -> list[Layer]:
    """Layers whose outputs vary as much as their inputs.

    An orthogonal matrix keeps the norm: shared among more outputs than inputs, it would leave each
    too little for tanh to bend.
    """
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        _layer(k, inputs, outputs, math.sqrt(max(1.0, outputs / inputs)))
        for k, inputs, outputs in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def _lookahead(key: Array, spaces: Spaces, config: Config) -> Lookahead:
    convolution_key, *keys = jax.random.split(key, 5)
    width, outputs = config.lookahead_width, spaces.action_size if spaces.discrete else 1
    sizes = [
        embedded_size(spaces) + (0 if spaces.discrete else spaces.action_size),
        *[width] * config.depth,
    ]
    return Lookahead(
        convolution=init_convolution(convolution_key, spaces),
        trunks=[
            [*_layers(keys[2 * n], sizes), _layer(keys[2 * n + 1], width, outputs, 0.01)]
            for n in (0, 1)
        ],
    )


def _estimates(layers: Lookahead, seen: Array) -> Array:
    def estimate(trunk: list[Layer]) -> Array:
        features = seen
        for layer in trunk[:-1]:
            features = jax.nn.relu(_normal(_affine(layer, features)))
        return _affine(trunk[-1], features)

    return jnp.stack([estimate(trunk) for trunk in layers.trunks])


def _normal(outputs: Array) -> Array:
    """The outputs of a layer with mean zero and variance one."""
    return jax.nn.standardize(outputs, epsilon=1e-5)


def _affine(layer: Layer, x: Array) -> Array:
    return x @ layer.weight + layer.bias


def _mlp(layers: list[Layer], x: Array) -> Array:
    for layer in layers[:-1]:
        x = jnp.tanh(_affine(layer, x))
    return _affine(layers[-1], x)
