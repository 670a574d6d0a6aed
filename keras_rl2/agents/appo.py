"""Asynchronous proximal policy optimisation."""

from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self

import keras
from keras import ops

from keras_rl2 import returns
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.ppo import PPO
from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import present
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.spaces.space_configs import GivenSpace


@keras.saving.register_keras_serializable(package="keras_rl2")
class APPO(PPO):
    """Proximal policy optimisation with workers that collect asynchronously.

    During the updates of one round, workers collect the next one with the
    weights that they have. Their policy μ is thus older than the policy π that
    is trained, so V-trace corrects the targets, with π as it is when the round
    begins:

        w = π(a|s) / μ(a|s)
        δ = min(clip_rho, w) (r + γ V(s') - V(s))
        R = V(s) + Σ (γ λ)ᵏ Π min(clip_c, w) δ
        A = r + γ ((1 - λ) V(s') + λ R') - V(s)

    Then follow PPO's updates. Their ratio is relative to μ, so the loss does
    not reward π for moving by more than `clip_ratio` from the policy that
    acted, however old it is. (With the ratio of Luo et al., relative to a
    target network, here π at the beginning of the round, it moves as far again
    in each round; on CartPole its return fell back from its best.) Without
    lag, w is 1, and R, A and each gradient are those of PPO.

    The lag of workers depends on the order of events, not on their speed: runs
    with workers are reproducible. Without workers it is PPO.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy;
            or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, or None
            where `actor` has both outputs. Defaults to `None`.
        max_lag: int or None. Maximum number of updates between acting and
            learning. As many whole rounds are collected ahead as it allows,
            none with 0. None for the updates of one round. Defaults to `None`.
        clip_rho: float. Upper bound of w in the TD errors. Defaults to `1.0`.
        clip_c: float. Upper bound of w in the trace. Defaults to `1.0`.
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
    >>> rollouts = rl.RolloutDataset("CartPole-v1", num_envs=4, horizon=32,
    ...                              passes=4, batch_size=128,
    ...                              workers=rl.LocalWorkers(2), seed=0)
    >>> agent = rl.APPO.for_env(rollouts.env, seed=0)
    >>> history = agent.fit(rollouts, epochs=3, verbose=0)
    >>> rollouts.updates_per_round, history.history["lag"]
    (4, [0.0, 4.0, 4.0])
    >>> rollouts.close()

    Reference:
        - [Espeholt et al., 2018](https://arxiv.org/abs/1802.01561).
        - [Luo et al., 2020](https://arxiv.org/abs/1912.00167).
    """

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        max_lag: int | None = None,
        clip_rho: float = 1.0,
        clip_c: float = 1.0,
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
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        check_at_least(0, **present(max_lag=max_lag))
        check_in_range(clip_rho=(clip_rho, 0.0, 1e6), clip_c=(clip_c, 0.0, 1e6))
        super().__init__(
            actor,
            critic,
            clip_ratio=clip_ratio,
            value_clip_range=value_clip_range,
            normalize_advantages=normalize_advantages,
            target_kl=target_kl,
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
        self.max_lag = max_lag
        self.clip_rho = clip_rho
        self.clip_c = clip_c

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
        max_lag: int | None = None,
        clip_rho: float = 1.0,
        clip_c: float = 1.0,
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
            max_lag: int or None. Maximum number of updates between acting and
                learning. As many whole rounds are collected ahead as it
                allows, none with 0. None for the updates of one round.
                Defaults to `None`.
            clip_rho: float. Upper bound of w in the TD errors. Defaults to
                `1.0`.
            clip_c: float. Upper bound of w in the trace. Defaults to `1.0`.
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

    def targets(
        self,
        arrays: dict[str, Any],
        log_prob: Tensor | None,
        values: Tensor,
        next_values: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns advantages and targets of V-trace; see `OnPolicyAgent`."""
        log_ratios = ops.zeros_like(values)
        if log_prob is not None:
            log_ratios = log_prob - arrays["log_prob"]
        going_on = 1.0 - ops.cast(arrays["terminated"], "float32")
        targets, advantages = returns.vtrace(
            log_ratios,
            arrays["reward"],
            self.gamma * going_on,
            values,
            next_values,
            lambda_=self.gae_lambda,
            clip_rho=self.clip_rho,
            clip_c=self.clip_c,
            clip_pg_rho=None,
            truncated=arrays["truncated"],
        )
        return advantages, targets
