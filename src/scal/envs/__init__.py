"""Environments of scal; importing this package registers them with Gymnasium."""

import gymnasium as gym
from gymnasium.wrappers import FrameStackObservation

from scal.envs.catch import STACK, Catch, CatchEnv
from scal.envs.inventory import Inventory, InventoryEnv

gym.register(id="scal/Inventory-v0", entry_point="scal.envs.inventory:InventoryEnv")
gym.register(
    id="scal/NoisyAcrobot-v0",
    entry_point="scal.envs.noisy_acrobot:NoisyAcrobotEnv",
    max_episode_steps=500,
)
gym.register(
    id="scal/Catch-v0",
    entry_point="scal.envs.catch:CatchEnv",
    additional_wrappers=(FrameStackObservation.wrapper_spec(stack_size=STACK),),
)

__all__ = ["Catch", "CatchEnv", "Inventory", "InventoryEnv"]
