"""REINFORCE: the Monte-Carlo policy gradient."""

from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self

import gymnasium
import keras

from keras_rl2.agents.agent import as_given
from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.policies.own_round import OwnRollout
from keras_rl2.spaces.space_configs import GivenSpace


@keras.saving.register_keras_serializable(package="keras_rl2")
class REINFORCE(OnPolicyAgent):
    """Monte-Carlo policy gradient, with or without a learned baseline.

        L = mean(-(G - V) log pi(a)) + value_coefficient * mean((V - G)^2)
            - entropy_coefficient * mean(H)

    where G is the discounted return from a step to the end of its episode, and
    V the baseline, 0 without a critic. Each round plays one whole episode in
    every environment; `horizon` is its maximum length. Where a time limit or
    the horizon truncates an episode, the baseline estimates the rest of its
    return.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy;
            or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, the
            baseline; or None. Defaults to `None`.
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
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=500, passes=1,
    ...                              batch_size=None, num_envs=2, seed=0)
    >>> agent = rl.REINFORCE.for_env("CartPole-v1", seed=0)
    >>> history = agent.fit(rollouts, epochs=2, verbose=0)
    >>> len(history.history["policy_loss"])
    2

    Reference:
        - [Williams, 1992](https://doi.org/10.1007/BF00992696).
    """

    statistics_names = (
        "loss",
        "policy_loss",
        "value_loss",
        "entropy",
        "gradient_norm",
    )
    whole_episodes = True
    needs_value = False

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,  # own words
        *,
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
            gae_lambda=1.0,
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
        # The number of steps is that of the episodes.
        return OwnRollout(
            steps=1, passes=1, batch_size=None, rounds_per_epoch=10
        )

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        # A round is a single update, so there are few of them.
        return keras.optimizers.Adam(1e-3)
