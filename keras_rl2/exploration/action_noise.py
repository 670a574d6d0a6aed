"""Exploration noise of an agent's actions."""

import numbers
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_rl2.exploration.noises import ExplorationNoise
from keras_rl2.exploration.noises import GaussianNoise
from keras_rl2.exploration.noises import OrnsteinUhlenbeckNoise
from keras_rl2.exploration.noises import PinkNoise

GivenNoise = ExplorationNoise | float | str | dict[str, Any]
"""Exploration noise, or a short form of one."""

_KINDS: dict[Any, type[ExplorationNoise]] = {
    "gaussian": GaussianNoise,
    "ornstein_uhlenbeck": OrnsteinUhlenbeckNoise,
    "pink": PinkNoise,
}


def exploration_noise(x: GivenNoise | None) -> ExplorationNoise | None:
    """Makes exploration noise from a short form.

    Args:
        x: None for no noise; float, the scale of a `GaussianNoise`; str, the
            name `"gaussian"`, `"ornstein_uhlenbeck"` or `"pink"`; dict, a
            config such as `{"class_name": "gaussian", "config": {"scale":
            0.2}}` or one by `keras.saving.serialize_keras_object`; or an
            `ExplorationNoise`.

    Returns:
        `ExplorationNoise` or None.

    Raises:
        ValueError: If it is none of these, or a setting is wrong.

    Example:

    >>> exploration_noise(0.2)
    GaussianNoise(scale=0.2)
    >>> exploration_noise("ornstein_uhlenbeck")
    OrnsteinUhlenbeckNoise(scale=0.2, theta=0.15, dt=0.01)
    """
    noise: Any = x
    if isinstance(x, numbers.Real):
        noise = GaussianNoise(x)
    elif isinstance(x, dict) and "registered_name" in x:
        noise = keras.saving.deserialize_keras_object(x)
    elif isinstance(x, str | dict):
        config: Any = {"class_name": x} if isinstance(x, str) else x
        name = config.get("class_name")
        if name not in _KINDS:
            raise ValueError(
                "Expected the name of exploration noise, one of "
                f"{list(_KINDS)}. Received: {name!r}"
            )
        noise = _KINDS[name].from_config(config.get("config", {}))
    if noise is not None and not isinstance(noise, ExplorationNoise):
        raise ValueError(
            "Expected exploration noise: None, a number, a name, a config or "
            f"an ExplorationNoise. Received: {x!r}"
        )
    return noise


class ActionNoise:
    """Draws exploration noise for an agent, and reports its scale.

    Args:
        exploration: float, str, dict, `ExplorationNoise` or None. Noise of
            actions in half their range; a number is the scale of
            `GaussianNoise`, None is no noise.

    Raises:
        ValueError: If it is none of these.
    """

    def __init__(self, exploration: GivenNoise | None) -> None:
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
            generator, (1, *sizes)[-3:], step=step, state=state
        )
        return noise.reshape(sizes), state

    def logs(self, step: int) -> dict[str, float]:
        """Returns the scale of the noise, if it changes."""
        scale: Any = getattr(self.exploration, "scale", None)
        if not callable(scale):
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
