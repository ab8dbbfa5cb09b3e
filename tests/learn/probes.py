"""Environments so small that value, slack and policy are known: learning must find them."""

import jax.numpy as jnp

from scal.envs.functional import FunctionalEnv, Spaces

GAMMA = 0.9


def bandit() -> FunctionalEnv:
    """One state, two actions, rewards 0 and 1, ends at once: V = 1, act 1."""
    return FunctionalEnv(
        "bandit",
        Spaces(1, 2, discrete=True),
        time_limit=10,
        reset=lambda key: jnp.zeros(()),
        observe=lambda state: jnp.ones(1),
        step=lambda key, state, action: (state, action.astype(jnp.float32), jnp.ones((), bool)),
    )


def delayed() -> FunctionalEnv:
    """Two states: action 1 leads on, and only its second use pays 1. V = (γ, 1)."""

    def step(key, state, action):
        right = action == 1
        reward = jnp.where((state == 1) & right, 1.0, 0.0)
        return jnp.ones((), jnp.int32), reward, (state == 1) | ~right

    return FunctionalEnv(
        "delayed",
        Spaces(2, 2, discrete=True),
        time_limit=10,
        reset=lambda key: jnp.zeros((), jnp.int32),
        observe=lambda state: jnp.stack([state == 0, state == 1]).astype(jnp.float32),
        step=step,
    )


def target() -> FunctionalEnv:
    """One step, a continuous action, reward 1 − (a − ½)²: V = 1 at best, act ½."""

    def step(key, state, action):
        return state, 1.0 - (action[0] - 0.5) ** 2, jnp.ones((), bool)

    return FunctionalEnv(
        "target",
        Spaces(1, 1, discrete=False, action_scale=(1.0,)),
        time_limit=10,
        reset=lambda key: jnp.zeros(()),
        observe=lambda state: jnp.ones(1),
        step=step,
    )


def two_targets() -> FunctionalEnv:
    """Two steps, each with a target of its own, −½ and then ½."""

    def step(key, state, action):
        aim = jnp.where(state == 0, -0.5, 0.5)
        return jnp.ones((), jnp.int32), 1.0 - (action[0] - aim) ** 2, state == 1

    return FunctionalEnv(
        "two targets",
        Spaces(2, 1, discrete=False, action_scale=(1.0,)),
        time_limit=10,
        reset=lambda key: jnp.zeros((), jnp.int32),
        observe=lambda state: jnp.stack([state == 0, state == 1]).astype(jnp.float32),
        step=step,
    )
