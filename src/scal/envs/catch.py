"""Catch: a ball falls through a field of pixels, a bat on the bottom row has to be under it.

    row' = row + 1        bat' = bat + a − 1, stopped by the walls        (bsuite's catch)

The ball starts anywhere in the top row and falls straight, the bat starts anywhere in the bottom
row. When the ball has come down to it, after rows − 1 steps, the episode ends with 1 if it is on
the bat and with −1 if not. There is time enough to go anywhere: the best return is 1 in every
episode. The same functions make the Gymnasium environment `scal/Catch-v0` and its copy in JAX.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scal.envs.functional import FunctionalEnv, Key, Transition

Frame = NDArray[np.uint8]

STACK = 2
"""Frames of an observation, as games of moving pictures have them; here one says it all."""


@dataclass(frozen=True)
class Catch:
    """The dynamics; `xp` is the library of the arrays."""

    rows: int = 10
    columns: int = 8
    """Pixels of the field."""
    reach: int = 1
    """Pixels of the bat to the left and to the right of its middle."""

    def __post_init__(self) -> None:
        for name, least in (("rows", 4), ("columns", 4), ("reach", 0)):
            if getattr(self, name) < least:
                value = getattr(self, name)
                raise ValueError(f"{name} is {value}; use a whole number of at least {least}")
        needed = self.columns - self.reach
        if self.rows < needed:
            raise ValueError(
                f"rows is {self.rows}, too few to catch every ball; use at least {needed}"
            )

    def move(self, bat: Any, action: Any, xp: Any = np) -> Any:
        """Where the bat is after 0 (left), 1 (stay) or 2 (right)."""
        return xp.clip(bat + action - 1, 0, self.columns - 1)

    def caught(self, column: Any, bat: Any, xp: Any = np) -> Any:
        """Whether the bat is under that column."""
        return xp.abs(column - bat) <= self.reach

    def draw(self, row: Any, column: Any, bat: Any, xp: Any = np) -> Any:
        """The frame: ball and bat are white."""
        rows, columns = xp.arange(self.rows)[:, None], xp.arange(self.columns)
        ball = (rows == row) & (columns == column)
        below = (rows == self.rows - 1) & self.caught(columns, bat, xp)
        return xp.where(ball | below, 255, 0).astype(xp.uint8)

    def functional(self) -> "FunctionalEnv":
        """The game in pure JAX."""
        # here, because the exact side is not to wait for JAX
        import jax
        import jax.numpy as jnp

        from scal.envs.functional import FunctionalEnv, Spaces

        def reset(key: "Key") -> jax.Array:
            column_key, bat_key = jax.random.split(key)
            column = jax.random.randint(column_key, (), 0, self.columns)
            bat = jax.random.randint(bat_key, (), 0, self.columns)
            return jnp.stack([jnp.zeros_like(column), column, bat])

        def observe(state: jax.Array) -> jax.Array:
            row, column, bat = state
            return self.draw(row, column, bat, xp=jnp)[None]

        def step(key: "Key", state: jax.Array, action: jax.Array) -> "Transition":
            row, column, bat = state
            row, bat = row + 1, self.move(bat, action, jnp)
            over = row == self.rows - 1
            reward = jnp.where(over, jnp.where(self.caught(column, bat, jnp), 1.0, -1.0), 0.0)
            return jnp.stack([row, column, bat]), reward, over

        image, pixels = (1, self.rows, self.columns), self.rows * self.columns
        spaces = Spaces(STACK * pixels, 3, discrete=True, image=image, stack=STACK)
        return FunctionalEnv("scal/Catch-v0", spaces, self.rows - 1, reset, observe, step)


class CatchEnv(gym.Env[Frame, np.int64]):
    """The game as a Gymnasium environment that shows one frame; made by its id, it shows two."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012  (Gymnasium's way)

    def __init__(self, render_mode: str | None = None, **constants: int) -> None:
        self.game, self.render_mode = Catch(**constants), render_mode
        shape = (self.game.rows, self.game.columns)
        self.observation_space = gym.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gym.spaces.Discrete(3)
        self.row = self.column = self.bat = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        """Drop another ball; the seed decides where it starts, and where the bat does."""
        super().reset(seed=seed)
        self.row = 0
        self.column = int(self.np_random.integers(self.game.columns))
        self.bat = int(self.np_random.integers(self.game.columns))
        return self._frame(), {}

    def step(self, action: np.int64) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        """Move the bat while the ball falls by a row."""
        if not self.action_space.contains(action):
            raise ValueError(f"action is {action!r}; use 0 (left), 1 (stay) or 2 (right)")
        self.row, self.bat = self.row + 1, int(self.game.move(self.bat, int(action)))
        over = self.row == self.game.rows - 1
        reward = (1.0 if self.game.caught(self.column, self.bat) else -1.0) if over else 0.0
        return self._frame(), reward, over, False, {}

    def render(self) -> Frame:
        """The frame, large and in three colours that are all grey."""
        large = self._frame().repeat(16, axis=0).repeat(16, axis=1)
        return np.stack([large] * 3, axis=-1)

    def _frame(self) -> Frame:
        frame: Frame = self.game.draw(self.row, self.column, self.bat)
        return frame
