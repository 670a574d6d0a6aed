"""Policies, as whatever acts with them asks for them.

Any object with these members will do, whether or not it is a
`keras_rl2.Agent`. In shapes B are environments, and what follows belongs to
one observation, action or draw of noise.
"""

from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import runtime_checkable

import gymnasium
import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.policy_heads import PolicyHead
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree


class Policy(Protocol):
    """Chooses actions: whatever steps environments asks for no more."""

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The space of one environment."""

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's actions."""

    @property
    def observation_spec(self) -> Tree[ArraySpec]:
        """Shapes and dtypes of one observation as it is stored."""

    @property
    def policy_head(self) -> PolicyHead:
        """What stands between the policy and the action space."""

    @property
    def noise_shape(self) -> tuple[int, ...]:
        """Shape of the noise of one action."""

    @property
    def acting_variables(self) -> list[Any]:
        """Keras variables that actions depend on.

        A snapshot copies their values and follows no others.
        """

    def initial_state(self, batch_size: int) -> tuple[np.ndarray, ...]:
        """Returns what a policy that remembers has at the start of episodes.

        Args:
            batch_size: int. Episodes, B.

        Returns:
            tuple of `[B, ...]`; empty if it remembers nothing, and then
            `policy_step` is never called.
        """

    def policy_step(
        self, observation: Any, begins: Tensor, state: Sequence[Tensor]
    ) -> tuple[Distribution, Sequence[Tensor]]:
        """Returns the policy of one step and the state after it, in a graph.

        Args:
            observation: `[B, ...]`. Raw observations, a tree of tensors.
            begins: `[B]` float32. 1 where an episode begins.
            state: Sequence of `[B, ...]`. As of `initial_state`.

        Returns:
            The distribution of actions, and a sequence alike `state`.
        """

    def bind(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
    ) -> None:
        """Ties the agent to the spaces of an environment, or refuses them.

        What the other members say may depend on it. Comes again, with the
        same spaces, whenever an environment is used.

        Args:
            observation_space: `gymnasium.Space`. Of one environment.
            action_space: `gymnasium.Space`. Of one environment.

        Raises:
            ValueError: If it cannot act in them, or is tied to others.
        """

    def draw_noise(
        self,
        generator: np.random.Generator,
        shape: tuple[int, ...],
        state: Any = None,
    ) -> tuple[npt.NDArray[np.float32], Any]:
        """Draws the noise that `sample_action` turns into actions.

        Args:
            generator: NumPy generator. The only source of chance.
            shape: Leading shape, `(T, B)` or `(B,)`.
            state: What the last call gave, for noise that goes on from there.
                Defaults to `None`.

        Returns:
            `[*shape, *noise_shape]` float32, and the state, plain data.
        """

    def sample_action(self, observation: Any, noise: Tensor) -> Tensor:
        """Draws the policy's actions, in a graph.

        Args:
            observation: `[B, ...]`. Raw observations, a tree of tensors.
            noise: `[B, *noise_shape]` float32. As of `draw_noise`.

        Returns:
            `[B, *policy_head.action_shape]`, of its `action_dtype`.
        """

    def greedy_action(self, observation: Any) -> Tensor:
        """Returns the policy's most probable actions, in a graph.

        Args:
            observation: `[B, ...]`. Raw observations, a tree of tensors.

        Returns:
            As of `sample_action`.
        """


@runtime_checkable
class Stochastic(Protocol):
    """A policy that is a distribution: actions have probabilities."""

    def distribution(self, observation: Any) -> Distribution:
        """Returns the distribution of actions for raw observations."""


class ModelPolicy(Policy, Protocol):
    """The policy of a Keras model, which can be traced, and looked into."""

    @property
    def name(self) -> str:
        """The name of the model."""

    @property
    def acting_networks(self) -> list[keras.Model]:
        """Networks that the policy is made of."""

    @property
    def noise_parts(self) -> list[dict[str, Any]]:
        """The distributions that noise is drawn from, as plain data."""

    @property
    def is_masked(self) -> bool:
        """Whether observations say which actions are allowed."""

    def allowed(self, observation: Any, parameters: Tensor) -> Tensor:
        """Takes forbidden actions out of the outputs of a network.

        Args:
            observation: `[B, ...]`. Raw observations, with a mask perhaps.
            parameters: `[B, P]`. Logits, or values of actions.

        Returns:
            `[B, P]`.
        """

    @property
    def encode(self) -> Any:
        """Turns raw observations into what networks take."""

    def policy_function(
        self,
        deterministic: bool = True,
        *,
        num_envs: int | None = None,
        variables: Sequence[keras.Variable] = (),
    ) -> Any:
        """Returns the policy as a `tf.function`, traced once.

        Args:
            deterministic: bool. Whether it takes the most probable action.
                Defaults to `True`.
            num_envs: int or None. Observations of each call; None for any
                number. Defaults to `None`.
            variables: Sequence of `keras.Variable`. Values to be given with
                each call. Defaults to `()`.

        Returns:
            `tf.function`.
        """
