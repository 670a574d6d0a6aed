"""The interface of exploration noise."""

import abc
import math
import numbers
from collections.abc import Sequence
from typing import Any
from typing import Self
from typing import TypeAlias

import keras
import numpy as np
import numpy.typing as npt

Noise = npt.NDArray[np.float32]
State = npt.NDArray[np.float64] | None
Scale: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule


class ExplorationNoise(abc.ABC):
    """Base of all noises: an immutable object that holds settings only.

    Two are equal if their classes and configs are. A custom noise is a subclass
    with `draw`, and with `get_config` if it has more settings.

    Args:
        scale: float or `keras.optimizers.schedules.LearningRateSchedule`. 0
            or more and finite, in half the range of an action; a schedule is
            over the steps of the environments.

    Raises:
        ValueError: If the scale is neither, or below 0.

    Example:

    >>> class Steady(ExplorationNoise):
    ...     def draw(self, generator, shape, step=0, state=None):
    ...         return np.full(shape, self._scale_at(step), "float32"), state
    >>> drawn, _ = Steady(0.5).draw(np.random.default_rng(0), (2, 1))
    >>> drawn.tolist()
    [[0.5], [0.5]]
    """

    def __init__(self, scale: Scale) -> None:
        if not isinstance(
            scale, keras.optimizers.schedules.LearningRateSchedule
        ):
            is_number = isinstance(scale, numbers.Real)
            if (
                isinstance(scale, bool)
                or not is_number
                or not (0 <= scale < math.inf)
            ):
                raise ValueError(
                    "Expected scale to be a finite number of 0 or more, or a "
                    f"schedule. Received: scale={scale!r}"
                )
            scale = float(scale)
        self.scale = scale

    @abc.abstractmethod
    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        step: int = 0,
        state: State = None,
    ) -> tuple[Noise, State]:
        """Draws the noise of several steps at once.

        Args:
            generator: `np.random.Generator`.
            shape: tuple of int. `(T, B, A)`: time, environments, dimensions of
                an action.
            step: int. Environment steps so far, where a schedule is asked for
                the scale of the whole draw. Defaults to `0`.
            state: `[B, ...]` float64 or None. State that the last call
                returned, to continue from there; None to begin. Defaults to
                `None`.

        Returns:
            tuple: the noise `[T, B, A]` float32, in half the range of an
            action, not clipped; and the state after it, which is None where
            the noise remembers nothing.
        """

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        scale = self.scale
        if not isinstance(scale, float):
            scale = keras.saving.serialize_keras_object(scale)
        return {"scale": scale}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes a noise from its config."""
        scale = config.get("scale")
        if isinstance(scale, dict):
            scale = keras.saving.deserialize_keras_object(scale)
            config = {**config, "scale": scale}
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.get_config() == other.get_config())

    def __repr__(self) -> str:
        settings = self.get_config().items()
        arguments = ", ".join(f"{name}={value!r}" for name, value in settings)
        return f"{type(self).__name__}({arguments})"

    def _scale_at(self, step: int) -> float:
        """Returns the scale, of a schedule the one at a step."""
        if isinstance(self.scale, float):
            return self.scale
        return float(keras.ops.convert_to_numpy(self.scale(step)))
