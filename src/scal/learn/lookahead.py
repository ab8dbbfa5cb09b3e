"""The objective at the policy's own actions, with a network of the mean target.

    y_ψ(s, a) ≈ E[r + γV̄(s') | s, a]         fitted to replayed transitions
    u = x₂(s) + σε,  ε ~ N(0, 1)              an action of the policy as it is now

A replayed action is one that an older policy chose, and what is known of its target is a single
sample. The objective weighs it by π/π_b, so that only a short window is of use, and sees z in the
place of Z = E[z], so that the closed slack is biased by noise. At u, with y_ψ(s, u) for the target,

    z = x̄₁(s) + μ (h + y_ψ(s, u) − V(s)),    h = [V(s) − y_ψ(s, u) − x̄₁(s)/μ]₊

neither is so: w·x ∝ π holds with x = x₁(s), and all that was ever seen can be replayed. The step of
the policy follows the same direction as the fit of x to z, which is, where the slack is zero,

    E_{π_b}[(z − x)∇x] = μ x₁ E_π[(y_ψ − V)∇log π] = μ x₁ ∇_θ E_ε[y_ψ(s, x₂ + σε)]

but along the action instead of along log π, whose variance grows with the dimension of actions. It
is a proximal step, as those of V and x are: KL(π‖π̄) holds it near the target policy.

Discrete actions are not drawn: all of them are looked at, each with its weight π(a|s).

There are two networks y_ψ. Where they differ, the lower one is believed: a policy that looks for
the largest y finds the errors that make it large.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from scal.envs.functional import Spaces
from scal.learn import networks as nets
from scal.learn import policy
from scal.learn.config import Config
from scal.learn.networks import Networks, Parameters
from scal.learn.replay import Transition

Array = jax.Array


class Own(NamedTuple):
    """The terms of the objective at the policy's own actions, these along a first axis."""

    target: Array
    """y_ψ(s, a), differentiable along continuous actions"""
    weight: Array
    """π(a|s) of all discrete actions; 1 of the continuous one that was drawn"""
    x: Array
    """x₁(s)"""
    x_target: Array
    """x̄₁(s)"""
    entropy: Array
    """−E[log π], of ā tanh(u) for continuous actions"""
    divergence: Array
    """KL(π‖π̄)"""


def at_own_actions(
    networks: Networks,
    theta_target: Parameters,
    observation: Array,
    noise: Array | None,
    spaces: Spaces,
    config: Config,
) -> Own:
    """The terms at all discrete actions, or at u = x₂(s) + σε."""
    x, head = nets.heads(networks.multiplier, observation, spaces, config)
    x_target, head_target = nets.heads(theta_target, observation, spaces, config)
    psi = jax.lax.stop_gradient(networks.slack)
    if spaces.discrete:
        target = nets.lookahead_of_all(psi, observation, spaces).min(axis=0).T
        log_pi = jax.nn.log_softmax(head).T
        weight = jnp.exp(log_pi)
    else:
        assert noise is not None
        action = head.mean + head.sigma * noise
        target = nets.lookahead(psi, observation, action).min(axis=0)[None]
        slope = policy.log_tanh_slope(action).sum(axis=-1)
        log_pi = (policy.log_prob(head, action, spaces) - slope)[None]
        weight = jnp.ones_like(target)
    return Own(
        target=target,
        weight=weight,
        x=x,
        x_target=x_target,
        entropy=-expected(weight, log_pi),
        divergence=policy.divergence(head, head_target, spaces),
    )


def expected(weight: Array | None, term: Array) -> Array:
    """The mean over the policy's own actions; of a replayed one, which has no weight, itself."""
    return term if weight is None else jnp.sum(weight * term, axis=0)


def fit(psi: Parameters, rows: Transition, target: Array, unit: Array, spaces: Spaces) -> Array:
    """½ Σ (y_ψ(s, a) − y)², in units, over both networks."""
    if spaces.discrete:
        found = nets.lookahead_of_all(psi, rows.observation, spaces)
        found = jnp.take_along_axis(found, rows.action[None, :, None], axis=-1)[..., 0]
    else:
        found = nets.lookahead(psi, rows.observation, rows.action)
    return 0.5 * jnp.sum(((found - target) / unit) ** 2, axis=0)


def follow(own: Own, unit: Array, spaces: Spaces, config: Config) -> Array:
    """KL(π‖π̄) − ν E[y_ψ(s, a) − α log π(a|s)], what the policy minimises.

    Where D dimensions share the noise, α falls by D for the sum over them, and by √D for the unit,
    of which each makes up so much.
    """
    entropy = config.entropy * nets.noise_share(spaces) ** 1.5 * own.entropy
    gain = expected(own.weight, own.target) / unit + entropy
    return own.divergence - config.policy_step * gain
