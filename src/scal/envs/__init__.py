"""Environments of scal; importing this package registers them with Gymnasium."""

import gymnasium as gym

from scal.envs.inventory import Inventory, InventoryEnv

gym.register(id="scal/Inventory-v0", entry_point="scal.envs.inventory:InventoryEnv")
gym.register(
    id="scal/NoisyAcrobot-v0",
    entry_point="scal.envs.noisy_acrobot:NoisyAcrobotEnv",
    max_episode_steps=500,
)

__all__ = ["Inventory", "InventoryEnv"]
