"""The two estimators of the Lagrangian's gradient, measured on a learner (paper, section 7.1).

    g₁ = ∇V(s₀) + x(s, a) (γ∇V(s') − ∇V(s))          what SCAL uses
    g₂ = ∇V(s₀) + z(s, a, s') (γ∇V(s') − ∇V(s))       one sample in place of the expectation Z

A variance is E‖g − E g‖², over the transitions that the behaviour policy meets. The part that is
left when s, a and s₀ are held fixed, and only s' is drawn anew, is where the two differ if
transitions are random: both factors of g₂ see the same s', which makes it biased, too.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from scal import objective
from scal.envs.functional import FunctionalEnv
from scal.learn import networks as nets
from scal.learn import policy, scal, statistics, terms
from scal.learn.config import Config
from scal.learn.replay import Transition
from scal.learn.scal import Learner

Array = jax.Array

COPIES, STEPS, EVERY = 16, 256, 8
"""Copies of the environment, steps of each, and how many of them make one sample."""
SUCCESSORS = 8
"""Times that s' is drawn."""


class Variances(NamedTuple):
    """Of g₁ and of g₂."""

    x: Array
    z: Array
    x_given_sa: Array
    z_given_sa: Array


def check(config: Config) -> None:
    """Raise ValueError if there are no two estimators to compare."""
    if config.slack == "lookahead":
        raise ValueError(
            "the default takes its gradient at the policy's own actions, where there is no sample "
            "in the place of Z; compare the estimators with the preset replayed or paper"
        )


@partial(jax.jit, static_argnames=("env", "config"))
def variances(learners: Learner, key: Array, env: FunctionalEnv, config: Config) -> Variances:
    """Of every learner along the first axis."""
    check(config)
    keys = jax.random.split(key, len(learners.updates))
    return jax.lax.map(lambda both: _variances(both[0], both[1], env, config), (learners, keys))


def _variances(learner: Learner, key: Array, env: FunctionalEnv, config: Config) -> Variances:
    walk_key, start_key, next_key = jax.random.split(key, 3)
    states, actions, log_probs = _walk(learner, walk_key, env, config)
    count = len(log_probs)
    starts = jax.vmap(env.reset)(jax.random.split(start_key, count))
    keys = jax.random.split(next_key, (count, SUCCESSORS))

    def of_pair(state: Any, action: Array, log_prob: Array, start: Any, keys: Array) -> Any:
        def once(key: Array) -> tuple[Array, Array]:
            return _estimates(learner, env, config, state, action, log_prob, start, key)

        return jax.vmap(once)(keys)

    g1, g2 = jax.vmap(of_pair)(states, actions, log_probs, starts, keys)
    return Variances(
        _variance(g1[:, 0]),
        _variance(g2[:, 0]),
        *(SUCCESSORS / (SUCCESSORS - 1) * jax.vmap(_variance)(g).mean() for g in (g1, g2)),
    )


def _walk(
    learner: Learner, key: Array, env: FunctionalEnv, config: Config
) -> tuple[Any, Array, Array]:
    """States, actions and their log-probabilities that the behaviour policy meets."""

    def step(carry: tuple[Any, Array], key: Array) -> tuple[Any, Any]:
        states, ages = carry
        act_key, step_key, reset_key = jax.random.split(key, 3)
        seen = jax.vmap(env.observe)(states)
        _, choice = scal.act(learner._replace(key=act_key), seen, env.spaces, config)
        action = policy.environment_action(choice.action, env.spaces)
        after, _, terminated = jax.vmap(env.step)(
            jax.random.split(step_key, COPIES), states, action
        )
        ended = terminated | (ages + 1 >= env.time_limit)
        fresh = jax.vmap(env.reset)(jax.random.split(reset_key, COPIES))
        following = jax.tree.map(
            lambda new, old: jax.vmap(jnp.where)(ended, new, old), fresh, after
        )
        return (following, jnp.where(ended, 0, ages + 1)), (states, *choice)

    reset_key, key = jax.random.split(key)
    first = jax.vmap(env.reset)(jax.random.split(reset_key, COPIES))
    carry = (first, jnp.zeros(COPIES, jnp.int32))
    _, met = jax.lax.scan(step, carry, jax.random.split(key, STEPS))
    kept = jax.tree.map(lambda leaf: leaf[EVERY - 1 :: EVERY], met)
    flat: tuple[Any, Array, Array] = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), kept
    )
    return flat


def _estimates(
    learner: Learner,
    env: FunctionalEnv,
    config: Config,
    state: Any,
    action: Array,
    log_prob: Array,
    start: Any,
    key: Array,
) -> tuple[Array, Array]:
    """g₁ and g₂ of one transition."""
    see = partial(terms.perceive, learner.statistics, config=config)
    after, reward, terminated = env.step(key, state, policy.environment_action(action, env.spaces))
    now, then, first = (see(env.observe(one)) for one in (state, after, start))
    phi = learner.networks.value
    (V, log_spread), dV = _value_and_gradient(phi, now)
    (V_next, _), dV_next = _value_and_gradient(phi, then)
    _, dV0 = _value_and_gradient(phi, first)
    alive = 1.0 - terminated.astype(jnp.float32)

    stats = learner.statistics
    scale = statistics.reward_scale(stats) if config.scale_rewards else 1.0
    unit = terms.td_unit(stats, log_spread, config)
    row = Transition(now, action, log_prob, reward, then, terminated, terminated)
    x, _ = terms.multiplier(learner.networks.multiplier, row, env.spaces, config)
    y = (scale * reward + config.gamma * alive * V_next) / unit
    h = terms.slack(learner.networks.slack, row, x, y, V / unit, env.spaces, config)
    z = objective.z(config.mu, x, h, y, V / unit)
    change = config.gamma * alive * dV_next - dV
    return dV0 + x * change, dV0 + z * change


def _value_and_gradient(phi: nets.Parameters, seen: Array) -> tuple[tuple[Array, Array], Array]:
    """V(s) with its spread, and ∇V(s)."""

    def value(vector: Array) -> tuple[Array, tuple[Array, Array]]:
        V, spread = nets.value_and_spread(nets.Parameters(vector, phi.layout), seen)
        return V, (V, spread)

    gradient, both = jax.grad(value, has_aux=True)(phi.vector)
    return both, gradient


def _variance(g: Array) -> Array:
    """E‖g − E g‖² over the first axis."""
    return ((g - g.mean(axis=0)) ** 2).sum(axis=1).mean()
