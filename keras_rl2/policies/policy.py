"""Interfaces of policies, for acting in environments.

Any object with these members can act, whether or not it is a
`keras_rl2.Agent`. In shapes B are environments, and further axes belong to one
observation, action or draw of noise.
"""

from collections.abc import Sequence
from typing import Any
from typing import Protocol

import gymnasium
import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.distributions import PolicyHead
from keras_rl2.networks.task import Task
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree


class Policy(Protocol):
    """Chooses actions: the interface for stepping environments."""

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's observations."""

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's actions."""

    @property
    def observation_spec(self) -> Tree[ArraySpec]:
        """Shapes and dtypes of one observation as it is stored."""

    @property
    def policy_head(self) -> PolicyHead:
        """The conversion between the policy's outputs and the action space."""

    @property
    def noise_shape(self) -> tuple[int, ...]:
        """Shape of the noise of one action."""

    @property
    def acting_variables(self) -> list[Any]:
        """Keras variables that actions depend on.

        A snapshot copies their values and follows no others.
        """

    def initial_state(self, batch_size: int) -> tuple[np.ndarray, ...]:
        """Returns a recurrent policy's state at the start of episodes.

        Args:
            batch_size: int. Number of episodes, B.

        Returns:
            tuple of `[B, ...]`; empty if the policy is not recurrent, and
            then `policy_step` is never called.
        """

    def policy_step(
        self, observation: Any, begins: Tensor, state: Sequence[Tensor]
    ) -> tuple[Distribution, Sequence[Tensor]]:
        """Returns the policy of one step and the state after it, in a graph.

        Args:
            observation: `[B, ...]`. Raw observations, a tree of tensors.
            begins: `[B]` float32. 1 where an episode begins.
            state: Sequence of `[B, ...]`. See `initial_state`.

        Returns:
            The distribution of actions, and a sequence like `state`.
        """

    def bind(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
    ) -> None:
        """Binds the agent to the spaces of an environment.

        The other members may depend on it. It is called again, with the same
        spaces, whenever an environment is used.

        Args:
            observation_space: `gymnasium.Space`. Space of one environment.
            action_space: `gymnasium.Space`. Space of one environment.

        Raises:
            ValueError: If it cannot act in them, or is bound to others.
        """

    def draw_noise(
        self,
        generator: np.random.Generator,
        shape: tuple[int, ...],
        state: Any = None,
    ) -> tuple[npt.NDArray[np.float32], Any]:
        """Draws the noise that `sample_action` turns into actions.

        Args:
            generator: NumPy generator. The only source of random numbers.
            shape: Leading shape, `(T, B)` or `(B,)`.
            state: The state that the last call returned, for correlated noise.
                Defaults to `None`.

        Returns:
            `[*shape, *noise_shape]` float32, and the state, plain data.
        """

    def sample_action(self, observation: Any, noise: Tensor) -> Tensor:
        """Draws the policy's actions, in a graph.

        Args:
            observation: `[B, ...]`. Raw observations, a tree of tensors.
            noise: `[B, *noise_shape]` float32. See `draw_noise`.

        Returns:
            `[B, *policy_head.action_shape]`, of its `action_dtype`.
        """

    def greedy_action(self, observation: Any) -> Tensor:
        """Returns the policy's most probable actions, in a graph.

        Args:
            observation: `[B, ...]`. Raw observations, a tree of tensors.

        Returns:
            See `sample_action`.
        """


class ModelPolicy(Policy, Protocol):
    """The policy of a Keras model, which can be traced and inspected."""

    @property
    def name(self) -> str:
        """The name of the model."""

    @property
    def acting_networks(self) -> list[keras.Model]:
        """The networks of the policy."""

    @property
    def noise_parts(self) -> list[dict[str, Any]]:
        """The distributions that noise is drawn from, as plain data."""

    @property
    def is_masked(self) -> bool:
        """Whether observations contain an action mask."""

    @property
    def task(self) -> Task:
        """The spaces, the encoder and the policy head."""

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
            num_envs: int or None. Number of observations per call; None for
                any number. Defaults to `None`.
            variables: Sequence of `keras.Variable`. Variables with values that
                are inputs of each call. Defaults to `()`.

        Returns:
            `tf.function`.
        """
