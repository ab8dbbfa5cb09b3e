"""The algorithms by the name that the option `algorithm` gives them."""

from functools import partial
from typing import Protocol

import jax

from scal.envs.functional import Spaces
from scal.learn import deep_alm, scal
from scal.learn.config import Config
from scal.learn.scal import Learner

Array = jax.Array


class Algorithm(Protocol):
    """What a loop asks of an algorithm beside `scal.act` and `scal.observe`, which all share."""

    def init(self, key: Array, spaces: Spaces, config: Config) -> Learner:
        """A learner that has seen nothing."""

    def update(self, learner: Learner, spaces: Spaces, config: Config) -> tuple[Learner, Array]:
        """One step of learning, and its metrics."""


ALGORITHMS: dict[str, Algorithm] = {"scal": scal, "deep-alm": deep_alm}


def algorithm(config: Config) -> Algorithm:
    """The one that the options name."""
    return ALGORITHMS[config.algorithm]


def updates(learner: Learner, count: int, spaces: Spaces, config: Config) -> tuple[Learner, Array]:
    """Some steps of learning, with the sum of their metrics."""
    update = partial(algorithm(config).update, spaces=spaces, config=config)
    if count == 1:
        return update(learner)
    learner, metrics = jax.lax.scan(lambda one, _: update(one), learner, length=count)
    return learner, metrics.sum(axis=0)
