"""The composite objective against the paper's closed forms, and the double-sampling obstacle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scal import objective
from scal.envs.functional import Spaces
from scal.learn import networks as nets
from scal.learn import policy
from scal.learn.config import PAPER

SPACES = {
    "discrete": Spaces(3, 4, discrete=True),
    "continuous": Spaces(3, 2, discrete=False, action_scale=(1.0, 1.0)),
}


@pytest.mark.parametrize("kind", SPACES)
def test_autodiff_equals_the_paper(kind):
    """Equation (grad_tems): g, q and m, assembled by hand from ∇V, ∇h and ∇x."""
    spaces, mu, beta = SPACES[kind], 0.7, 3.0
    keys = jax.random.split(jax.random.key(1), 4)
    networks = nets.init_networks(keys[0], spaces, PAPER)
    targets = nets.init_networks(keys[1], spaces, PAPER)
    s0, s, s2 = jax.random.normal(keys[2], (3, 3))
    action = jnp.int32(2) if spaces.discrete else jax.random.normal(keys[3], (2,))
    reward, gamma = 0.8, 0.9

    def V(phi, s):
        return nets.value(phi, s)

    def h(psi):
        return nets.slack(psi, s, action, spaces.discrete, 0.5)

    def x(theta):
        mass, head = nets.heads(theta, s, spaces, PAPER)
        log_pi = policy.log_prob(head, action, spaces)
        return policy.multiplier(mass, log_pi, 0.0, action, spaces, PAPER)

    def z(n):
        target = reward + gamma * V(targets.value, s2)
        return objective.z(mu, x(targets.multiplier), h(n.slack), target, V(n.value, s))

    def loss(n):
        return objective.composite(mu, beta, V(n.value, s0), x(n.multiplier), z(n))

    found = jax.grad(loss)(networks)
    e = beta * (z(networks) - x(networks.multiplier))
    F = x(networks.multiplier) + mu * e
    grad_V = jax.grad(V)
    g = jax.tree.map(lambda a, b: a - F * b, grad_V(networks.value, s0), grad_V(networks.value, s))
    q = jax.tree.map(lambda a: F * a, jax.grad(h)(networks.slack))
    m = jax.tree.map(lambda a: (z(networks) - mu * e) / mu * a, jax.grad(x)(networks.multiplier))
    for name, ours, theirs in zip("gqm", found, (g, q, m), strict=True):
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-4 * (1 + np.abs(b).max()), err_msg=name)


@pytest.mark.parametrize("kind", SPACES)
def test_density_integrates_to_the_mass(kind):
    """x/x₁ is a probability over actions: Σ_a π = 1, ∫ π(a) da = 1 on [−1, 1]²."""
    spaces = SPACES[kind]
    networks = nets.init_networks(jax.random.key(0), spaces, PAPER)
    mass, head = nets.heads(networks.multiplier, jnp.array([0.3, -1.0, 2.0]), spaces, PAPER)
    if spaces.discrete:
        actions, weight = jnp.arange(4), 1.0
    else:
        axis = np.linspace(-1, 1, 1202)[1:-1]
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        actions, weight = jnp.arctanh(jnp.asarray(grid)), (axis[1] - axis[0]) ** 2
    many = jax.tree.map(lambda part: jnp.broadcast_to(part, (len(actions), len(part))), head)
    log_pi = policy.log_prob(many, actions, spaces)
    x = policy.multiplier(mass, log_pi, jnp.zeros(len(actions)), actions, spaces, PAPER)
    assert float(x.sum() * weight) == pytest.approx(float(mass), rel=2e-3)


def tables():
    """A stochastic MDP of 3 states and 2 actions, with random V, h, x, w."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    V, h, x, x_old, r, w = (
        rng.normal(size=3),
        rng.random((3, 2)),
        rng.random((3, 2)),
        rng.random((3, 2)),
        rng.normal(size=(3, 2)),
        rng.dirichlet(np.ones(6)).reshape(3, 2),
    )
    return P, V, h, x, x_old, r, w


def test_sampled_gradient_is_unbiased_and_the_naive_one_is_not():
    """The mean of ∇L̂ over transitions is the exact semi-gradient of the composite objective.

    For the squared residual z², one sample of s' in both factors is off by the variance of s'.
    """
    P, V, h, x, x_old, r, w = tables()
    mu, beta, gamma = 0.5, 4.0, 0.9
    V_bar = V + 0.3
    with jax.enable_x64(True):

        def sampled(V, h, x, s, a, s2):
            z = objective.z(mu, x_old[s, a], h[s, a], r[s, a] + gamma * V_bar[s2], V[s])
            return objective.composite(mu, beta, V[0], x[s, a], z)

        def exact(V, h, x):
            target = r + gamma * jnp.einsum("sat,t->sa", P, V_bar)
            Z = objective.z(mu, x_old, h, target, V[:, None])
            return (w * objective.composite(mu, beta, V[0], x, Z)).sum()

        unknowns = [jnp.asarray(part) for part in (V, h, x)]
        expected = [np.zeros_like(part) for part in (V, h, x)]
        naive = np.zeros(3)
        for s in range(3):
            for a in range(2):
                for s2 in range(3):
                    chance = w[s, a] * P[s, a, s2]
                    gradients = jax.grad(sampled, argnums=(0, 1, 2))(
                        *map(jnp.asarray, (V, h, x)), s, a, s2
                    )
                    for total, gradient in zip(expected, gradients, strict=True):
                        total += chance * np.asarray(gradient)

                    def square(V, s=s, a=a, s2=s2):
                        return (
                            objective.z(mu, x_old[s, a], h[s, a], r[s, a] + gamma * V[s2], V[s])
                            ** 2
                        )

                    naive += chance * np.asarray(jax.grad(square)(jnp.asarray(V)))
        truth = jax.grad(exact, (0, 1, 2))(*unknowns)
        for found, wanted in zip(expected, truth, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)

        def full_square(V):
            Z = objective.z(mu, x_old, h, r + gamma * jnp.einsum("sat,t->sa", P, V), V[:, None])
            return (w * Z**2).sum()

        bias = np.abs(naive - np.asarray(jax.grad(full_square)(jnp.asarray(V)))).max()
    assert bias > 1e-2
