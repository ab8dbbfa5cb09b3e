"""An environment that breaks down in its third step."""

import gymnasium as gym
import numpy as np


class Failing(gym.Env):
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


gym.register("Failing-v0", Failing, max_episode_steps=5)
