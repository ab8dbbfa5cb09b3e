"""Gymnasium ids with a copy in JAX."""

from scal.envs.acrobot import ACROBOT
from scal.envs.cartpole import CARTPOLE
from scal.envs.catch import Catch
from scal.envs.functional import FunctionalEnv
from scal.envs.inventory import Inventory
from scal.envs.noisy_acrobot import NOISY_ACROBOT
from scal.envs.pendulum import PENDULUM

FUNCTIONAL = {
    env.name: env
    for env in (
        ACROBOT,
        CARTPOLE,
        PENDULUM,
        NOISY_ACROBOT,
        Inventory().functional(),
        Catch().functional(),
    )
}


def functional_env(name: str) -> FunctionalEnv | None:
    """The copy of that environment with its default arguments, if there is one.

    >>> functional_env("CartPole-v1").time_limit
    500
    """
    return FUNCTIONAL.get(name)
