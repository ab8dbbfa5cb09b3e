"""What a learner makes of the options that it is given, and how it refuses those that cannot be."""

import dataclasses
import warnings
from typing import Any

import numpy as np

from scal.envs.functional import Spaces
from scal.learn.config import PRESETS, Config, usual

LARGEST_SEED = 2**31 - 1

SMALL_KAPPA = 10.0
"""Below this κ the penalty step is warned about."""


def check_budget(steps: int, every: int) -> int:
    """The steps; ValueError if that is no way to learn."""
    for name, number, least in (("steps", steps, 0), ("every", every, 1)):
        if not isinstance(number, int | np.integer) or number < least:
            raise ValueError(f"{name} is {number!r}; use a whole number of at least {least}")
    return int(steps)


def check_seeds(seeds: int, seed: int) -> None:
    """Raise ValueError if there are no so many seeds from that one on."""
    if not isinstance(seeds, int | np.integer) or seeds < 1:
        raise ValueError(f"seeds is {seeds!r}; use a whole number of at least 1")
    if not isinstance(seed, int | np.integer) or not 0 <= seed <= LARGEST_SEED - seeds:
        raise ValueError(f"seed is {seed!r}; use one between 0 and {LARGEST_SEED - seeds}")


def check_number(number: int, seeds: int) -> None:
    """Raise ValueError if there is no such one among so many seeds."""
    if not 0 <= number < seeds:
        raise ValueError(f"number is {number}; use one between 0 and {seeds - 1}")


def check_finite(numbers: Any, step: int) -> None:
    """Raise RuntimeError if learning has gone out of bounds."""
    if not np.isfinite(numbers).all():
        raise RuntimeError(
            f"learning diverged before step {step}: a metric is not finite; "
            "lower the learning rates; what was saved before is kept"
        )


def configure(preset: str, options: dict[str, Any], spaces: Spaces, normalize: bool) -> Config:
    """A preset with some options changed, and `auto` decided by the environment."""
    if preset not in PRESETS:
        raise ValueError(f"preset is {preset!r}; use one of {', '.join(PRESETS)}")
    known = {field.name for field in dataclasses.fields(Config)}
    for name in options:
        if name not in known:
            raise ValueError(f"option {name!r} is unknown; use one of {', '.join(sorted(known))}")
    options = {n: v.item() if isinstance(v, np.generic) else v for n, v in options.items()}
    config = usual(preset, spaces, options.get("algorithm", "scal"))
    config = dataclasses.replace(config, **options)
    if config.slack == "lookahead" and config.algorithm != "scal":
        raise ValueError("slack is 'lookahead', for SCAL itself; use closed or network")
    if spaces.image and config.normalize_observations == "yes":
        raise ValueError(
            "normalize_observations is 'yes', but frames are always divided by 255; leave it out"
        )
    if config.penalized and config.kappa < SMALL_KAPPA:
        share = (config.kappa - 1.0) / (2.0 * config.kappa - 1.0)
        warnings.warn(
            f"mu*beta is {config.kappa:g} with theta_step='penalty': x will settle at {share:.2f} "
            f"of its true mass instead of about half; use mu*beta of at least {SMALL_KAPPA:g}",
            stacklevel=3,
        )
    if config.normalize_observations == "auto":
        decided: Any = "yes" if normalize else "no"
        config = dataclasses.replace(config, normalize_observations=decided)
    return config


def annealed(config: Config, done: int, steps: int) -> Config:
    """The options of a run of so many steps: its rates fall over all of it, unless they say how."""
    if steps and config.anneal_steps and done >= config.anneal_steps:
        warnings.warn(
            f"the learning rates fell over the first {config.anneal_steps:,} interactions and stay "
            "at a tenth; name the length of all learning together as anneal_steps",
            stacklevel=4,
        )
    decided = config.anneal_steps or steps or None
    return dataclasses.replace(config, anneal_steps=decided)
