"""The rivals: Stable-Baselines3's DQN and PPO, sb3-contrib's TRPO, SBX's SAC, evaluated as SCAL is.

SBX is Stable-Baselines3 in JAX, by the same authors and with the same settings; its SAC takes a
third of the time.

`default` settings are the libraries' own; `zoo` are the values that RL-Zoo 2.9 publishes for these
environments, where it has some; `normalized` are the libraries' own with their VecNormalize, which
centres and scales observations and scales rewards.
"""

from collections.abc import Iterable
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from scal.bench.cell import Cell, Score, score
from scal.run.evaluate import ABREAST, evaluation_seeds, play
from scal.run.extras import require
from scal.run.spaces import make

HOMES = {"dqn": "stable_baselines3", "ppo": "stable_baselines3", "trpo": "sb3_contrib",
         "sac": "sbx"}  # fmt: skip
WIDE = {"net_arch": [256, 256]}
WIDE_RELU = {
    "log_std_init": -2,
    "ortho_init": False,
    "activation_fn": "ReLU",
    "net_arch": {"pi": [256, 256], "vf": [256, 256]},
}
TRPO_LOCOMOTION = {
    "normalize": True, "n_envs": 2, "n_steps": 1024, "batch_size": 128, "gamma": 0.99,
    "gae_lambda": 0.95, "sub_sampling_factor": 1, "cg_max_steps": 25, "cg_damping": 0.1,
    "n_critic_updates": 20, "learning_rate": 1e-3,
}  # fmt: skip

ZOO: dict[tuple[str, str], dict[str, Any]] = {
    ("dqn", "CartPole-v1"): {
        "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1_000,
        "gamma": 0.99, "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128,
        "exploration_fraction": 0.16, "exploration_final_eps": 0.04, "policy_kwargs": WIDE,
    },
    ("dqn", "Acrobot-v1"): {
        "learning_rate": 6.3e-4, "batch_size": 128, "buffer_size": 50_000, "learning_starts": 0,
        "gamma": 0.99, "target_update_interval": 250, "train_freq": 4, "gradient_steps": -1,
        "exploration_fraction": 0.12, "exploration_final_eps": 0.1, "policy_kwargs": WIDE,
    },
    ("ppo", "CartPole-v1"): {
        "n_envs": 8, "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98,
        "n_epochs": 20, "ent_coef": 0.0, "learning_rate": "linear 0.001",
        "clip_range": "linear 0.2",
    },
    ("ppo", "Acrobot-v1"): {
        "normalize": True, "n_envs": 16, "n_steps": 256, "gae_lambda": 0.94, "gamma": 0.99,
        "n_epochs": 4, "ent_coef": 0.0,
    },
    ("ppo", "Ant-v5"): {"normalize": True},
    ("ppo", "HalfCheetah-v5"): {
        "normalize": True, "batch_size": 64, "n_steps": 512, "gamma": 0.98,
        "learning_rate": 2.0633e-05, "ent_coef": 0.000401762, "clip_range": 0.1, "n_epochs": 20,
        "gae_lambda": 0.92, "max_grad_norm": 0.8, "vf_coef": 0.58096, "policy_kwargs": WIDE_RELU,
    },
    ("ppo", "Hopper-v5"): {
        "normalize": True, "batch_size": 32, "n_steps": 512, "gamma": 0.999,
        "learning_rate": 9.80828e-05, "ent_coef": 0.00229519, "clip_range": 0.2, "n_epochs": 5,
        "gae_lambda": 0.99, "max_grad_norm": 0.7, "vf_coef": 0.835671, "policy_kwargs": WIDE_RELU,
    },
    ("ppo", "Walker2d-v5"): {
        "normalize": True, "batch_size": 32, "n_steps": 512, "gamma": 0.99,
        "learning_rate": 5.05041e-05, "ent_coef": 0.000585045, "clip_range": 0.1, "n_epochs": 20,
        "gae_lambda": 0.95, "max_grad_norm": 1, "vf_coef": 0.871923,
    },
    ("trpo", "CartPole-v1"): {
        "n_envs": 2, "n_steps": 512, "batch_size": 512, "cg_damping": 1e-3, "gae_lambda": 0.98,
        "gamma": 0.99, "learning_rate": 1e-3, "n_critic_updates": 20,
    },
    ("trpo", "Acrobot-v1"): {"normalize": True, "n_envs": 2, "n_steps": 1024},
    ("trpo", "HalfCheetah-v5"): TRPO_LOCOMOTION | {"target_kl": 0.04},
    ("trpo", "Hopper-v5"): TRPO_LOCOMOTION,
    ("trpo", "Walker2d-v5"): TRPO_LOCOMOTION,
    ("trpo", "Ant-v5"): TRPO_LOCOMOTION,
    ("sac", "HalfCheetah-v5"): {"learning_starts": 10_000},
    ("sac", "Hopper-v5"): {"learning_starts": 10_000},
    ("sac", "Walker2d-v5"): {"learning_starts": 10_000},
    ("sac", "Ant-v5"): {"learning_starts": 10_000},
}  # fmt: skip


def settings_of(cell: Cell) -> dict[str, Any]:
    """What a rival is made with, besides policy, environment and seed."""
    if cell.algorithm not in HOMES:
        raise ValueError(f"algorithm is {cell.algorithm!r}; use scal or one of {', '.join(HOMES)}")
    if cell.settings == "default":
        chosen: dict[str, Any] = {}
    elif cell.settings == "zoo" and (cell.algorithm, cell.env) in ZOO:
        chosen = ZOO[cell.algorithm, cell.env]
    elif cell.settings == "normalized":
        chosen = {"normalize": True}
    else:
        raise ValueError(
            f"there are no {cell.settings!r} settings of {cell.algorithm} for {cell.env}; "
            "use default"
        )
    return chosen | dict(cell.options)


def check_rivals(algorithms: Iterable[str]) -> None:
    """Raise ValueError if one of these algorithms is not installed."""
    for algorithm in algorithms:
        if algorithm in HOMES and find_spec(HOMES[algorithm]) is None:
            require(HOMES[algorithm], "rivals")


class Rival:
    """A model of Stable-Baselines3 with the manners of `scal.SCAL`."""

    def __init__(self, cell: Cell) -> None:
        torch = require("torch", "rivals")
        library = require(HOMES.get(cell.algorithm, "stable_baselines3"), "rivals")
        vectors = require("stable_baselines3.common.vec_env", "rivals")
        torch.set_num_threads(1)
        settings = {name: _meant(value) for name, value in settings_of(cell).items()}
        copies, normal = settings.pop("n_envs", 1), settings.pop("normalize", False)
        self.seed, self.env_id, self.env = cell.seed, cell.env, make(cell.env)
        envs = vectors.DummyVecEnv([partial(_make, cell.env) for _ in range(copies)])
        if normal:
            envs = vectors.VecNormalize(envs, gamma=settings.get("gamma", 0.99))
        self.normalize = envs.normalize_obs if normal else np.asarray
        self.model = getattr(library, cell.algorithm.upper())(
            "MlpPolicy", envs, seed=cell.seed, device="cpu", **settings
        )

    def predict(self, observation: Any) -> Any:
        """The greedy action for an observation of the environment itself."""
        array = np.asarray(observation).reshape(self.env.unwrapped.observation_space.shape)
        return self._act(_scaled(self.env.unwrapped, array))

    def evaluate(self, episodes: int) -> NDArray[np.float64]:
        """Undiscounted returns of greedy episodes, begun as those of SCAL's Gymnasium loop."""
        seeds = [evaluation_seeds(self.seed, number)[0] for number in range(episodes)]
        envs = [_make(self.env_id) for _ in range(min(ABREAST, episodes))]
        return play(envs, lambda seen, *_: self._act(seen), seeds)

    def _act(self, observation: Any) -> Any:
        return self.model.predict(self.normalize(observation), deterministic=True)[0]


def learn(cell: Cell) -> list[Score]:
    """The scores of a rival at all marks."""
    callbacks = require("stable_baselines3.common.callbacks", "rivals")
    rival, scores = Rival(cell), list[Score]()

    class Marks(callbacks.BaseCallback):  # type: ignore[misc, name-defined]
        def _on_step(self) -> bool:
            while len(scores) < cell.evaluations and self.num_timesteps >= cell.marks[len(scores)]:
                scores.append(score(rival.evaluate(cell.episodes)[None], [rival]))
            return True

    rival.model.learn(cell.steps, callback=Marks())
    return scores


def _make(env: str) -> gym.Env[Any, Any]:
    """The environment; whole numbers are scaled to [−1, 1], since no rival does it itself."""
    made = make(env)
    box = made.observation_space
    if not (isinstance(box, gym.spaces.Box) and np.issubdtype(box.dtype, np.integer)):
        return made
    unit = gym.spaces.Box(-1.0, 1.0, box.shape, np.float32)
    return gym.wrappers.TransformObservation(made, partial(_scaled, made.unwrapped), unit)


def _scaled(env: gym.Env[Any, Any], observation: Any) -> Any:
    box = env.observation_space
    if not (isinstance(box, gym.spaces.Box) and np.issubdtype(box.dtype, np.integer)):
        return observation
    share = (observation - box.low) / (box.high - box.low)
    return (2.0 * share - 1.0).astype(np.float32)


def _meant(value: Any) -> Any:
    """Schedules and classes that settings name."""
    if isinstance(value, str) and value.startswith("linear "):
        start = float(value.removeprefix("linear "))
        return lambda left: left * start
    if isinstance(value, dict) and isinstance(value.get("activation_fn"), str):
        layers = require("torch.nn", "rivals")
        return value | {"activation_fn": getattr(layers, value["activation_fn"])}
    return value
