"""Algorithm 2: SCAL, a stochastic composite augmented Lagrangian method (paper, section 4).

    init      networks φ, ψ, θ and targets φ̄, θ̄                                    lines 1–2
    act       the behaviour policy, x₂ with a little noise                            line 4
    observe   the transition goes into the buffer D                                   line 4
    update    sample D, differentiate the composite objective, step, move targets     lines 5–10

All four are pure functions of a `Learner`, and the same whether an environment is stepped in Python
or inside the compiled program.
"""

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from scal import objective
from scal.envs.functional import Spaces
from scal.learn import lookahead, policy, replay, statistics, terms
from scal.learn import networks as nets
from scal.learn.config import Config
from scal.learn.metrics import measure
from scal.learn.networks import Networks, Parameters
from scal.learn.replay import Batch, Replay, Transition
from scal.learn.statistics import Statistics

if TYPE_CHECKING:
    from scal.learn.deep_alm import Inner

Array = jax.Array
ADAM = optax.scale_by_adam()
INITIAL_STATES = 1_000


class Learner(NamedTuple):
    """Everything that learning is: with the same Learner, the future is the same."""

    networks: Networks
    value_target: Parameters
    """φ̄"""
    multiplier_target: Parameters
    """θ̄"""
    averaged: Parameters
    """θ, averaged over the last part of the run; what the finished policy is made of."""
    moments: optax.ScaleByAdamState
    replay: Replay
    statistics: Statistics
    updates: Array
    key: Array
    inner: "Inner | None" = None
    """Of the deep parameterised ALM only."""


def init(key: Array, spaces: Spaces, config: Config) -> Learner:
    """Lines 1–2: random networks, targets equal to them, an empty buffer."""
    network_key, key = jax.random.split(key)
    networks = nets.init_networks(network_key, spaces, config)
    return Learner(
        networks=networks,
        value_target=networks.value,
        multiplier_target=networks.multiplier,
        averaged=networks.multiplier,
        moments=ADAM.init(networks),
        replay=replay.init_replay(spaces, config.replay_size, config.environments, INITIAL_STATES),
        statistics=statistics.init_statistics(
            0 if spaces.image else spaces.observation_size, config.environments
        ),
        updates=jnp.zeros((), jnp.int32),
        key=key,
    )


def act(
    learner: Learner, observation: Array, spaces: Spaces, config: Config
) -> tuple[Learner, policy.Choice]:
    """Line 4: actions of the behaviour policy for N observations, or for N newest frames."""
    key, act_key = jax.random.split(learner.key)
    observation = replay.current(learner.replay, observation)
    seen = terms.perceive(learner.statistics, observation, config)
    _, head = nets.heads(learner.networks.multiplier, seen, spaces, config)
    return learner._replace(key=key), policy.behave(act_key, head, spaces, config)


def greedy(learner: Learner, observation: Array, spaces: Spaces, config: Config) -> Array:
    """The most likely actions of the averaged policy, for evaluation."""
    return policy.greedy(averaged_head(learner, observation, spaces, config), spaces)


def averaged_head(learner: Learner, observation: Array, spaces: Spaces, config: Config) -> Any:
    """The averaged policy at some observations."""
    seen = terms.perceive(learner.statistics, observation, config)
    return nets.heads(learner.averaged, seen, spaces, config)[1]


def observe(learner: Learner, row: Transition, next_start: Array, config: Config) -> Learner:
    """Line 4: store what happened; `next_start` holds the first observations of new episodes."""
    frames = learner.replay.frames is not None
    observation = jnp.zeros((len(row.reward), 0)) if frames else row.observation
    return learner._replace(
        replay=replay.store_initial(replay.store(learner.replay, row), next_start, row.ended),
        statistics=statistics.see(
            learner.statistics, observation, row.reward, row.ended, config.gamma
        ),
    )


def update(learner: Learner, spaces: Spaces, config: Config) -> tuple[Learner, Array]:
    """Lines 5–10; the array holds the metrics."""
    config = at_present(learner, config)
    learner, batch = draw(learner, spaces, config)
    return update_on(learner, batch, spaces, config)


def at_present(learner: Learner, config: Config) -> Config:
    """The options, with the γ of this moment of the run."""
    if config.gamma_start is None or config.anneal_steps is None:
        return config
    done = jnp.minimum(learner.statistics.steps / config.anneal_steps, 1.0)
    last = 1.0 - config.gamma
    first = jnp.maximum(1.0 - config.gamma_start, last)
    changed: dict[str, Any] = {"gamma": 1.0 - first ** (1.0 - done) * last**done}
    return dataclasses.replace(config, **changed)


def draw(learner: Learner, spaces: Spaces, config: Config) -> tuple[Learner, Batch]:
    """Line 5: sample D, and the noise of own actions."""
    key, sample_key = jax.random.split(learner.key)
    noise = None
    if config.slack == "lookahead" and not spaces.discrete:
        key, noise_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, (config.batch_size, spaces.action_size))
    weigh = partial(terms.violation, learner, config) if config.sampling == "proportional" else None
    batch = replay.sample(
        sample_key,
        learner.replay,
        config.batch_size,
        config.n_steps,
        config.s0_mix,
        config.replay_share,
        weigh,
    )
    return learner._replace(key=key), batch._replace(noise=noise)


def update_on(
    learner: Learner, batch: Batch, spaces: Spaces, config: Config
) -> tuple[Learner, Array]:
    """Lines 6–10, for a given batch."""
    learner, batch, target = examine(learner, batch, spaces, config)
    loss = partial(_loss, learner=learner, batch=batch, target=target, spaces=spaces, config=config)
    moving = [n for n in Networks._fields if n != "slack" or config.slack != "closed"]
    turns = [moving] if config.order == "jacobi" else [[name] for name in moving]
    moved = learner
    for names in turns:
        gradients, metrics = jax.grad(loss, has_aux=True)(moved.networks)
        moved = descend(learner, moved, names, gradients, config)
    return _move_targets(moved, config), metrics


def examine(
    learner: Learner, batch: Batch, spaces: Spaces, config: Config
) -> tuple[Learner, Batch, Array]:
    """The batch as the networks see it, its targets y, and a learner that knows their errors."""
    see = partial(terms.perceive, learner.statistics, config=config)
    window = batch.window._replace(
        observation=see(batch.window.observation),
        next_observation=see(batch.window.next_observation),
    )
    batch = batch._replace(window=window, starts=see(batch.starts))
    target = terms.multi_step_target(learner, batch, spaces, config)
    first = jax.tree.map(lambda field: field[:, 0], window)
    V, *_ = terms.values(learner.networks.value, batch, config)  # as in the loss: computed once
    x, _ = terms.multiplier(learner.multiplier_target, first, spaces, config)
    stats = statistics.see_td_errors(learner.statistics, target - V, x, learner.updates)
    return learner._replace(statistics=stats), batch, target


def _loss(
    networks: Networks,
    learner: Learner,
    batch: Batch,
    target: Array,
    spaces: Spaces,
    config: Config,
) -> tuple[Array, Array]:
    """The minibatch mean of the composite objective."""
    first = jax.tree.map(lambda field: field[:, 0], batch.window)
    stats = learner.statistics
    fixed = jax.lax.stop_gradient
    V, V_next, V0, log_spread = terms.values(networks.value, batch, config)
    unit = terms.td_unit(stats, log_spread, config)
    x, log_pi = terms.multiplier(networks.multiplier, first, spaces, config)
    x_target, _ = terms.multiplier(learner.multiplier_target, first, spaces, config)
    loss, weight, x_replayed = jnp.zeros(()), None, x
    if config.units == "state":
        error = (target - fixed(V)) / stats.td_rms
        loss += fixed(x_target) * terms.spread_loss(error, log_spread)
    if config.slack == "lookahead":
        own = lookahead.at_own_actions(
            networks, learner.multiplier_target, first.observation, batch.noise, spaces, config
        )
        loss += lookahead.fit(networks.slack, first, target, stats.td_rms, spaces)
        loss += lookahead.follow(own, unit, spaces, config)
        x, x_target, target = own.x, own.x_target, fixed(own.target)
        weight = fixed(own.weight)
    h = terms.slack(networks.slack, first, x_target, target / unit, V / unit, spaces, config)
    z = objective.z(config.mu, fixed(x_target), h, target / unit, terms.in_units(V, unit))

    regression = config.theta_step == "regression"
    x_primal = fixed(x) if regression else x
    kept = config.flow * config.gamma
    after = fixed(x) * jnp.where(first.terminated, 0.0, terms.in_units(V_next, unit))
    composite = objective.composite(
        config.mu, config.beta, (1.0 - kept) * terms.in_units(V0, unit), x_primal, z
    ) + kept * (after - fixed(after))
    expected = partial(lookahead.expected, weight)
    loss += expected(composite) / (1.0 if config.units == "raw" else 1.0 + config.kappa)
    if regression:
        loss += 0.5 * expected((x - fixed(jnp.maximum(z, 0.0))) ** 2)

    seen = (expected(target), V, V0, expected(h), x, x_replayed, log_pi)
    metrics = measure(first, *seen, stats, config)
    return loss.mean(), metrics


def descend(
    before: Learner, learner: Learner, names: list[str], gradients: Networks, config: Config
) -> Learner:
    """Some of the networks, a step further: clip every layer, then Adam with its annealed rate."""
    annealed = jnp.ones(())
    if config.anneal_steps is not None:
        annealed = jnp.maximum(1.0 - 0.9 * learner.statistics.steps / config.anneal_steps, 0.1)
    rates = (config.lr_value, config.lr_slack, config.lr_multiplier)
    clipped = Networks(*(part.map_layers(partial(_clip, config.clip)) for part in gradients))
    steps, moments = ADAM.update(clipped, before.moments)

    def only(old: Networks, new: Networks) -> Networks:
        return old._replace(**{name: getattr(new, name) for name in names})

    stepped = [
        jax.tree.map(lambda p, s, rate=rate: p - annealed * rate * s, part, step)
        for part, step, rate in zip(learner.networks, steps, rates, strict=True)
    ]
    return learner._replace(
        networks=only(learner.networks, Networks(*stepped)),
        moments=moments._replace(
            mu=only(learner.moments.mu, moments.mu), nu=only(learner.moments.nu, moments.nu)
        ),
    )


def _clip(limit: float, layer: Any) -> Any:
    """The layer's gradient, scaled down to a norm of `limit` if it is larger."""
    norm = jnp.sqrt(sum(jnp.sum(part * part) for part in jax.tree.leaves(layer)))
    factor = jnp.minimum(1.0, limit / (norm + 1e-12))
    return jax.tree.map(lambda part: factor * part, layer)


def _move_targets(learner: Learner, config: Config) -> Learner:
    """φ̄ and θ̄ follow φ and θ."""
    updates = learner.updates + 1

    def follow(target: Any, network: Any, period: int, share: float = 0.0) -> Any:
        if config.targets == "polyak":
            rate = 1.0 / jnp.maximum(period, share * updates)
        else:
            rate = jnp.where(updates % period == 0, 1.0, 0.0)
        return jax.tree.map(lambda t, n: t + rate * (n - t), target, network)

    return learner._replace(
        value_target=follow(learner.value_target, learner.networks.value, config.period_value),
        multiplier_target=follow(
            learner.multiplier_target,
            learner.networks.multiplier,
            config.period_multiplier,
            config.period_share,
        ),
        averaged=average(learner, config),
        updates=updates,
    )


def average(learner: Learner, config: Config) -> Parameters:
    """The average of θ, with this update's counted in; its memory is a share of the run so far."""
    rate = 1.0 / (1.0 + config.average_share * learner.updates)
    return jax.tree.map(
        lambda old, new: (1.0 - rate) * old + rate * new,
        learner.averaged,
        learner.networks.multiplier,
    )
