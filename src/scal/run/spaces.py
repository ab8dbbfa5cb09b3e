"""What SCAL needs of a Gymnasium environment: vectors or frames, and actions to choose from.

Frames are prepared by Gymnasium's own wrappers. An environment of the Arcade Learning Environment
that is made by its id gets them here; any other is taken as it comes. The outermost
`FrameStackObservation` is taken off while learning: the replay stacks the frames that it stores.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import (
    AtariPreprocessing,
    FrameStackObservation,
    NormalizeObservation,
    NormalizeReward,
)
from numpy.typing import NDArray

from scal.envs.functional import Spaces
from scal.envs.levels import levels
from scal.run.extras import require

Factory = Callable[[], gym.Env[Any, Any]]
Encoder = Callable[[Any], NDArray[Any]]

ATARI = "ALE/"
"""How ids of the Arcade Learning Environment begin."""
ATARI_STACK = 4
SMALLEST_IMAGE = 4
"""Pixels of the shorter side."""

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
    """From an observation to the vector or the frames (planes, height, width) that networks see.

    Frames are uint8 from 0 to 255 in two dimensions, or in three with the planes first or last.
    Classes (Discrete, MultiDiscrete) become one-hot, whole numbers the levels they have reached, or
    numbers in [−1, 1] if their range is large, and any other Box its entries.
    """
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        return lambda observation: np.asarray(gym.spaces.flatten(space, observation), np.float32)
    if image_of(space):
        return _planes_first(space.shape or ())
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


def image_of(space: gym.Space[Any]) -> tuple[int, ...]:
    """Planes, height and width if that is a space of frames, nothing otherwise."""
    if (
        not isinstance(space, gym.spaces.Box)
        or space.dtype != np.uint8
        or len(space.shape) not in (2, 3)
        or np.any(space.low != 0)
        or np.any(space.high != 255)
    ):
        return ()
    image = _planes_first(space.shape)(np.empty(space.shape, np.uint8)).shape
    return image if min(image[1:]) >= SMALLEST_IMAGE else ()


def _planes_first(shape: tuple[int, ...]) -> Encoder:
    """From frames of two dimensions, or of three with the planes, being fewest, first or last."""
    if len(shape) == 2:
        return lambda frame: np.asarray(frame)[None]
    if shape[0] <= shape[-1]:
        return np.asarray
    return lambda frame: np.moveaxis(frame, -1, 0)


def observer(env: gym.Env[Any, Any], name: str) -> Encoder:
    """`encoder` for all that an environment shows, a stack of frames if it has one."""
    single, _ = unstack(env)
    encode = encoder(single.observation_space, name)
    if single is env:
        return encode
    return lambda stack: np.concatenate([encode(frame) for frame in stack])


def unstack(env: gym.Env[Any, Any]) -> tuple[gym.Env[Any, Any], int]:
    """The environment that shows single frames, and how many of them it showed at once."""
    if (
        isinstance(env, FrameStackObservation)
        and env.padding_type == "reset"
        and image_of(env.env.observation_space)
    ):
        return env.env, env.stack_size
    return env, 1


def adapt(env: gym.Env[Any, Any], stacked: bool = False) -> tuple[gym.Env[Any, Any], Spaces]:
    """The environment with vectors or frames to see and actions in [−1, 1], and its spaces.

    It shows its newest frame, or all that make an observation if they are to be `stacked`.
    """
    if not isinstance(env, gym.Env):
        raise ValueError(f"env is a {type(env).__name__}; pass a single Gymnasium environment")
    name = env.spec.id if env.spec else str(env)
    _check_wrappers(env, name)
    single, stack = unstack(env)
    env, actions = env if stacked else single, env.action_space
    encode = observer(env, name)
    image = image_of(single.observation_space)
    sample = encode(env.observation_space.sample())
    size = stack * math.prod(image) if image else sample.size
    if size == 0:
        raise ValueError(f"{name} has observations {env.observation_space}, which hold nothing")
    box = (
        gym.spaces.Box(0, 255, sample.shape, np.uint8)
        if image
        else gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)
    )
    ordered = bool(env.metadata.get("ordered_actions", False))
    env = gym.wrappers.TransformObservation(env, encode, box)
    if isinstance(actions, gym.spaces.Discrete):
        if actions.start != 0:
            raise ValueError(f"{name} has actions from {actions.start}; wrap it to start at 0")
        return env, Spaces(
            size, int(actions.n), discrete=True, ordered=ordered, image=image, stack=stack
        )
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
        scale = (1.0,) * dimension
        return scaled, Spaces(
            size, dimension, discrete=False, action_scale=scale, image=image, stack=stack
        )
    raise ValueError(
        f"{name} has actions {actions}; SCAL takes Discrete, or a Box of one dimension"
    )


def _check_wrappers(env: gym.Env[Any, Any], name: str) -> None:
    """Refuse statistics that every copy of the environment would have for itself."""
    instead = {
        NormalizeObservation: "normalize_observations='yes'",
        NormalizeReward: "scale_rewards=True",
    }
    while isinstance(env, gym.Wrapper):
        if option := instead.get(type(env)):
            raise ValueError(
                f"{name} is wrapped in {type(env).__name__}, whose running statistics evaluation "
                f"could not share; leave it out and use {option}"
            )
        env = env.env


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
    if spec.additional_wrappers and spec.additional_wrappers != _wrappers_made(spec, arguments):
        raise ValueError(f"{spec.id} is wrapped and could not be made again; register it wrapped")
    return arguments


def _wrappers_made(spec: EnvSpec, arguments: dict[str, Any]) -> Any:
    """Those that the environment has when it is made by its id."""
    again = make(spec.id, **arguments)
    assert again.spec is not None
    return again.spec.additional_wrappers


def make(env: str | EnvSpec, **arguments: Any) -> gym.Env[Any, Any]:
    """`gymnasium.make`, with failures in one sentence; screens of Atari games are prepared."""
    import scal.envs  # noqa: F401  (registers scal/Inventory-v0 and scal/Catch-v0)

    name = env if isinstance(env, str) else env.id
    atari = name.startswith(ATARI)
    if atari:
        ale = require("ale_py", "atari")
        require("cv2", "atari")
        ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
    spec = gym.registry.get(env) if isinstance(env, str) else env
    known = spec is not None and "envs.mujoco" in str(spec.entry_point)
    quiet = _without_settotalmass() if known and find_spec("mujoco") else nullcontext()
    try:
        with quiet:
            if atari and isinstance(env, str):
                return prepare_atari(gym.make(env, **{"frameskip": 1} | arguments))
            return gym.make(env, **arguments)
    except gym.error.DependencyNotInstalled as error:
        raise ValueError(f"environment {name!r} needs a package that is missing: {error}") from None
    except Exception as error:  # whatever the constructor of somebody's environment may raise
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"environment {name!r} cannot be made ({reason}); check its id and arguments"
        ) from None


def prepare_atari(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The usual preparation: every fourth screen, grey, 84×84, four of them an observation."""
    skipped = (env.spec.kwargs if env.spec else {}).get("frameskip")
    screens = AtariPreprocessing(env, frame_skip=4 if skipped == 1 else 1)
    return FrameStackObservation(screens, ATARI_STACK)


def spaces_of(env: str) -> Spaces | None:
    """What an environment has, if it can be made and learned."""
    try:
        return adapt(make(env))[1]
    except ValueError:
        return None


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
