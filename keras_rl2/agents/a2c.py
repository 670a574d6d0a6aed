"""Advantage actor-critic."""

from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self

import gymnasium
import keras

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.policies.own_round import OwnRollout
from keras_rl2.spaces.space_configs import GivenSpace


@keras.saving.register_keras_serializable(package="keras_rl2")
class A2C(OnPolicyAgent):
    """Synchronous advantage actor-critic.

    Makes one update from each short rollout:

        L = mean(-A log pi(a)) + value_coefficient * mean((V - R)^2)
            - entropy_coefficient * mean(H)

    where A = R - V is constant in the first term. By default it is the
    generalized advantage estimate. With `gae_lambda=1.0` it is the n-step
    advantage as published, n being the `horizon` of the rollouts; `horizon=1`
    is the one-step actor-critic of textbooks. With a whole rollout as the
    batch (`batch_size=None`, `passes=1`) one recorded forward pass serves the
    gradients of policy and value, and the targets.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy;
            or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, or None
            where `actor` has both outputs. Defaults to `None`.
        gae_lambda: float. Decay of the advantage estimate; 1 is the n-step
            advantage. Defaults to `0.95`.
        gamma: float. Discount factor. Defaults to `0.99`.
        entropy_coefficient: float. Weight of the entropy bonus. Defaults to
            `0.0`.
        value_coefficient: float. Weight of the value loss. Defaults to `0.5`.
        normalize_advantages: bool. Whether advantages are normalised within
            each minibatch. Defaults to `False`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. Defaults to `0.5`.
        initial_log_std: float. Initial log standard deviation of a Box policy.
            Defaults to `0.0`.
        action_units: str. Units of the Gaussian of a Box: `"half_range"`, in
            which finite bounds are -1 and 1, or `"environment"`. Defaults to
            `"half_range"`.
        observation_space: `gymnasium.Space` or its config. Space of one
            environment's observations; None to take it from the first
            environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. Space of one
            environment's actions; None to take it from the first environment.
            Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy; None for the global one.
            Defaults to `None`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=5, passes=1,
    ...                              batch_size=None, seed=0)
    >>> agent = rl.A2C.for_env("CartPole-v1", seed=0)
    >>> history = agent.fit(rollouts, epochs=2, verbose=0)
    >>> len(history.history["value_loss"])
    2

    Reference:
        - [Mnih et al., 2016](https://arxiv.org/abs/1602.01783).
    """

    statistics_names = (
        "loss",
        "policy_loss",
        "value_loss",
        "entropy",
        "explained_variance",
        "gradient_norm",
    )
    learns_from_trajectories = True

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        gae_lambda: float = 0.95,  # own words
        gamma: float = 0.99,
        entropy_coefficient: float = 0.0,
        value_coefficient: float = 0.5,
        normalize_advantages: bool = False,
        max_gradient_norm: float | None = 0.5,
        initial_log_std: float = 0.0,
        action_units: Literal["half_range", "environment"] = "half_range",
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(
            actor,
            critic,
            gae_lambda=gae_lambda,
            gamma=gamma,
            entropy_coefficient=entropy_coefficient,
            value_coefficient=value_coefficient,
            normalize_advantages=normalize_advantages,
            max_gradient_norm=max_gradient_norm,
            initial_log_std=initial_log_std,
            action_units=action_units,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )

    @classmethod
    @as_given
    def for_env(
        cls,
        env: GivenEnv,
        *,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        normalize_observations: bool = False,
        normalization: Literal["none", "layer", "batch", "spectral"]
        | None = None,
        initialization: Literal["orthogonal", "fan_in"] | None = None,
        memory: keras.layers.Layer | None = None,
        shared: bool | None = None,
        gae_lambda: float = 0.95,
        gamma: float = 0.99,
        entropy_coefficient: float = 0.0,
        value_coefficient: float = 0.5,
        normalize_advantages: bool = False,
        max_gradient_norm: float | None = 0.5,
        initial_log_std: float = 0.0,
        action_units: Literal["half_range", "environment"] = "half_range",
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> Self:
        """Makes a compiled agent with default networks for an environment.

        Args:
            env: An environment, vector environment, id string or function that
                makes an environment.
            hidden: Sequence of ints or None. Widths of the hidden layers,
                after the convolutions where observations are images; None for
                the algorithm's default, or that of the convolutional network.
                Defaults to `None`.
            activation: str or None. Activation of the hidden layers; None for
                the algorithm's default. Defaults to `None`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            normalization: str or None. Normalization of the hidden layers:
                `"layer"`, `"batch"`, `"spectral"` or `"none"`, see
                `keras_rl2.networks.mlp`; None for the algorithm's default.
                Defaults to `None`.
            initialization: str or None. `"orthogonal"`, with small weights in
                the last layer of an actor; `"fan_in"`, the default of
                PyTorch's layers; None for the algorithm's default. Defaults to
                `None`.
            memory: RNN cell of Keras or None, e.g.
                `keras.layers.LSTMCell(128)`. Makes the network recurrent: all
                outputs share the cell, and each has its own hidden layers
                after it. See `keras_rl2.networks.MemoryNetwork`. Defaults to
                `None`.
            shared: bool or None. Whether policy and value share all layers but
                their outputs, as published for images; None where the
                observation contains an image. Defaults to `None`.
            gae_lambda: float. Decay of the advantage estimate; 1 is the n-step
                advantage. Defaults to `0.95`.
            gamma: float. Discount factor. Defaults to `0.99`.
            entropy_coefficient: float. Weight of the entropy bonus. Defaults
                to `0.0`.
            value_coefficient: float. Weight of the value loss. Defaults to
                `0.5`.
            normalize_advantages: bool. Whether advantages are normalised
                within each minibatch. Defaults to `False`.
            max_gradient_norm: float or None. Global norm to which gradients
                are clipped; None for no clipping. Defaults to `0.5`.
            initial_log_std: float. Initial log standard deviation of a Box
                policy. Defaults to `0.0`.
            action_units: str. Units of the Gaussian of a Box: `"half_range"`,
                in which finite bounds are -1 and 1, or `"environment"`.
                Defaults to `"half_range"`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            name: str or None. Name of the model. Defaults to `None`.
            dtype: str or None. Keras dtype policy of the agent and its
                networks, e.g. `"mixed_float16"`; None for the global one.
                Defaults to `None`.

        Returns:
            The agent. Images are processed by a convolutional network, other
            observations by an MLP.

        Raises:
            ValueError: If a space of the environment is not supported, or an
                argument is out of range.
            TypeError: If the algorithm does not take an argument.
        """
        raise NotImplementedError

    @classmethod
    def own_rollout(cls, observation_space: gymnasium.Space[Any]) -> OwnRollout:
        """Returns the default settings of rollouts."""
        # In epochs of a single short round, Keras' overhead would dominate.
        return OwnRollout(
            steps=64, passes=1, batch_size=None, shortest=8, rounds_per_epoch=32
        )

    def loss_terms(
        self, policy: Distribution, value: Tensor, batch: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Computes the policy gradient loss and the explained variance."""
        terms = super().loss_terms(policy, value, batch)
        terms["explained_variance"] = losses.explained_variance(
            batch["value"], batch["returns"], batch["weight"]
        )
        return terms

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(1e-3)
