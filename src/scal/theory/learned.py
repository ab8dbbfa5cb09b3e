"""A trained agent as an iterate: its networks on all states and actions of its MDP."""

from typing import TYPE_CHECKING, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from scal.learn import networks as nets
from scal.learn import policy, statistics
from scal.learn.metrics import predicted_mass
from scal.learn.terms import perceive
from scal.mdp import FiniteMDP
from scal.mdp.types import Array
from scal.objective import closed_slack
from scal.run import exact
from scal.run.spaces import encoder
from scal.theory.errors import Iterate

if TYPE_CHECKING:
    from scal.run.agent import SCAL


class Learned(NamedTuple):
    """What an agent has learned, in the units of its MDP."""

    mdp: FiniteMDP
    point: Iterate
    w: Array
    """All states alike, actions as the agent now behaves."""


def learned_iterate(agent: "SCAL", mu: float) -> Learned:
    """V, h and x of the agent's networks, for an environment that knows its finite MDP.

    V is in units of rewards, x in those of (D): divided by (1 − γ) times the mass it should have.
    Where the slack is no network, h is the best one for this V, x and μ.
    """
    config, spaces, learner = agent.config, agent.spaces, agent.learner
    mdp = exact.known_mdp(agent.env, config.gamma)
    if mdp is None or not spaces.discrete:
        raise ValueError(f"{agent.name} has no known finite MDP; use scal/Inventory-v0")
    space = agent.env.observation_space
    if isinstance(space, gym.spaces.Discrete) and space.n < mdp.n_states:
        raise ValueError(
            f"{agent.name} ends its episodes in a state that it does not show, where the networks "
            "say nothing; use one without an end, such as scal/Inventory-v0"
        )
    encode, shape = encoder(space, agent.name), space.shape or ()
    states = np.stack([encode(np.full(shape, s)) for s in range(mdp.n_states)])
    seen = perceive(learner.statistics, jnp.asarray(states), config)
    stats = learner.statistics
    scale = float(statistics.reward_scale(stats)) if config.scale_rewards else 1.0
    values, spread = nets.value_and_spread(learner.networks.value, seen)
    mass, head = nets.heads(learner.networks.multiplier, seen, spaces, config)
    log_pi = jax.nn.log_softmax(head)
    behaviour = (1.0 - config.epsilon) * jnp.exp(log_pi) + config.epsilon / spaces.action_size
    actions = jnp.broadcast_to(jnp.arange(spaces.action_size), log_pi.shape)
    raw = policy.multiplier(mass[:, None], log_pi, jnp.log(behaviour), actions, spaces, config)
    x = _double(raw) / ((1.0 - mdp.gamma) * float(predicted_mass(config, jnp.ones(()))))
    V, w = _double(values) / scale, _double(behaviour)
    if config.slack == "network":
        unit = jnp.ones(()) if config.units == "raw" else stats.td_rms
        units = unit * (jnp.exp(spread) if config.units == "state" else jnp.ones(len(V)))
        many = jnp.broadcast_to(seen[:, None, :], (*actions.shape, seen.shape[-1]))
        slack = nets.slack(learner.networks.slack, many, actions, True, config.slack_scale)
        h = _double(slack * units[:, None]) / scale
    else:
        h = closed_slack(mu, x, mdp.backup(V), V[:, None])
    return Learned(mdp, Iterate(V, h, x), w / w.sum())


def _double(array: jax.Array) -> Array:
    return np.asarray(array, dtype=np.float64)
