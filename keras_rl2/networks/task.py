"""The task of an agent: its spaces, encoder and policy head."""

import dataclasses
import math
from typing import Any

import gymnasium
import keras
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiDiscrete
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import PolicyHead
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.array_spec import ArraySpec
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


@dataclasses.dataclass(frozen=True)
class Task:
    """The observations and actions of an agent; immutable.

    Args:
        observation_space: `gymnasium.Space`. Of a single environment.
        action_space: `gymnasium.Space`. Of a single environment.
        head: `PolicyHead`. Maps the outputs of a network to the action space.

    Raises:
        ValueError: If a space is not supported, or an action mask does not fit
            the actions.

    Example:

    >>> from keras_rl2.distributions import policy_head
    >>> actions = gymnasium.spaces.Discrete(2)
    >>> task = Task(gymnasium.spaces.Discrete(3), actions, policy_head(actions))
    >>> task.is_masked, task.encode.network_input.shape
    (False, (None, 3))
    """

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    head: PolicyHead
    #: Encodes raw observations as inputs of networks.
    encode: ObservationEncoder = dataclasses.field(init=False)
    #: Shapes and dtypes of one observation as it is stored.
    observation_spec: Tree[ArraySpec] = dataclasses.field(init=False)
    #: Whether observations contain a mask of the allowed actions.
    is_masked: bool = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        encoder = ObservationEncoder(self.observation_space)
        vars(self).update(
            encode=encoder,
            observation_spec=encoder.spec,
            is_masked=spaces.is_masked(self.observation_space),
        )
        spaces.check_mask_space(self.observation_space, self.head.mask_size)

    def allowed(self, observation: Any, parameters: Tensor) -> Tensor:
        """Applies the action mask of observations to the outputs of a network.

        Args:
            observation: `[B, ...]`. Raw observations, with or without a mask.
            parameters: `[B, P]`. Logits or Q-values.

        Returns:
            `[B, P]`, with forbidden actions masked; unchanged without a mask.
        """
        if not self.is_masked:
            return parameters
        return self.head.forbid(parameters, observation[spaces.ACTION_MASK])
