"""A pure-JAX environment as one of Gymnasium, so that Python can step it, too."""

from typing import Any, SupportsFloat

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.wrappers import FrameStackObservation
from numpy.typing import NDArray

from scal.envs.functional import FunctionalEnv, State


def as_gymnasium(env: FunctionalEnv) -> gym.Env[Any, Any]:
    """The environment, with episodes that end after its time limit; `reset(seed=…)` decides all."""
    stack = env.spaces.stack
    return FrameStackObservation(Stepped(env), stack) if stack > 1 else Stepped(env)


class Stepped(gym.Env[Any, Any]):
    """One episode after another."""

    def __init__(self, env: FunctionalEnv) -> None:
        check(env)
        self.env, spaces = env, env.spaces
        self.observation_space = (
            gym.spaces.Box(0, 255, spaces.image, np.uint8)
            if spaces.image
            else gym.spaces.Box(-np.inf, np.inf, (spaces.observation_size,), np.float32)
        )
        bound = np.array(spaces.action_scale, np.float32)
        self.action_space = (
            gym.spaces.Discrete(spaces.action_size)
            if spaces.discrete
            else gym.spaces.Box(-bound, bound, dtype=np.float32)
        )
        self.metadata = {"ordered_actions": spaces.ordered}
        self._reset, self._step = jax.jit(env.reset), jax.jit(env.step)
        self._observe = jax.jit(env.observe)
        self._state: Any = None
        self._age = 0

    def __str__(self) -> str:
        return self.env.name

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """A random start."""
        super().reset(seed=seed)
        self._state, self._age = self._reset(self._key()), 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[NDArray[Any], SupportsFloat, bool, bool, dict[str, Any]]:
        """One transition; the last one that the limit allows is truncated."""
        kind = jnp.int32 if self.env.spaces.discrete else jnp.float32
        self._state, reward, over = self._step(self._key(), self._state, jnp.asarray(action, kind))
        self._age += 1
        return self._seen(), float(reward), bool(over), self._age >= self.env.time_limit, {}

    def _seen(self) -> NDArray[Any]:
        return np.array(self._observe(self._state))

    def _key(self) -> jax.Array:
        return jax.random.key(int(self.np_random.integers(2**31)))


def check(env: FunctionalEnv) -> None:
    """Raise ValueError unless the functions of an environment fit each other and its spaces."""
    spaces = env.spaces
    if not spaces.discrete and len(spaces.action_scale) != spaces.action_size:
        raise ValueError(
            f"{env.name} has actions of {spaces.action_size} dimensions and an action_scale for "
            f"{len(spaces.action_scale)}; give one for each"
        )
    key = jax.random.key(0)
    state = jax.eval_shape(env.reset, key)
    seen = jax.eval_shape(env.observe, state)
    shape = spaces.image or (spaces.observation_size,)
    kind = jnp.dtype(jnp.uint8 if spaces.image else jnp.float32)
    if (seen.shape, seen.dtype) != (shape, kind):
        raise ValueError(
            f"observe of {env.name} returns {seen.dtype}{list(seen.shape)}; its spaces promise "
            f"{kind}{list(shape)}"
        )
    action = jnp.int32(0) if spaces.discrete else jnp.zeros(spaces.action_size)
    try:
        after, reward, over = jax.eval_shape(env.step, key, state, action)
    except Exception as error:
        raise ValueError(
            f"step of {env.name} is no function of JAX from (key, state, action) to (state, "
            f"reward, end): {str(error).splitlines()[0]}"
        ) from None
    if _form(after) != _form(state):
        raise ValueError(f"step of {env.name} returns a state {after}, reset returns {state}")
    if reward.shape != () or over.shape != () or over.dtype != jnp.bool_:
        raise ValueError(
            f"step of {env.name} returns the reward {reward} and the end {over}; both have no "
            "shape, and the end is a bool"
        )


def _form(state: State) -> Any:
    """Structure, shapes and types."""
    leaves, structure = jax.tree.flatten(state)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]
