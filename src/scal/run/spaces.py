"""What SCAL needs of a Gymnasium environment: a vector to see, and actions to choose from."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from scal.envs.functional import Spaces
from scal.envs.levels import levels

Factory = Callable[[], gym.Env[Any, Any]]
Encoder = Callable[[Any], NDArray[np.float32]]

MOST_LEVELS = 1_024
"""Inputs that whole numbers may take up."""


def factory_of(env: "str | gym.Env[Any, Any] | Factory") -> Factory:
    """A function that makes the environment anew, from an id, an environment or a function."""
    if isinstance(env, str):
        return lambda: make(env)
    if isinstance(env, gym.Env):
        spec = env.spec
        if spec is None:
            raise ValueError(
                f"environment {env} was not made by gymnasium.make, so evaluation cannot make a "
                "second one; pass a function that returns it"
            )
        return lambda: make(spec)
    if callable(env):
        return env
    raise ValueError(f"env is {env!r}; pass an id, a Gymnasium environment or a function")


def encoder(space: gym.Space[Any], name: str) -> Encoder:
    """From an observation to the vector that the networks see.

    Classes (Discrete, MultiDiscrete) become one-hot, whole numbers the levels they have reached, or
    numbers in [−1, 1] if their range is large, and any other Box its entries.
    """
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        return lambda observation: np.asarray(gym.spaces.flatten(space, observation), np.float32)
    if not isinstance(space, gym.spaces.Box):
        raise ValueError(
            f"{name} has observations {space}; "
            "wrap it so that they are a Box (gymnasium.wrappers.FlattenObservation)"
        )
    if not np.issubdtype(space.dtype, np.integer):
        return lambda observation: np.asarray(observation, np.float32).ravel()
    low, high = space.low.ravel().astype(float), space.high.ravel().astype(float)
    if np.sum(high - low) > MOST_LEVELS:
        middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), 0.5)
        return lambda observation: np.asarray(
            (np.asarray(observation, float).ravel() - middle) / half, np.float32
        )

    def reached(observation: Any) -> NDArray[np.float32]:
        numbers = np.asarray(observation, float).ravel()
        parts = [levels(n, int(a), int(b)) for n, a, b in zip(numbers, low, high, strict=True)]
        return np.concatenate(parts, dtype=np.float32)

    return reached


def adapt(env: gym.Env[Any, Any]) -> tuple[gym.Env[Any, Any], Spaces]:
    """The environment with vectors to see and actions in [−1, 1], and its spaces."""
    if not isinstance(env, gym.Env):
        raise ValueError(f"env is a {type(env).__name__}; pass a single Gymnasium environment")
    name = env.spec.id if env.spec else str(env)
    encode, actions = encoder(env.observation_space, name), env.action_space
    size = encode(env.observation_space.sample()).size
    if size == 0:
        raise ValueError(f"{name} has observations {env.observation_space}, which hold nothing")
    box = gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)
    ordered = bool(env.metadata.get("ordered_actions", False))
    env = gym.wrappers.TransformObservation(env, encode, box)
    if isinstance(actions, gym.spaces.Discrete):
        if actions.start != 0:
            raise ValueError(f"{name} has actions from {actions.start}; wrap it to start at 0")
        return env, Spaces(size, int(actions.n), discrete=True, ordered=ordered)
    if isinstance(actions, gym.spaces.Box) and len(actions.shape) == 1:
        if not (np.isfinite(actions.low).all() and np.isfinite(actions.high).all()):
            raise ValueError(
                f"{name} has unbounded actions {actions}; "
                "give them bounds (gymnasium.wrappers.ClipAction, or a Box with finite ends)"
            )
        if not np.issubdtype(actions.dtype, np.floating) or (actions.low >= actions.high).any():
            raise ValueError(
                f"{name} has actions {actions} that cannot be scaled; "
                "use Discrete for whole numbers, and low < high in a Box"
            )
        dimension = int(actions.shape[0])
        scaled = gym.wrappers.RescaleAction(env, np.float32(-1.0), np.float32(1.0))
        return scaled, Spaces(size, dimension, discrete=False, action_scale=(1.0,) * dimension)
    raise ValueError(
        f"{name} has actions {actions}; SCAL takes Discrete, or a Box of one dimension"
    )


def unbounded(env: gym.Env[Any, Any]) -> bool:
    """Whether no observation has a declared bound: then only running statistics can scale it."""
    box = env.observation_space
    return isinstance(box, gym.spaces.Box) and bool(
        np.isinf(box.low).all() and np.isinf(box.high).all()
    )


def arguments_of(env: gym.Env[Any, Any]) -> dict[str, Any]:
    """What `make` needs besides the id to make the environment again."""
    spec = env.spec
    if spec is None:
        raise ValueError("the environment has no id to be saved by; register it with Gymnasium")
    arguments = spec.kwargs | {"max_episode_steps": spec.max_episode_steps}
    try:
        json.dumps(arguments)
    except TypeError:
        raise ValueError(
            f"{spec.id} was made with arguments that JSON cannot hold; register a variant of it"
        ) from None
    if spec.additional_wrappers:
        raise ValueError(f"{spec.id} is wrapped and could not be made again; register it wrapped")
    return arguments


def make(env: str | EnvSpec, **arguments: Any) -> gym.Env[Any, Any]:
    """`gymnasium.make`, with failures in one sentence."""
    import scal.envs  # noqa: F401  (registers scal/Inventory-v0)

    name = env if isinstance(env, str) else env.id
    spec = gym.registry.get(env) if isinstance(env, str) else env
    known = spec is not None and "envs.mujoco" in str(spec.entry_point)
    quiet = _without_settotalmass() if known and find_spec("mujoco") else nullcontext()
    try:
        with quiet:
            return gym.make(env, **arguments)
    except gym.error.DependencyNotInstalled as error:
        raise ValueError(f"environment {name!r} needs a package that is missing: {error}") from None
    except gym.error.Error as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"environment {name!r} cannot be made ({reason}); check its id") from None


def has_continuous_actions(env: str) -> bool:
    """Whether an environment can be made and has actions in a box."""
    try:
        return isinstance(make(env).action_space, gym.spaces.Box)
    except ValueError:
        return False


@contextmanager
def _without_settotalmass() -> Iterator[None]:
    """MuJoCo without its warning that Gymnasium's HalfCheetah uses a deprecated attribute.

    MuJoCo writes it to stderr and to a file MUJOCO_LOG.TXT, past Python's own filters.
    """
    import mujoco

    before = mujoco.get_mju_user_warning()

    def pass_on(text: str) -> None:
        if "settotalmass" not in text:
            print(f"WARNING: {text}", file=sys.stderr)

    mujoco.set_mju_user_warning(pass_on)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
