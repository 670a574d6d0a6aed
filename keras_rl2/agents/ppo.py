"""Proximal policy optimisation."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self

import keras
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import present
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.losses import statistics
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class PPO(OnPolicyAgent):
    """Proximal policy optimisation with a clipped surrogate objective.

    Improves the policy by several passes of minibatch updates over each
    rollout. The loss does not reward changing the probability of an action by
    more than `clip_ratio`:

        L = mean(max(-r A, -clip(r, 1 - c, 1 + c) A))
            + value_coefficient * mean((V - R)^2)
            - entropy_coefficient * mean(H)

    where r is the ratio of an action's probability to that under the policy
    that acted, A the advantage, R the return, and H the entropy of the policy.
    Supports Discrete, MultiDiscrete, MultiBinary and Box actions. Defaults are
    those of the paper, with the details of Andrychowicz et al., 2021.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy;
            or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, or None
            where `actor` has both outputs. Defaults to `None`.
        clip_ratio: float or `keras.optimizers.schedules.LearningRateSchedule`
            over updates. Distance of a probability ratio from 1 beyond which
            the loss does not reward a change. Defaults to `0.2`.
        value_clip_range: float or None. Maximum change of a value from its
            estimate at collection; None for no clipping. Defaults to `None`.
        normalize_advantages: bool. Whether advantages are normalised within
            each minibatch. Defaults to `True`.
        target_kl: float or None. Once the approximate KL divergence exceeds
            1.5 times this number, the remaining updates of the round are
            skipped. Defaults to `None`.
        gamma: float. Discount factor. Defaults to `0.99`.
        gae_lambda: float. Decay of the advantage estimate. Defaults to `0.95`.
        entropy_coefficient: float. Weight of the entropy bonus. Defaults to
            `0.0`.
        value_coefficient: float. Weight of the value loss. Defaults to `0.5`.
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
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=64, batch_size=64,
    ...                              seed=0)
    >>> agent = rl.PPO.for_env("CartPole-v1", gamma=0.98, seed=0)
    >>> history = agent.fit(rollouts, epochs=2, verbose=0)
    >>> len(history.history["episode_return"])
    2

    Reference:
        - [Schulman et al., 2017](https://arxiv.org/abs/1707.06347).
        - [Andrychowicz et al., 2021](https://arxiv.org/abs/2006.05990).
    """

    shared_numbers = (
        *OnPolicyAgent.shared_numbers,
        *("clip_ratio", "value_clip_range", "target_kl"),
    )
    statistics_names = (
        "loss",
        "policy_loss",
        "value_loss",
        "entropy",
        "approx_kl",
        "clip_fraction",
        "gradient_norm",
    )

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        clip_ratio: float
        | keras.optimizers.schedules.LearningRateSchedule = 0.2,
        value_clip_range: float | None = None,
        normalize_advantages: bool = True,  # own default
        target_kl: float | None = None,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        entropy_coefficient: float = 0.0,
        value_coefficient: float = 0.5,
        max_gradient_norm: float | None = 0.5,
        initial_log_std: float = 0.0,
        action_units: Literal["half_range", "environment"] = "half_range",
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        if not isinstance(
            clip_ratio, keras.optimizers.schedules.LearningRateSchedule
        ):
            check_in_range(clip_ratio=(clip_ratio, 0.0, 1e6))
        limits = present(value_clip_range=value_clip_range, target_kl=target_kl)
        check_in_range(
            **{limit: (value, 0.0, 1e6) for limit, value in limits.items()}
        )
        self._round_stopped: tf.Variable | None = None
        super().__init__(
            actor,
            critic,
            normalize_advantages=normalize_advantages,
            gamma=gamma,
            gae_lambda=gae_lambda,
            entropy_coefficient=entropy_coefficient,
            value_coefficient=value_coefficient,
            max_gradient_norm=max_gradient_norm,
            initial_log_std=initial_log_std,
            action_units=action_units,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        self.clip_ratio = clip_ratio
        self.value_clip_range = value_clip_range
        self.target_kl = target_kl
        if target_kl is not None:
            self._round_stopped = tf.Variable(False, trainable=False)

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
        clip_ratio: float
        | keras.optimizers.schedules.LearningRateSchedule = 0.2,
        value_clip_range: float | None = None,
        normalize_advantages: bool = True,
        target_kl: float | None = None,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        entropy_coefficient: float = 0.0,
        value_coefficient: float = 0.5,
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
            clip_ratio: float or
                `keras.optimizers.schedules.LearningRateSchedule` over updates.
                Distance of a probability ratio from 1 beyond which the loss
                does not reward a change. Defaults to `0.2`.
            value_clip_range: float or None. Maximum change of a value from its
                estimate at collection; None for no clipping. Defaults to
                `None`.
            normalize_advantages: bool. Whether advantages are normalised
                within each minibatch. Defaults to `True`.
            target_kl: float or None. Once the approximate KL divergence
                exceeds 1.5 times this number, the remaining updates of the
                round are skipped. Defaults to `None`.
            gamma: float. Discount factor. Defaults to `0.99`.
            gae_lambda: float. Decay of the advantage estimate. Defaults to
                `0.95`.
            entropy_coefficient: float. Weight of the entropy bonus. Defaults
                to `0.0`.
            value_coefficient: float. Weight of the value loss. Defaults to
                `0.5`.
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

    def _objectives(
        self, forward: Callable[[Any], Any]
    ) -> dict[str, Objective]:
        """Returns the only objective, applied until `target_kl` is exceeded."""
        [(name, objective)] = super()._objectives(forward).items()
        if self.target_kl is None:
            return {name: objective}
        return {name: objective._replace(when=self._is_near)}

    def _is_near(self, terms: Terms) -> Tensor:
        """Returns whether the policy is still near the one that acted."""
        stopped = self._round_stopped
        assert stopped is not None
        assert self.target_kl is not None
        exceeded = terms["approx_kl"] > 1.5 * self.target_kl
        was_stopped = tf.identity(stopped)
        stopped.assign(tf.logical_or(was_stopped, exceeded))
        # The update that exceeds `target_kl` is the last one in the logs.
        terms["counted"] = tf.logical_not(was_stopped)
        near: Tensor = tf.logical_not(tf.identity(stopped))
        return near

    def loss_terms(
        self, policy: Distribution, value: Tensor, batch: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Computes the clipped surrogate, the value loss and the entropy."""
        log_prob = policy.log_prob(batch["action"])
        old_log_prob, weight = batch["log_prob"], batch["weight"]
        clip_ratio = self._present_clip_ratio()
        terms = self.total_loss(
            losses.clipped_surrogate(
                log_prob, old_log_prob, self.advantages(batch), clip_ratio
            ),
            self._value_losses(batch, value),
            policy,
            weight,
        )
        for name, values in (
            ("approx_kl", losses.approximate_kl(log_prob, old_log_prob)),
            (
                "clip_fraction",
                losses.clip_fraction(log_prob, old_log_prob, clip_ratio),
            ),
        ):
            terms[name] = statistics.weighted_mean(values, weight)
        return terms

    def _value_losses(self, batch: dict[str, Tensor], value: Tensor) -> Tensor:
        """Returns the squared error of each value, optionally clipped."""
        if self.value_clip_range is None:
            return ops.square(batch["returns"] - value)
        return losses.clipped_value(
            value, batch["value"], batch["returns"], self.value_clip_range
        )

    def _present_clip_ratio(self) -> Tensor | float:
        """Returns the clip ratio, or the schedule's value at this update."""
        if callable(self.clip_ratio):
            return self.clip_ratio(self.optimizer.iterations)
        return self.clip_ratio

    @property
    def update_variables(self) -> list[tf.Variable]:
        """Further variables of an update; see `Agent.update_variables`."""
        found, stopped = super().update_variables, self._round_stopped
        return found if stopped is None else [*found, stopped]

    def begin_round(self) -> None:
        """Allows the updates of the new round."""
        super().begin_round()
        if self._round_stopped is not None:
            self._round_stopped.assign(False)
