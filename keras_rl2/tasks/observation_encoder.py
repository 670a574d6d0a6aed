"""Encoding of stored observations as inputs of networks."""

import math
from typing import Any

import gymnasium
import keras
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiDiscrete
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


class ObservationEncoder:
    """Encodes observations of a space as inputs of networks.

    Args:
        space: `gymnasium.Space`. Of a single environment's observations.

    Attributes:
        spec: tree of `ArraySpec`. Shapes and dtypes of one observation as it
            is stored.

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
        self.spec = spaces.observation_spec(space)
        self._leaves = map_leaves(_LeafEncoder, spaces.space_tree(space))

    def __call__(self, observation: Tree[Tensor]) -> Any:
        """Encodes observations as inputs of the networks.

        Args:
            observation: `[B, ...]`. Raw observations, a tree of tensors.

        Returns:
            A tree of the same structure: one-hot rows `[B, n]` for Discrete,
            several side by side for MultiDiscrete; `[B, 1]` for a single
            number; other observations are unchanged, as floats unless they are
            uint8 images.
        """
        return map_leaves(_LeafEncoder.__call__, self._leaves, observation)

    @property
    def network_input(self) -> Any:
        """A symbolic batch of network inputs."""
        return map_leaves(lambda leaf: leaf.network_input, self._leaves)


class _LeafEncoder:
    """Encodes one array of the observations as a network input.

    Args:
        space: `gymnasium.Space`. Neither `Dict` nor `Tuple`.
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self._space = space
        self._shape = tuple(space.shape or ())
        dtype = spaces.observation_dtype(space)
        self._is_image = dtype == np.uint8 and len(self._shape) in (3, 4)

    def __call__(self, observation: Tensor) -> Tensor:
        """Encodes `[B, ...]`; see `ObservationEncoder`."""
        if isinstance(self._space, Discrete):
            index = observation - int(self._space.start)
            return ops.one_hot(index, int(self._space.n), dtype="float32")
        if isinstance(self._space, MultiDiscrete):
            return self._one_hot_each(observation)
        if not self._shape:
            # [B] -> [B, 1]
            observation = observation[:, None]
        if self._is_image:
            # Keras takes no lists of arrays and tensors.
            return ops.convert_to_tensor(observation)
        return ops.cast(observation, "float32")

    def _one_hot_each(self, observation: Tensor) -> Tensor:
        """Encodes choices `[B, ...]` as one-hot rows `[B, sum(nvec)]`."""
        assert isinstance(self._space, MultiDiscrete)
        # [B, ...] -> [B, K]
        index = ops.reshape(
            ops.cast(observation, "int32"), (-1, math.prod(self._shape))
        ) - ops.convert_to_tensor(self._space.start.ravel(), "int32")
        rows = [
            ops.one_hot(index[:, k], int(n), dtype="float32")
            for k, n in enumerate(self._space.nvec.ravel())
        ]
        return ops.concatenate(rows, axis=-1)

    @property
    def network_input(self) -> keras.KerasTensor:
        """A symbolic batch of network inputs."""
        return keras.KerasTensor(
            (None, *spaces.network_shape(self._space)),
            "uint8" if self._is_image else "float32",
        )
