"""The algorithms by the name that the option `algorithm` gives them."""

from typing import Protocol

import jax

from scal.envs.functional import Spaces
from scal.learn import deep_alm, scal
from scal.learn.config import Config
from scal.learn.scal import Learner

Array = jax.Array


class Algorithm(Protocol):
    """What a loop asks of an algorithm beside `scal.act` and `scal.observe`, which all share."""

    def init(self, key: Array, spaces: Spaces, config: Config, environments: int = 1) -> Learner:
        """A learner that has seen nothing."""

    def update(self, learner: Learner, spaces: Spaces, config: Config) -> tuple[Learner, Array]:
        """One step of learning, and its metrics."""


ALGORITHMS: dict[str, Algorithm] = {"scal": scal, "deep-alm": deep_alm}


def algorithm(config: Config) -> Algorithm:
    """The one that the options name."""
    return ALGORITHMS[config.algorithm]
