"""Exploration noise of an agent's actions."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_rl2.exploration import exploration_noise
from keras_rl2.exploration.get import GivenNoise


class ActionNoise:
    """Draws exploration noise for an agent, and reports its scale.

    Args:
        exploration: float, str, dict, `ExplorationNoise` or None. Noise of
            actions in half their range; a number is the scale of
            `GaussianNoise`, None is no noise.

    Raises:
        ValueError: If it is none of these.
    """

    def __init__(
        self,
        exploration: GivenNoise | None,
    ) -> None:
        self.exploration = exploration_noise(exploration)

    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        size: int,
        step: int,
        state: Any = None,
    ) -> tuple[np.ndarray, Any]:
        """Draws noise of the present scale.

        Args:
            generator: NumPy generator.
            shape: Leading shape, `(T, B)` or `(B,)`.
            size: int. Dimensions of an action, A.
            step: int. Environment steps so far.
            state: State that the last call returned, to continue from there.
                Defaults to `None`.

        Returns:
            `[*shape, A]` float32 in half the range of an action, and the
            state.
        """
        sizes = (*shape, size)
        if self.exploration is None:
            return np.zeros(sizes, np.float32), state
        # Noise is drawn over time, of which `(B,)` is one step.
        noise, state = self.exploration.draw(
            generator,
            sizes if len(sizes) == 3 else (1, *sizes),
            step=step,
            state=state,
        )
        return noise.reshape(sizes), state

    def logs(self, step: int) -> dict[str, float]:
        """Returns the scale of the noise, if it changes."""
        scale = getattr(self.exploration, "scale", None)
        if not isinstance(
            scale, keras.optimizers.schedules.LearningRateSchedule
        ):
            return {}
        return {"exploration_scale": float(ops.convert_to_numpy(scale(step)))}

    def described(self, size: int, step: int) -> dict[str, Any]:
        """Returns a description of the noise, for programs that draw it.

        Args:
            size: int. Dimensions of an action, A.
            step: int. Environment steps so far.

        Returns:
            dict of plain data.
        """
        if self.exploration is None:
            return {"kind": "zeros", "size": size}
        scale: Any = getattr(self.exploration, "scale", 1.0)
        if callable(scale):
            scale = ops.convert_to_numpy(scale(step))
        return {
            "kind": type(self.exploration).__name__,
            "size": size,
            "scale": float(scale),
        }
