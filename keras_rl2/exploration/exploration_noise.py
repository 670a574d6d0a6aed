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
            scale = finite_number("scale", scale)
            _check_not_negative(scale)
        self._scale = scale

    @property
    def scale(self) -> Scale:
        """The scale: a float or a schedule."""
        return self._scale

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

        Raises:
            ValueError: If the shape is not of three sizes, the state is not of
                the noise's kind and shape, or the schedule returns a scale that
                is below 0 or not finite.
        """

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        scale = self._scale
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
        if isinstance(self._scale, float):
            return self._scale
        scale = float(keras.ops.convert_to_numpy(self._scale(step)))
        if not math.isfinite(scale):
            raise ValueError(
                "Expected the schedule to give a finite scale. "
                f"Received: scale={scale} at step={step}"
            )
        _check_not_negative(scale, f" at step={step}")
        return scale


def finite_number(name: str, value: Any) -> float:
    """Takes a setting as a float.

    Args:
        name: str. Name of the setting, for the message.
        value: The value to check.

    Returns:
        float: the number.

    Raises:
        ValueError: If it is not a finite real number.

    Example:

    >>> finite_number("theta", 1)
    1.0
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ValueError(
            f"Expected {name} to be a finite number. Received: {name}={value!r}"
        )
    return float(value)


def check_shape_of_draw(shape: Sequence[int]) -> tuple[int, int, int]:
    """Raises an error unless a shape of noise is `(T, B, A)`.

    Args:
        shape: Sequence of int.

    Returns:
        tuple of int: the same.

    Raises:
        ValueError: If there are not three sizes, or one is below 0.

    Example:

    >>> check_shape_of_draw([5, 2, 1])
    (5, 2, 1)
    """
    sizes = tuple(int(size) for size in shape)
    if len(sizes) != 3 or min(sizes) < 0:
        raise ValueError(
            "Expected a shape (T, B, A): time, environments, dimensions of an "
            f"action. Received: shape={tuple(shape)}"
        )
    return sizes


def _check_not_negative(scale: float, where: str = "") -> None:
    """Raises an error for a scale below 0."""
    if scale < 0:
        raise ValueError(
            f"Expected a scale of 0 or more. Received: scale={scale}{where}"
        )
