"""Whole runs as one XLA program: environment, replay and updates in a scan, seeds side by side.

A run is a carry that `advance` moves on by some steps. `vmap` puts many of them next to each other,
one per seed or per setting of numeric options, for little more than the price of one.
"""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from scal.envs.functional import FunctionalEnv, State
from scal.learn import algorithms, frames, policy, replay, scal
from scal.learn.config import Config
from scal.learn.metrics import Metrics
from scal.learn.replay import Transition
from scal.learn.scal import Learner
from scal.run.evaluate import EVALUATION

Array = jax.Array
Options = Mapping[str, Array]
"""Numeric fields of the config, one value per run."""


class Run(NamedTuple):
    """A learner in its environments, between two steps."""

    learner: Learner
    states: State
    observations: Array
    age: Array
    """Steps of every episode in progress."""
    longest: Array
    """Steps after which these episodes are cut off."""
    returns: Array
    """Rewards of every episode in progress."""
    key: Array


class Trace(NamedTuple):
    """What a stretch of steps looked like, averaged."""

    metrics: Metrics | None
    training_return: Array
    """Mean return of the whole episodes that ended, NaN if none did."""


@partial(jax.jit, static_argnames=("env", "config"))
def start(seeds: Array, options: Options, env: FunctionalEnv, config: Config) -> Run:
    """Fresh runs, one per seed."""
    environments = config.environments

    def one(seed: Array, options: Options) -> Run:
        key = jax.random.PRNGKey(seed)
        learner_key, reset_key, key = jax.random.split(key, 3)
        states = jax.vmap(env.reset)(jax.random.split(reset_key, environments))
        observations = jax.vmap(env.observe)(states)
        learner = algorithms.algorithm(config).init(learner_key, env.spaces, _with(config, options))
        started = jnp.ones(environments, bool)
        learner = learner._replace(
            replay=replay.store_initial(learner.replay, observations, started)
        )
        zeros = jnp.zeros(environments)
        age = jnp.zeros(environments, jnp.int32)
        longest = jnp.full_like(age, min(config.first_episode or env.time_limit, env.time_limit))
        return Run(learner, states, observations, age, longest, zeros, key)

    return jax.vmap(one)(seeds, options)


@partial(jax.jit, static_argnames=("env", "config", "steps", "learning"), donate_argnums=0)
def advance(
    runs: Run,
    options: Options,
    env: FunctionalEnv,
    config: Config,
    steps: int,
    learning: bool = True,
) -> tuple[Run, Trace]:
    """Every run, `steps` interactions further; without `learning` it only fills its buffer.

    `steps` is a multiple of `stride(config)`.
    """

    def one(run: Run, options: Options) -> tuple[Run, Trace]:
        step = partial(_step, env=env, config=_with(config, options))
        times = max(config.environments // config.update_every, 1) if learning else 0
        updates = config.updates * times

        def turn(run: Run, nothing: None) -> tuple[Run, tuple[Array, Array]]:
            waits = stride(config) // config.environments - 1
            run, (_, before) = jax.lax.scan(partial(step, updates=0), run, length=waits)
            run, (metrics, last) = step(run, nothing, updates=updates)
            return run, (metrics / max(updates, 1), jnp.append(before, last))

        run, (metrics, returns) = jax.lax.scan(turn, run, length=steps // stride(config))
        return run, Trace(Metrics(*metrics.mean(axis=0)), jnp.nanmean(returns))

    return jax.vmap(one)(runs, options)


def stride(config: Config) -> int:
    """Interactions between which all environments step and updates are made, as often as due."""
    few, many = sorted((config.environments, config.update_every))
    if many % few:
        raise ValueError(
            f"environments is {config.environments} and update_every {config.update_every}; "
            "in a compiled run one has to divide the other"
        )
    return many


@partial(jax.jit, static_argnames=("env", "config", "episodes"))
def evaluate(runs: Run, seeds: Array, env: FunctionalEnv, config: Config, episodes: int) -> Array:
    """Undiscounted returns (runs, episodes) of the greedy policy, in episodes of their own.

    The seeds are those that the runs were started with.
    """

    def episode(learner: Learner, key: Array) -> Array:
        reset_key, key = jax.random.split(key)

        def step(carry: Any, key: Array) -> tuple[Any, None]:
            state, seen, total, over = carry
            action = scal.greedy(learner, seen, env.spaces, config)
            action = policy.environment_action(action, env.spaces)
            state, reward, terminated = env.step(key, state, action)
            seen = frames.next_stack(seen, env.observe(state), env.spaces)
            return (state, seen, total + jnp.where(over, 0.0, reward), over | terminated), None

        state = env.reset(reset_key)
        seen = frames.first_stack(env.observe(state), env.spaces)
        first = (state, seen, jnp.zeros(()), jnp.zeros((), bool))
        (_, _, total, _), _ = jax.lax.scan(step, first, jax.random.split(key, env.time_limit))
        return total

    def one(learner: Learner, seed: Array) -> Array:
        key = jax.random.fold_in(jax.random.key(EVALUATION), seed)
        return jax.vmap(partial(episode, learner))(jax.random.split(key, episodes))

    return jax.vmap(one)(runs.learner, seeds)


def _with(config: Config, options: Options) -> Config:
    changes: dict[str, Any] = dict(options)
    return dataclasses.replace(config, **changes)


def _step(
    run: Run, _: None, env: FunctionalEnv, config: Config, updates: int
) -> tuple[Run, tuple[Array, Array]]:
    """One interaction of every environment, then some updates."""
    environments = len(run.age)
    key, step_key, reset_key = jax.random.split(run.key, 3)
    learner, choice = scal.act(run.learner, run.observations, env.spaces, config)
    states, rewards, terminated = jax.vmap(env.step)(
        jax.random.split(step_key, environments),
        run.states,
        policy.environment_action(choice.action, env.spaces),
    )
    after = jax.vmap(env.observe)(states)
    age, returns = run.age + 1, run.returns + rewards
    whole = terminated | (age >= env.time_limit)
    ended = whole | (age >= run.longest)

    fresh = jax.vmap(env.reset)(jax.random.split(reset_key, environments))
    states = jax.tree.map(lambda new, old: jax.vmap(jnp.where)(ended, new, old), fresh, states)
    observations = jax.vmap(env.observe)(states)
    row = Transition(
        run.observations, choice.action, choice.log_prob, rewards, after, terminated, ended
    )
    learner = scal.observe(learner, row, observations, config)
    metrics = jnp.zeros(len(Metrics._fields))
    if updates:
        learner, metrics = algorithms.updates(learner, updates, env.spaces, config)
    ended_returns = jnp.where(whole, returns, jnp.nan)
    run = Run(
        learner=learner,
        states=states,
        observations=observations,
        age=jnp.where(ended, 0, age),
        longest=jnp.where(ended, jnp.minimum(2 * run.longest, env.time_limit), run.longest),
        returns=jnp.where(ended, 0.0, returns),
        key=key,
    )
    return run, (metrics, jnp.nanmean(ended_returns))
