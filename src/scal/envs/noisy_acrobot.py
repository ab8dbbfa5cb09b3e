"""Acrobot-v1 with white noise in its transitions, for the study of gradients (paper, section 7.1).

    s' = f(s, u) + ε          ε ~ N(0, (NOISE · range)²) in each of the angles and speeds

The range is π for the angles and the largest speed for the speeds, so that one number says how
small the noise is. The end of an episode is judged after it.
"""

import math
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.envs.classic_control.acrobot import AcrobotEnv

from scal.envs.acrobot import ACROBOT, LARGEST_SPIN_1, LARGEST_SPIN_2, over, step
from scal.envs.functional import Key, Transition, wrap

NOISE = 0.01
RANGE = (math.pi, math.pi, LARGEST_SPIN_1, LARGEST_SPIN_2)


def noisy_step(key: Key, state: jax.Array, action: jax.Array) -> Transition:
    """One step, disturbed."""
    after, _, _ = step(key, state, action)
    after = after + NOISE * jnp.asarray(RANGE) * jax.random.normal(key, after.shape)
    angles, spins = wrap(after[:2]), jnp.clip(after[2:], -np.array(RANGE[2:]), np.array(RANGE[2:]))
    after = jnp.concatenate([angles, spins]).astype(jnp.float32)
    terminated = over(after)
    return after, terminated.astype(jnp.float32) - 1.0, terminated


class NoisyAcrobotEnv(AcrobotEnv):
    """Gymnasium's Acrobot, disturbed in the same way."""

    state: Any

    def step(self, a: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step, disturbed."""
        cast(Any, super()).step(a)
        after = self.state + NOISE * np.array(RANGE) * self.np_random.normal(size=4)
        after[:2] = (after[:2] + math.pi) % (2.0 * math.pi) - math.pi
        after[2:] = np.clip(after[2:], -np.array(RANGE[2:]), RANGE[2:])
        self.state, parent = after, cast(Any, self)
        terminated = bool(parent._terminal())
        if self.render_mode == "human":
            parent.render()
        return parent._get_ob(), float(terminated) - 1.0, terminated, False, {}


NOISY_ACROBOT = ACROBOT._replace(name="scal/NoisyAcrobot-v0", step=noisy_step)
