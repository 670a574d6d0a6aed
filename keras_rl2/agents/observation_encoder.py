"""How observations are stored, and what networks are given of them."""

from typing import Any

import gymnasium
import keras
import tensorflow as tf
from keras import ops

from keras_rl2 import spaces
from keras_rl2.shapes import Tensor


class ObservationEncoder:
    """Turns observations of a space into what networks take.

    Args:
        space: `gymnasium.Space`. Of a single environment's observations.

    Attributes:
        shape: tuple of ints. Shape of one observation as it is stored.
        dtype: str. Dtype of observations as they are stored.
        start: int. Smallest value of a Discrete observation.

    Raises:
        ValueError: If the space is not supported.

    Example:

    >>> encoder = ObservationEncoder(gymnasium.spaces.Discrete(3, start=1))
    >>> encoder(ops.array([1, 3])).numpy().tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        spaces.check_observation_space(space)
        self.space = space
        self.shape = tuple(space.shape or ())
        self.dtype: str = spaces.observation_dtype(space).name
        self.start = int(getattr(space, "start", 0))

    def __call__(self, observation: Tensor) -> Tensor:
        """Turns observations into what the networks take.

        Args:
            observation: `[B, ...]`. Raw observations.

        Returns:
            One-hot rows `[B, n]` for a Discrete space; `[B, 1]` for a single
            number; else the same, numbers other than uint8 images as floats.
        """
        if isinstance(self.space, gymnasium.spaces.Discrete):
            index = observation - self.start
            return ops.one_hot(index, int(self.space.n), dtype="float32")
        if not self.shape:
            # [B] -> [B, 1]
            observation = observation[:, None]
        if self._is_image:
            return observation
        return ops.cast(observation, "float32")

    @property
    def spec(self) -> tf.TensorSpec:
        """Signature of a batch of raw observations."""
        return tf.TensorSpec(
            (None, *self.shape), self.dtype, name="observation"
        )

    @property
    def network_input(self) -> keras.KerasTensor:
        """A symbolic batch of what the networks are given."""
        if isinstance(self.space, gymnasium.spaces.Discrete):
            return keras.KerasTensor((None, int(self.space.n)), "float32")
        dtype = "uint8" if self._is_image else "float32"
        return keras.KerasTensor((None, *(self.shape or (1,))), dtype)

    @property
    def _is_image(self) -> bool:
        """Whether it is an image, or a stack of some, that stays uint8."""
        return self.dtype == "uint8" and len(self.shape) in (3, 4)
