"""Conservative Q-learning of Box actions."""

import math
from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.cql import CQL
from keras_rl2.agents.cql import check_weight
from keras_rl2.agents.sac import SAC
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.exploration.get import GivenNoise
from keras_rl2.networks import checks as network_checks
from keras_rl2.policy_heads import PolicyHead
from keras_rl2.policy_heads import policy_head
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates import critics
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class BoxCQL(CQL, SAC):
    """Conservative Q-learning of Box actions: `SAC` with a penalty.

    `CQL` makes it for Box actions. The sum over actions is estimated from
    samples of three distributions: uniform, the policy, and the policy at the
    next observation; each sample is weighted by its inverse probability.
    Losses are ½ mean squares: halve the `alpha` of implementations without the
    factor ½.

    Args:
        actor: `keras.Model` from observations to `[B, 2A]`, means and log
            standard deviations of a Box policy before tanh; or `[B, n]`
            logits.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; for Discrete actions, from
            observations to `[B, n]`. Or a pair of such models; for a single
            model, the agent makes a second one of the same architecture, with
            its own weights.
        alpha: float. Weight of the penalty. It has the unit of Q-values: among
            actions that differ by less, the policy imitates the data instead
            of finding better actions. Defaults to `2.5`.
        num_samples: int. For Box actions, number of samples from each of the
            three distributions. Defaults to `10`.
        threshold: float or None. See `CQL`; published values for MuJoCo are 5
            and 10. Defaults to `None`.
        temperature: float above 0. Initial α. Defaults to `1.0`.
        learn_temperature: bool. Whether α is learned from the target entropy;
            otherwise it is constant. Defaults to `True`.
        target_entropy: float or None. Target entropy in nats; None for -A, as
            published, or 0.89 log n for n allowed Discrete actions. Defaults
            to `None`.
        noise_color: str. Color of the noise with which Box actions are sampled
            while experience is collected. `"pink"` is correlated over time, so
            that it moves bodies with inertia; each single action still has the
            policy's distribution. See `keras_rl2.exploration.PinkNoise`.
            `"white"` is independent at each step, as published. Defaults to
            `"pink"`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise added
            to the actions of a Box policy, in units of half their range, where
            sampling from the policy does not explore enough; see `TD3`.
            Defaults to `None`.
        gamma: float. Discount factor. Defaults to `0.99`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. Defaults to `None`.
        tau: float. Polyak coefficient, above 0 and at most 1: a target network
            moves by this fraction towards the network that it follows; 1
            copies it. Defaults to `0.005`.
        target_every: int. Number of updates per move of the target networks.
            Defaults to `1`.
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
    >>> agent = rl.agents.BoxCQL.for_env("Pendulum-v1", hidden=(32,),
    ...                                  threshold=5.0, seed=0)
    >>> agent.alpha, agent.threshold, agent.num_samples
    (2.5, 5.0, 10)
    >>> agent.act([1.0, 0.0, 0.5], deterministic=True).shape
    (1,)

    Reference:
        - [Kumar et al., 2020](https://arxiv.org/abs/2006.04779), appendix F.
    """

    action_kinds = (gymnasium.spaces.Box,)
    statistics_names = (*SAC.statistics_names, "cql_penalty", "alpha")

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        alpha: float = 2.5,  # own default, words
        num_samples: int = 10,
        threshold: float | None = None,  # own words
        temperature: float = 1.0,
        learn_temperature: bool = True,
        target_entropy: float | None = None,
        noise_color: Literal["pink", "white"] = "pink",
        exploration: GivenNoise | None = None,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        tau: float = 0.005,
        target_every: int = 1,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        check_positive(num_samples=num_samples)
        check_weight(alpha, threshold)
        SAC.__init__(
            self,
            actor,
            critic,
            temperature=temperature,
            learn_temperature=learn_temperature,
            target_entropy=target_entropy,
            noise_color=noise_color,
            exploration=exploration,
            gamma=gamma,
            max_gradient_norm=max_gradient_norm,
            tau=tau,
            target_every=target_every,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        self._weigh_penalty(alpha, threshold)
        self.num_samples = num_samples

    @classmethod
    @as_given
    def for_env(  # type: ignore[override]
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
        alpha: float = 2.5,
        num_samples: int = 10,
        threshold: float | None = None,
        temperature: float = 1.0,
        learn_temperature: bool = True,
        target_entropy: float | None = None,
        noise_color: Literal["pink", "white"] = "pink",
        exploration: GivenNoise | None = None,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        tau: float = 0.005,
        target_every: int = 1,
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
            alpha: float. Weight of the penalty. It has the unit of Q-values:
                among actions that differ by less, the policy imitates the data
                instead of finding better actions. Defaults to `2.5`.
            num_samples: int. For Box actions, number of samples from each of
                the three distributions. Defaults to `10`.
            threshold: float or None. See `CQL`; published values for MuJoCo
                are 5 and 10. Defaults to `None`.
            temperature: float above 0. Initial α. Defaults to `1.0`.
            learn_temperature: bool. Whether α is learned from the target
                entropy; otherwise it is constant. Defaults to `True`.
            target_entropy: float or None. Target entropy in nats; None for -A,
                as published, or 0.89 log n for n allowed Discrete actions.
                Defaults to `None`.
            noise_color: str. Color of the noise with which Box actions are
                sampled while experience is collected. `"pink"` is correlated
                over time, so that it moves bodies with inertia; each single
                action still has the policy's distribution. See
                `keras_rl2.exploration.PinkNoise`. `"white"` is independent at
                each step, as published. Defaults to `"pink"`.
            exploration: float, str, dict, `ExplorationNoise` or None. Noise
                added to the actions of a Box policy, in units of half their
                range, where sampling from the policy does not explore enough;
                see `TD3`. Defaults to `None`.
            gamma: float. Discount factor. Defaults to `0.99`.
            max_gradient_norm: float or None. Global norm to which gradients
                are clipped; None for no clipping. Defaults to `None`.
            tau: float. Polyak coefficient, above 0 and at most 1: a target
                network moves by this fraction towards the network that it
                follows; 1 copies it. Defaults to `0.005`.
            target_every: int. Number of updates per move of the target
                networks. Defaults to `1`.
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
    def make_policy_head(cls, action_space: gymnasium.Space[Any]) -> PolicyHead:
        """Returns a squashed Gaussian's head."""
        network_checks.check_action_kind(cls, action_space, cls.action_kinds)
        return policy_head(action_space, squash=True)

    def objectives(self) -> dict[str, Objective]:
        """Returns the losses of the critics, and of policy and temperature."""
        own = self._own_variables
        return {
            **super().objectives(),
            "critic": Objective(self._critic_terms, self.critics, own),
        }

    def critic_terms(self, values: list[Tensor], batch: Batch) -> Terms:
        """Computes the loss of the critics on a minibatch, with the penalty.

        Args:
            values: list of `[B]` float32. Each critic's Q-values of the
                actions taken, from the forward pass.
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            dict: `loss`, a scalar, which is minimised; `td_error` `[B]`; other
            scalars for the logs.
        """
        terms = super().critic_terms(values, batch)
        encoded = self.task.encode(batch["observation"])
        action, log_prob = self.sampled_actions(batch)
        batch_size, samples = log_prob.shape[0], log_prob.shape[1]
        if batch_size is None:
            batch_size = ops.shape(log_prob)[0]
        # [B, ...] -> [B * N, ...]
        repeated = map_leaves(
            lambda each: ops.repeat(each, samples, axis=0), encoded
        )
        flat = ops.reshape(action, (-1, action.shape[-1]))
        each_value = critics.action_values(
            self.critics, repeated, flat, training=True
        )
        penalties = [
            losses.sampled_conservative_q(
                ops.reshape(value, (batch_size, samples)), log_prob, taken
            )
            for value, taken in zip(each_value, values, strict=True)
        ]
        return self.conservative_terms(terms, penalties, batch["weight"])

    def sampled_actions(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Draws the actions at which Q-values are lowered.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            Actions `[B, 3 N, A]` in the unit box and their log-probabilities
            `[B, 3 N]`: uniform samples, the policy's, and the policy's at the
            next observations. Both are constants.
        """
        encoded = self.task.encode(batch["observation"])
        shape = (
            ops.shape(leaves(encoded)[0])[0],
            self.num_samples,
            *self.policy_head.action_shape,
        )
        uniform = self.draw_uniform(shape, 2)
        density = -math.log(2.0) * shape[-1]
        drawn = [
            (uniform, ops.full_like(uniform[:, :, 0], density)),
            self._of_policy(batch["observation"], shape, 3),
            self._of_policy(batch["next_observation"], shape, 4),
        ]
        actions, log_probs = zip(*drawn, strict=True)
        return (
            ops.stop_gradient(ops.concatenate(actions, axis=1)),
            ops.stop_gradient(ops.concatenate(log_probs, axis=1)),
        )

    def _of_policy(
        self, observation: Tree[Tensor], shape: tuple[Any, ...], stream: int
    ) -> tuple[Tensor, Tensor]:
        """Draws actions `[B, N, A]` of the policy, with log-probabilities."""
        batch_size, samples, size = shape
        parameters = ops.repeat(self(observation), samples, axis=0)
        noise = self.draw_normal((batch_size * samples, size), stream)
        policy = self.policy_head(parameters)
        action, log_prob = policy.sample_and_log_prob(noise)
        return (
            ops.reshape(action, shape),
            ops.reshape(log_prob, (batch_size, samples)),
        )


CQL.kinds[gymnasium.spaces.Box] = BoxCQL
