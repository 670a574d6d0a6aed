"""Agents that learn from fresh rollouts of their present policy."""

from collections.abc import Callable
from typing import Any

import gymnasium
import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2 import returns
from keras_rl2.agents.actor_critic import ActorCritic
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.data import OwnRollout
from keras_rl2.data import Trajectory
from keras_rl2.data import unpack
from keras_rl2.distribute import replicas
from keras_rl2.distributions import Distribution
from keras_rl2.losses import statistics
from keras_rl2.networks import is_image
from keras_rl2.networks.network_copies import added_losses
from keras_rl2.networks.sequences import flat
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.gradient_steps import GradientSteps
from keras_rl2.updates.gradient_steps import Step
from keras_rl2.updates.rollout_samples import RolloutSamples


class OnPolicyAgent(ActorCritic):
    """Base of agents that learn from rollouts of their present policy.

    Their networks are those of an `ActorCritic`.

    A subclass may change `loss_terms`: what a minibatch costs, from one
    forward pass.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy;
            or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, or None
            where `actor` has both outputs. Defaults to `None`.
        gamma: float. Discount factor. Defaults to `0.99`.
        gae_lambda: float. Decay of the advantage estimate. Defaults to `0.95`.
        entropy_coefficient: float. Weight of the entropy bonus. Defaults to
            `0.0`.
        value_coefficient: float. Weight of the value loss. Defaults to `0.5`.
        normalize_advantages: bool. Whether advantages are normalised within
            each minibatch. Defaults to `False`.
        max_gradient_norm: float or None. Global norm that gradients are
            clipped to. Defaults to `0.5`.
        initial_log_std: float. Log standard deviation that a Box policy starts
            from. Defaults to `0.0`.
        observation_space: `gymnasium.Space` or its config. What is observed;
            None to learn it from the first environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. What can be done; None
            to learn it from the first environment. Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy; None for the global one.
            Defaults to `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> isinstance(agent, OnPolicyAgent)
    True
    >>> agent.value(np.zeros((3, 4), "float32")).shape
    TensorShape([3])
    """

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        entropy_coefficient: float = 0.0,
        value_coefficient: float = 0.5,
        normalize_advantages: bool = False,
        max_gradient_norm: float | None = 0.5,
        initial_log_std: float = 0.0,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        check_in_range(
            gamma=(gamma, 0.0, 1.0),
            gae_lambda=(gae_lambda, 0.0, 1.0),
            entropy_coefficient=(entropy_coefficient, 0.0, 1e12),
            value_coefficient=(value_coefficient, 0.0, 1e12),
        )
        if max_gradient_norm is not None:
            check_in_range(max_gradient_norm=(max_gradient_norm, 1e-12, np.inf))
        check_flag(normalize_advantages=normalize_advantages)
        super().__init__(
            actor,
            critic,
            initial_log_std=initial_log_std,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        self.gamma = gamma
        self.gae_lambda = gae_lambda
        self.entropy_coefficient = entropy_coefficient
        self.value_coefficient = value_coefficient
        self.normalize_advantages = normalize_advantages
        self.max_gradient_norm = max_gradient_norm
        self._rollout_samples = RolloutSamples(self)
        self._bind_requested()

    @classmethod
    def own_rollout(cls, observation_space: gymnasium.Space[Any]) -> OwnRollout:
        """Returns the rollouts that it learns from by default.

        What Stable-Baselines3 takes for PPO, or where pictures are observed,
        what Schulman et al., 2017, took for Atari; with scaled rewards.

        Args:
            observation_space: `gymnasium.Space`. Of one environment.

        Returns:
            `keras_rl2.data.OwnRollout`.
        """
        if any(map(is_image, leaves(space_tree(observation_space)))):
            return OwnRollout(steps=1024, passes=4, batch_size=256)
        return OwnRollout(steps=2048, passes=10, batch_size=64)

    # Learning.

    def loss_terms(
        self, policy: Distribution, value: Tensor, batch: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Computes what a minibatch costs: here, the plain policy gradient.

        Args:
            policy: Distribution of `[B]` actions, of the forward pass.
            value: `[B]` float32. Values of the same pass.
            batch: dict of `[B, ...]`, as `sample_spec` says; `weight` is 1
                for samples that count and 0 for others.

        Returns:
            dict of scalars: `loss`, which is minimised, and more for the logs.
        """
        log_prob = policy.log_prob(batch["action"])
        return self.total_loss(
            losses.policy_gradient(log_prob, self.advantages(batch)),
            ops.square(batch["returns"] - value),
            policy,
            batch["weight"],
        )

    def advantages(self, batch: dict[str, Tensor]) -> Tensor:
        """Returns advantages `[B]` of a minibatch, normalised if asked for."""
        advantage = batch["advantage"]
        if not self.normalize_advantages:
            return advantage
        return statistics.normalize(advantage, batch["weight"])

    def total_loss(
        self,
        policy_losses: Tensor,
        value_losses: Tensor,
        policy: Distribution,
        weight: Tensor,
    ) -> dict[str, Tensor]:
        """Adds up policy loss, value loss and entropy bonus.

        Args:
            policy_losses: `[B]`. Loss of each sample's policy.
            value_losses: `[B]`. Loss of each sample's value.
            policy: Distribution of `[B]` actions.
            weight: `[B]` float32. 1 for samples that count, else 0.

        Returns:
            dict of scalars: `loss`, `policy_loss`, `value_loss`, `entropy`.
        """
        policy_loss = statistics.weighted_mean(policy_losses, weight)
        value_loss = statistics.weighted_mean(value_losses, weight)
        entropy = statistics.weighted_mean(policy.entropy(), weight)
        loss = policy_loss + self.value_coefficient * value_loss
        return {
            "loss": loss - self.entropy_coefficient * entropy,
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "entropy": entropy,
        }

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """Makes one update from a minibatch of samples."""
        batch = self._minibatch(data)
        return self._update(lambda: self._forward(batch))

    def _forward(
        self, batch: dict[str, Any]
    ) -> tuple[Distribution, Tensor, dict[str, Any]]:
        """Runs the networks, and returns a minibatch of single steps."""
        if self.memory is None:
            policy, value = self.policy_and_value(
                batch["observation"], training=True
            )
            return policy, value, batch
        batch = dict(batch)
        begins, state = batch.pop("begins"), batch.pop("state")
        parameters, value, _ = self.run_sequences(
            batch["observation"], begins, state, training=True
        )
        steps = map_leaves(flat, batch)
        policy = self.policy_of(flat(parameters), steps["observation"])
        return policy, flat(value), steps

    def train_on_trajectory(
        self, arrays: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Makes one update from a whole rollout, from one forward pass.

        What `prepare` and `train_step` do, where a rollout is one minibatch:
        targets come from the values of the same pass, as constants.

        Args:
            arrays: dict, as `Trajectory.packed_arrays`, in the graph.

        Returns:
            dict of scalars for the logs.
        """
        return self._update(
            lambda: self._rollout_samples.of(unpack(arrays), training=True)
        )

    def _update(
        self,
        forward: Callable[[], tuple[Distribution, Tensor, dict[str, Any]]],
    ) -> dict[str, Tensor]:
        """Makes one update from what a forward pass gives; returns logs."""
        with self.target_networks.following(self.optimizer.iterations):
            steps = GradientSteps(self.skipped, self.max_gradient_norm)
            with tf.GradientTape() as tape:
                policy, value, samples = forward()
                terms = self._terms(policy, value, samples)
                scaled = self.optimizer.scale_loss(terms["loss"])
            variables = self.trainable_variables
            gradients = tape.gradient(scaled, variables)
            steps.add(self.optimizer, gradients, variables)
            step = replicas.once(lambda: self._learn(terms, steps))
        terms |= {"gradient_norm": step.norm, "skipped_updates": step.skipped}
        return replicas.once(lambda: self._logs(terms, step.counted))

    def _learn(self, terms: dict[str, Tensor], steps: GradientSteps) -> Step:
        """Follows the gradient of a loss, whose terms are given too."""
        del terms
        return steps.apply()

    def _terms(
        self, policy: Distribution, value: Tensor, batch: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Returns `loss_terms`, with what the networks add to the loss."""
        terms = self.loss_terms(policy, value, batch)
        for network in (self.actor, self.critic):
            if network is not None:
                terms["loss"] += added_losses(network)
        return terms

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns Adam with the step and epsilon that PPO is run with."""
        return keras.optimizers.Adam(3e-4, epsilon=1e-5)

    # Preparing a rollout.

    def targets(
        self,
        arrays: dict[str, Any],
        log_prob: Tensor | None,
        values: Tensor,
        next_values: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns what is learned of each step of a rollout.

        Args:
            arrays: dict, as of `Trajectory.arrays`, in the graph.
            log_prob: `[T, B]` or None. Of the actions under the present
                policy, where another one may have acted.
            values: `[T, B]` float32. Of the observations.
            next_values: `[T, B]` float32. Of the true next observations.

        Returns:
            Advantages and targets of the values, `[T, B]` each.
        """
        del log_prob
        going_on = 1.0 - ops.cast(arrays["terminated"], "float32")
        return returns.generalized_advantage_estimation(
            arrays["reward"],
            self.gamma * going_on,
            values,
            next_values,
            self.gae_lambda,
            truncated=arrays["truncated"],
        )

    def prepare(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """Computes what the updates need, in one compiled call.

        Args:
            trajectory: `Trajectory` of T steps of B environments.

        Returns:
            Samples, a dict of arrays `[T * B, ...]` (see `sample_spec`), and
            statistics, a dict of floats.
        """
        return self._rollout_samples.prepare(trajectory)

    def sample_spec(
        self, length: int | None = None
    ) -> dict[str, Tree[ArraySpec]]:
        """Returns shape and dtype of each entry of one sample.

        Args:
            length: int or None. Steps of a sequence, L, for an agent that
                remembers: all entries have that many, beside them are `begins`
                and the `state` before the first. Defaults to `None`.

        Returns:
            dict: `observation` and `action` as collected; `log_prob` and
            `value` under the weights that acted; `advantage`; `returns`, the
            target of the value. All but the first two are float32 scalars.
        """
        return self._rollout_samples.spec(length)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "gamma": self.gamma,
            "gae_lambda": self.gae_lambda,
            "entropy_coefficient": self.entropy_coefficient,
            "value_coefficient": self.value_coefficient,
            "normalize_advantages": self.normalize_advantages,
            "max_gradient_norm": self.max_gradient_norm,
        }
