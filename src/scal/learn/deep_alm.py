"""The deep parameterised augmented Lagrangian method (paper, section 3).

Outer iteration k holds the multiplier θ^k, and every update is an inner step t of it, with

    z = x_{θ^k} + μ (h_ψ + r + γV_φ(s') − V_φ(s))
    L̃ = E[V_φ(s₀)] + E[x_θ z]/μ                     the composite objective at β = 0

    θ ← θ − β_θ (x_θ − z) ∇x_θ                      (update-x), z at the old φ, ψ
    φ ← φ − β_φ ∇_φ L̃                               (update-V), x at the new θ
    ψ ← ψ − β_ψ ∇_ψ L̃                               (update-h), x at the new θ

x_θ stands in for Z = E[z], so that ∇_φ L̃ = ∇V(s₀) + x (γ∇V(s') − ∇V(s)) needs one s' only and keeps
γ∇V(s'): V has no target network, φ̄ is φ. L̃ is linear in V and h, so that ∇_ψ L̃ = x∇h is the same at
the old φ and at the new one, and (update-V) and (update-h) share one differentiation.

The iteration ends, and θ^{k+1} is θ, after `inner_steps` steps, or when x fits z no better than
before: every ten steps the mean of (x − z)² over them is compared with that over the ten before,
and must have fallen by the share `inner_tolerance`.

With `auxiliary`, a network y_τ of the shape of x takes the place of x_θ in all three, and a fourth
step fits x_θ to y_τ; θ acts, and is what the next iteration holds.

Steps are those of Adam on clipped gradients, V(s₀) has the weight 1 − γ, so that E[x] is 1 where no
episode terminates, and z counts in `units` of the TD error and sees the multi-step y, as in SCAL.
With the slack in its closed form z is [x_{θ^k} + μ(y − V)]₊ and there is no ψ.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from scal import objective
from scal.envs.functional import Spaces
from scal.learn import scal, terms
from scal.learn.config import Config
from scal.learn.metrics import measure
from scal.learn.networks import Networks, Parameters
from scal.learn.replay import Batch, Transition
from scal.learn.scal import Learner, act, observe

__all__ = ["Inner", "act", "init", "observe", "update", "update_on"]

Array = jax.Array
BLOCK = 10
"""Steps over which the error of x is averaged before it is judged."""


class Multiplier(NamedTuple):
    """A network of the shape of x, and its moments."""

    network: Parameters
    mean: Parameters
    square: Parameters


class Inner(NamedTuple):
    """Where an outer iteration stands."""

    steps: Array
    """Inner steps taken."""
    error: Array
    """Sum of (x − z)² over the steps of this block."""
    error_before: Array
    """Of the block before, ∞ in the first."""
    auxiliary: Multiplier | None
    """τ"""


def init(key: Array, spaces: Spaces, config: Config) -> Learner:
    """Random networks, τ equal to θ, an empty buffer."""
    learner = scal.init(key, spaces, config)
    zero = jnp.zeros(())
    tau = _multiplier(learner) if config.auxiliary else None
    inner = Inner(jnp.zeros((), jnp.int32), zero, jnp.full((), jnp.inf), tau)
    return learner._replace(inner=inner)


def update(learner: Learner, spaces: Spaces, config: Config) -> tuple[Learner, Array]:
    """One inner step on a sample of D; the array holds the metrics."""
    config = scal.at_present(learner, config)
    learner, batch = scal.draw(learner, spaces, config)
    return update_on(learner, batch, spaces, config)


def update_on(
    learner: Learner, batch: Batch, spaces: Spaces, config: Config
) -> tuple[Learner, Array]:
    """One inner step on a given batch."""
    learner, batch, target = scal.examine(learner, batch, spaces, config)
    inner = learner.inner
    assert inner is not None
    loss = partial(_loss, learner=learner, batch=batch, target=target, spaces=spaces, config=config)
    tau = inner.auxiliary
    before = learner if tau is None else _with(learner, tau)
    primal = ["value", "slack"] if config.slack == "network" else ["value"]
    gradients, (error, metrics) = jax.grad(loss, has_aux=True)(before.networks)
    moved = scal.descend(before, before, ["multiplier"], gradients, config)
    gradients, _ = jax.grad(loss, has_aux=True)(moved.networks)
    moved = scal.descend(before, moved, primal, gradients, config)
    if tau is not None:
        tau = _multiplier(moved)
        moved = _with(moved, _multiplier(learner))
        first = _first(batch)
        y, _ = terms.multiplier(tau.network, first, spaces, config)
        gradients = jax.grad(_follow)(moved.networks, y, first, spaces, config)
        moved = scal.descend(learner, moved, ["multiplier"], gradients, config)
    moved = moved._replace(inner=inner._replace(auxiliary=tau))
    return _end(moved, error, config), metrics


def _loss(
    networks: Networks,
    learner: Learner,
    batch: Batch,
    target: Array,
    spaces: Spaces,
    config: Config,
) -> tuple[Array, tuple[Array, Array]]:
    """L̃ as a function of φ and ψ, ½E[(x − z)²] as one of θ; the error of x, and the metrics."""
    first, stats = _first(batch), learner.statistics
    fixed = jax.lax.stop_gradient
    V, V_next, V0, log_spread = terms.values(networks.value, batch, config)
    unit = terms.td_unit(stats, log_spread, config)
    x, log_pi = terms.multiplier(networks.multiplier, first, spaces, config)
    x_k, _ = terms.multiplier(learner.multiplier_target, first, spaces, config)
    h = terms.slack(networks.slack, first, x_k, target / unit, V / unit, spaces, config)
    after = config.gamma * jnp.where(first.terminated, 0.0, V_next)
    y = target / unit + (after - fixed(after))  # its gradient is γ∇V(s')
    z = objective.z(config.mu, fixed(x_k), h, y, terms.in_units(V, unit))

    start = (1.0 - config.gamma) * terms.in_units(V0, unit)
    error = (x - fixed(z)) ** 2
    loss = objective.composite(config.mu, 0.0, start, fixed(x), z) + 0.5 * error
    if config.units == "state":
        td_error = (target - fixed(V)) / stats.td_rms
        loss = loss + fixed(x_k) * terms.spread_loss(td_error, log_spread)
    full = dataclasses.replace(config, flow=1.0, theta_step="regression")
    metrics = measure(first, target, V, V0, h, x, x, log_pi, stats, full)
    return loss.mean(), (fixed(error.mean()), metrics)


def _follow(
    networks: Networks, y: Array, first: Transition, spaces: Spaces, config: Config
) -> Array:
    """½E[(x − y)²]."""
    x, _ = terms.multiplier(networks.multiplier, first, spaces, config)
    return 0.5 * jnp.mean((x - y) ** 2)


def _end(learner: Learner, error: Array, config: Config) -> Learner:
    """Count the step; if it was the last of its outer iteration, θ is the next θ^k."""
    assert learner.inner is not None
    inner, networks = learner.inner, learner.networks
    steps, error = inner.steps + 1, inner.error + error
    judged = steps % BLOCK == 0
    kept = 1.0 - config.inner_tolerance
    stalled = judged & (kept < 1.0) & (error > kept * inner.error_before)
    over = stalled | (steps >= config.inner_steps)
    error_before = jnp.where(judged, error, inner.error_before)
    return learner._replace(
        value_target=networks.value,
        multiplier_target=jax.tree.map(
            lambda old, new: jnp.where(over, new, old),
            learner.multiplier_target,
            networks.multiplier,
        ),
        averaged=scal.average(learner, config),
        updates=learner.updates + 1,
        inner=inner._replace(
            steps=jnp.where(over, 0, steps),
            error=jnp.where(judged | over, 0.0, error),
            error_before=jnp.where(over, jnp.inf, error_before),
        ),
    )


def _first(batch: Batch) -> Transition:
    return jax.tree.map(lambda field: field[:, 0], batch.window)


def _multiplier(learner: Learner) -> Multiplier:
    """What stands in the place of θ."""
    moments = learner.moments
    return Multiplier(learner.networks.multiplier, moments.mu.multiplier, moments.nu.multiplier)


def _with(learner: Learner, part: Multiplier) -> Learner:
    """Put something in the place of θ."""
    moments = learner.moments
    return learner._replace(
        networks=learner.networks._replace(multiplier=part.network),
        moments=moments._replace(
            mu=moments.mu._replace(multiplier=part.mean),
            nu=moments.nu._replace(multiplier=part.square),
        ),
    )
