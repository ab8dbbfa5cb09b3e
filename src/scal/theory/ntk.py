"""Two-layer networks near their start (paper, section 5.2: neural tangent kernel).

    f_W(u) = 1/√m Σ_i b_i σ(W_i·u)                  σ = ReLU, b_i = ±1 fixed, W⁰_i ~ N(0, I/d)
    f⁰_W(u) = 1/√m Σ_i b_i 1{W⁰_i·u ≥ 0} W_i·u      its linearisation at the start W⁰
    Ξ = {‖φ − φ⁰‖ ≤ R, ‖θ − θ⁰‖ ≤ R}

Outer iteration k minimises the penalty objective L̃ (penalty.py) over V_φ and x_θ by the projected
gradient method with averaging,

    ζᵗ⁺¹ = Π_Ξ(ζᵗ − α ∇L̃(ζᵗ)),          ζ of iteration k + 1 = mean of ζ¹ … ζᵀ,

with α the inverse of the largest curvature of the linearised problem.

The slack is the h ≥ 0 that minimises L̃, that is Z = max{x' + μ(r + γPV − V), (1 − c/κ) x}, which
keeps L̃ convex in V and x. The paper's slack network has b_i = 1, so that it starts at about
√m·‖u‖/√(2πd) and cannot come down to h̃ by moving R; `initial_slack` measures it.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scal.mdp.model import FiniteMDP
from scal.mdp.policies import check_weights

Array = jax.Array


class Layer(NamedTuple):
    """A network at its start: outer signs b (m,) and inner weights W⁰ (m, d)."""

    b: Array
    W0: Array


class Networks(NamedTuple):
    """V on states and x on pairs, at their start."""

    V: Layer
    x: Layer


class Parameters(NamedTuple):
    """ζ = (φ, θ)."""

    phi: Array
    theta: Array


class Problem(NamedTuple):
    """An MDP over its L feasible pairs, and the inputs that stand for states and pairs."""

    P: Array
    """(L, S)"""
    r: Array
    rho0: Array
    w: Array
    gamma: float
    of: Array
    """The state of each pair (L,)."""
    states: Array
    """(S, d), of norm 1."""
    pairs: Array
    """(L, 2d), of norm 1."""


class Penalty(NamedTuple):
    """The constants of L̃."""

    mu: float
    beta: float
    c: float = 0.5


def embed(mdp: FiniteMDP, dimension: int, seed: int = 0) -> Problem:
    """Random unit vectors for states and for actions; a pair has both, divided by √2."""
    rng = np.random.default_rng(seed)
    s, a = np.nonzero(mdp.feasible)

    def sphere(count: int) -> Any:
        points = rng.normal(size=(count, dimension))
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    states, actions = sphere(mdp.n_states), sphere(mdp.n_actions)
    pairs = np.concatenate([states[s], actions[a]], axis=1) / np.sqrt(2.0)
    return Problem(
        P=jnp.asarray(mdp.P[s * mdp.n_actions + a].toarray()),
        r=jnp.asarray(mdp.R[s, a]),
        rho0=jnp.asarray(mdp.rho0),
        w=jnp.asarray(np.broadcast_to(check_weights(mdp), mdp.R.shape)[s, a]),
        gamma=mdp.gamma,
        of=jnp.asarray(s),
        states=jnp.asarray(states),
        pairs=jnp.asarray(pairs),
    )


def init_layer(key: Array, width: int, dimension: int, positive: bool = False) -> Layer:
    """b_i = ±1, or all 1 for the paper's slack; W⁰_i ~ N(0, I/d)."""
    sign_key, weight_key = jax.random.split(key)
    signs = jax.random.rademacher(sign_key, (width,), jnp.float32)
    W0 = jax.random.normal(weight_key, (width, dimension)) / jnp.sqrt(dimension)
    return Layer(jnp.ones(width) if positive else signs, W0)


def init_networks(key: Array, width: int, problem: Problem) -> Networks:
    """Both networks at random, of one width."""
    V_key, x_key = jax.random.split(key)
    return Networks(
        init_layer(V_key, width, problem.states.shape[1]),
        init_layer(x_key, width, problem.pairs.shape[1]),
    )


def evaluate(layer: Layer, W: Array, inputs: Array) -> Array:
    """f_W at some inputs."""
    return jax.nn.relu(inputs @ W.T) @ layer.b / jnp.sqrt(len(layer.b))


def linearised(layer: Layer, W: Array, inputs: Array) -> Array:
    """f⁰_W at some inputs."""
    active = inputs @ layer.W0.T >= 0.0
    return jnp.where(active, inputs @ W.T, 0.0) @ layer.b / jnp.sqrt(len(layer.b))


def linearisation_error(layer: Layer, W: Array, inputs: Array) -> Array:
    """f_W − f⁰_W, summed over the units whose sign has changed: no cancellation."""
    now = inputs @ W.T
    changed = (now >= 0.0).astype(now.dtype) - (inputs @ layer.W0.T >= 0.0)
    return (changed * now) @ layer.b / jnp.sqrt(len(layer.b))


Direction = Literal["random", "coherent"]


def move(key: Array, layer: Layer, R: float, direction: Direction) -> Array:
    """A point W with ‖W − W⁰‖ = R.

    `random`: every unit its own way, so that errors of different signs cancel. `coherent`: all
    units with b_i = 1 the same way, so that they add up.
    """
    if direction == "random":
        step = jax.random.normal(key, layer.W0.shape)
    else:
        way = jax.random.normal(key, layer.W0.shape[1:])
        step = jnp.maximum(layer.b, 0.0)[:, None] * way
    return layer.W0 + R * step / jnp.linalg.norm(step)


def penalty_loss(V: Array, x: Array, old: Array, problem: Problem, penalty: Penalty) -> Array:
    """L̃ after minimising over h ≥ 0, for x' = `old`."""
    mu, beta, c = penalty
    target = problem.r + problem.gamma * (problem.P @ V)
    free = old + mu * (target - V[problem.of])
    Z = jnp.maximum(free, (1.0 - c / (mu * beta)) * x)
    terms = c / mu * x * Z + 0.5 * beta * (x - Z) ** 2
    return problem.rho0 @ V + (problem.w * terms).sum()


def functions(
    networks: Networks, at: Parameters, problem: Problem, linear: bool
) -> tuple[Array, Array]:
    """V_φ and x_θ, or their linearisations, on all states and pairs."""
    f = linearised if linear else evaluate
    return f(networks.V, at.phi, problem.states), f(networks.x, at.theta, problem.pairs)


def curvature(networks: Networks, problem: Problem, penalty: Penalty) -> Array:
    """The largest eigenvalue of the Hessian of L̃ in ζ, linearised and with h free."""
    S, mu, beta, c = len(problem.states), *penalty
    bellman = problem.gamma * problem.P - jax.nn.one_hot(problem.of, S)
    to_Z = jnp.concatenate([mu * bellman, jnp.zeros((len(bellman), len(bellman)))], axis=1)
    to_x = jnp.concatenate([jnp.zeros(bellman.shape), jnp.eye(len(bellman))], axis=1)
    cross = to_x.T @ (problem.w[:, None] * to_Z)
    H = beta * (to_x.T @ (problem.w[:, None] * to_x) + to_Z.T @ (problem.w[:, None] * to_Z))
    H += (c / mu - beta) * (cross + cross.T)
    root = jax.scipy.linalg.block_diag(
        _kernel_root(networks.V, problem.states), _kernel_root(networks.x, problem.pairs)
    )
    return jnp.linalg.eigvalsh(root @ H @ root.T)[-1]


def _kernel_root(layer: Layer, inputs: Array) -> Array:
    """K^½ of the tangent kernel K(u, v) = u·v · share of units active at both."""
    active = (inputs @ layer.W0.T >= 0.0).astype(inputs.dtype)
    values, vectors = jnp.linalg.eigh((inputs @ inputs.T) * (active @ active.T) / len(layer.b))
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0)) @ vectors.T


class Averages(NamedTuple):
    """V and x at the averaged parameters after every stretch, and the last of these."""

    V: Array
    """(times, S)"""
    x: Array
    """(times, L)"""
    at: Parameters
    """The mean of ζ¹ … ζᵀ: where the next outer iteration starts."""


def start(networks: Networks) -> Parameters:
    """ζ⁰."""
    return Parameters(networks.V.W0, networks.x.W0)


@partial(jax.jit, static_argnames=("times", "linear"))
def descend(
    networks: Networks,
    at: Parameters,
    old: Array,
    problem: Problem,
    penalty: Penalty,
    R: float,
    steps: int,
    times: int = 1,
    linear: bool = False,
) -> Averages:
    """The projected gradient method from `at`, on the networks or on their linearisations.

    `times` stretches of `steps` steps each; averages are over all steps from `at` on.
    """
    alpha = 1.0 / curvature(networks, problem, penalty)
    centre = start(networks)

    def loss(at: Parameters) -> Array:
        return penalty_loss(*functions(networks, at, problem, linear), old, problem, penalty)

    def step(_: int, carry: tuple[Parameters, Parameters]) -> tuple[Parameters, Parameters]:
        at, total = carry
        at = jax.tree.map(lambda p, g: p - alpha * g, at, jax.grad(loss)(at))
        at = jax.tree.map(partial(_project, R), centre, at)
        return at, jax.tree.map(jnp.add, total, at)

    def stretch(carry: tuple[Parameters, Parameters], number: Array) -> Any:
        carry = jax.lax.fori_loop(0, steps, step, carry)
        mean = jax.tree.map(lambda total: total / ((number + 1) * steps), carry[1])
        return carry, functions(networks, mean, problem, linear)

    begun = (at, jax.tree.map(jnp.zeros_like, at))
    (_, total), (V, x) = jax.lax.scan(stretch, begun, jnp.arange(times))
    return Averages(V, x, jax.tree.map(lambda part: part / (times * steps), total))


def _project(R: float, centre: Array, W: Array) -> Array:
    """The nearest point of the ball ‖W − centre‖ ≤ R."""
    moved = W - centre
    return centre + moved * jnp.minimum(1.0, R / (jnp.linalg.norm(moved) + 1e-30))


def initial_slack(key: Array, width: int, inputs: Array) -> Array:
    """The mean of the paper's slack network at its start."""
    layer = init_layer(key, width, inputs.shape[1], positive=True)
    return evaluate(layer, layer.W0, inputs).mean()
