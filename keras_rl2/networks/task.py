"""The task of an agent: its spaces, encoder and policy head."""

from typing import Any

import gymnasium
import keras
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiDiscrete
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import PolicyHead
from keras_rl2.networks.sequences import Sequences
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


class ObservationEncoder:
    """Encodes observations of a space as inputs of networks.

    Attributes:
        spec: tree of `ArraySpec`. Shapes and dtypes of one observation as it
            is stored.

    Example:

    >>> encoder = ObservationEncoder(gymnasium.spaces.Discrete(3, start=1))
    >>> encoder(ops.array([1, 3])).numpy().tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        spaces.check_observation_space(space)
        self.spec = spaces.observation_spec(space)
        self._leaves = spaces.space_tree(space)

    def __call__(self, observation: Tree[Tensor]) -> Any:
        """Encodes observations as inputs of the networks.

        Args:
            observation: `[B, ...]`. Raw observations, a tree of tensors, or
                `Sequences` of them.

        Returns:
            A tree of the same structure: one-hot rows `[B, n]` for Discrete,
            several side by side for MultiDiscrete; `[B, 1]` for a single
            number; other observations are unchanged, as floats unless they are
            uint8 images.
        """
        if isinstance(observation, Sequences):
            return observation.encoded(self)
        return map_leaves(_encoded, self._leaves, observation)

    @property
    def network_input(self) -> Any:
        """A symbolic batch of network inputs."""
        return map_leaves(_network_input, self._leaves)


def _encoded(space: gymnasium.Space[Any], observation: Tensor) -> Any:
    """Encodes one array `[B, ...]` as an input of networks."""
    if isinstance(space, Discrete):
        index = observation - int(space.start)
        return ops.one_hot(index, int(space.n), dtype="float32")
    if isinstance(space, MultiDiscrete):
        # [B, ...] -> [B, K] -> K times [B, n]
        index = ops.reshape(
            ops.cast(observation, "int32"), (-1, space.nvec.size)
        ) - ops.convert_to_tensor(space.start.ravel(), "int32")
        rows = [
            ops.one_hot(index[:, k], int(n), dtype="float32")
            for k, n in enumerate(space.nvec.ravel())
        ]
        return ops.concatenate(rows, axis=-1)
    if not space.shape:
        # [B] -> [B, 1]
        observation = observation[:, None]
    return ops.cast(observation, spaces.network_dtype(space))


def _network_input(space: gymnasium.Space[Any]) -> keras.KerasTensor:
    """Returns a symbolic batch of network inputs for one array."""
    shape = (None, *spaces.network_shape(space))
    return keras.KerasTensor(shape, spaces.network_dtype(space))


class Task:
    """The observations and actions of an agent.

    Attributes:
        head: `PolicyHead`. Turns outputs of the network into actions.
        encode: `ObservationEncoder`. Encodes raw observations as inputs of
            networks.
        observation_spec: tree of `ArraySpec`. Shapes and dtypes of one
            observation as it is stored.
        is_masked: bool. Whether observations contain a mask of the allowed
            actions.

    Example:

    >>> from keras_rl2.distributions import policy_head
    >>> actions = gymnasium.spaces.Discrete(2)
    >>> task = Task(gymnasium.spaces.Discrete(3), actions, policy_head(actions))
    >>> task.is_masked, task.encode.network_input.shape
    (False, (None, 3))
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        head: PolicyHead,
    ) -> None:
        self.observation_space = observation_space
        self.action_space = action_space
        self.head = head
        self.encode = ObservationEncoder(observation_space)
        self.observation_spec = self.encode.spec
        self.is_masked = spaces.is_masked(observation_space)
        spaces.check_mask_space(observation_space, head.mask_size)

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
