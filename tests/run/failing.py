"""Environments with bad habits."""

import gymnasium as gym
import numpy as np


class Failing(gym.Env):
    """Breaks down in its third step."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.age += 1
        if self.age == 3:
            raise ZeroDivisionError("out of oil")
        return np.zeros(2, np.float32), 0.0, False, False, {}


class Reusing(gym.Env):
    """Returns one and the same array at every step, as simulators with a shared buffer do."""

    observation_space = gym.spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.seen = np.zeros(1, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen[:] = 0.0
        return self.seen, {}

    def step(self, action):
        self.seen += 1.0
        return self.seen, 0.0, False, False, {}


class Drifting(Reusing):
    """Is never again where it was."""

    age = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        Drifting.age += 1
        self.seen[:] = Drifting.age % 100
        return self.seen, {}


class Shrinking(Reusing):
    """Its first episodes are longer than all others."""

    begun = 0

    def reset(self, *, seed=None, options=None):
        Shrinking.begun += 1
        return super().reset(seed=seed)

    def step(self, action):
        self.seen += 1.0
        over = Shrinking.begun > LANES and bool(self.seen[0] >= 3.0)
        return self.seen, 0.0, over, False, {}


LANES = 1
UNCHECKED = {"max_episode_steps": 5, "disable_env_checker": True}  # Gymnasium would warn
gym.register("Reusing-v0", Reusing, **UNCHECKED)
gym.register("Drifting-v0", Drifting, **UNCHECKED)
gym.register("Shrinking-v0", Shrinking, max_episode_steps=400, disable_env_checker=True)
gym.register("Failing-v0", Failing, max_episode_steps=5)
