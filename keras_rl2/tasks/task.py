"""The task of an agent: its spaces, encoder and policy head."""

import dataclasses
from typing import Any

import gymnasium

from keras_rl2.basics.shapes import Tensor
from keras_rl2.policy_heads import PolicyHead
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.tasks.observation_encoder import ObservationEncoder


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

    >>> from keras_rl2.policy_heads import policy_head
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

    def __post_init__(self) -> None:
        encoder = ObservationEncoder(self.observation_space)
        object.__setattr__(self, "encode", encoder)
        spaces.check_mask_space(self.observation_space, self.head.mask_size)

    @property
    def observation_spec(self) -> Tree[ArraySpec]:
        """Shapes and dtypes of one observation as it is stored."""
        return self.encode.spec

    @property
    def is_masked(self) -> bool:
        """Whether observations contain a mask of the allowed actions."""
        return spaces.is_masked(self.observation_space)

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
