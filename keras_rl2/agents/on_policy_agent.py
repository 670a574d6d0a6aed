"""What agents that learn from fresh rollouts share."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2 import returns
from keras_rl2 import statistics
from keras_rl2.agents import network_checks
from keras_rl2.agents.actor_critic import ActorCritic
from keras_rl2.agents.actor_critic import one_value_each
from keras_rl2.data import Trajectory
from keras_rl2.data import unpack
from keras_rl2.distributions import Distribution
from keras_rl2.shapes import Tensor


class OnPolicyAgent(ActorCritic):
    """Base of agents that learn from rollouts of their present policy.

    A subclass may change `loss_terms`: what a minibatch costs, from one
    forward pass.

    Args:
        actor: `keras.Model` from observations to the parameters of the
            policy; or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, or None.
            Defaults to `None`.
        gamma: float. Discount factor. Defaults to `0.99`.
        gae_lambda: float. Decay of the advantage estimate. Defaults to
            `0.95`.
        entropy_coefficient: float. Weight of the entropy bonus. Defaults to
            `0.0`.
        value_coefficient: float. Weight of the value loss. Defaults to `0.5`.
        normalize_advantages: bool. Whether advantages are normalised within
            each minibatch. Defaults to `False`.
        **kwargs: Arguments of `ActorCritic`: `max_gradient_norm`,
            `initial_log_std`, `observation_space`, `action_space`, `seed`,
            `name`, `dtype`.
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
        **kwargs: Any,
    ) -> None:
        network_checks.check_in_range(
            gamma=(gamma, 0.0, 1.0),
            gae_lambda=(gae_lambda, 0.0, 1.0),
            entropy_coefficient=(entropy_coefficient, 0.0, np.inf),
            value_coefficient=(value_coefficient, 0.0, np.inf),
        )
        super().__init__(actor, critic, **kwargs)
        self.gamma = gamma
        self.gae_lambda = gae_lambda
        self.entropy_coefficient = entropy_coefficient
        self.value_coefficient = value_coefficient
        self.normalize_advantages = normalize_advantages
        self._prepare_functions: dict[Any, Any] = {}

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

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """Makes one update from a minibatch of samples."""
        batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            policy, value = self.policy_and_value(
                batch["observation"], training=True
            )
            terms = self.loss_terms(policy, value, batch)
            scaled = self.optimizer.scale_loss(terms["loss"])
        return self._learn(terms, scaled, tape)

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
        with tf.GradientTape() as tape:
            policy, value, samples = self._samples(
                unpack(arrays), training=True
            )
            terms = self.loss_terms(policy, value, samples)
            scaled = self.optimizer.scale_loss(terms["loss"])
        return self._learn(terms, scaled, tape)

    def _learn(
        self, terms: dict[str, Tensor], scaled: Tensor, tape: Any
    ) -> dict[str, Tensor]:
        """Applies the gradient and keeps the scalars of an update."""
        norm = self.minimize(scaled, tape)
        self.statistics.update_state({**terms, "gradient_norm": norm})
        logs: dict[str, Tensor] = self.get_metrics_result()
        return logs

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

    # Preparing a rollout.

    def prepare(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Computes what the updates need, in one compiled call.

        Args:
            trajectory: `Trajectory` of T steps of B environments.

        Returns:
            Samples, a dict of arrays `[T * B, ...]` (see `sample_spec`), and
            statistics, a dict of floats.
        """
        key = trajectory.action.shape[:2]
        if key not in self._prepare_functions:
            self._prepare_functions[key] = tf.function(
                self._prepare,
                input_signature=[_trajectory_spec(trajectory)],
                autograph=False,
            )
        computed, statistics = self._prepare_functions[key](trajectory.arrays())
        samples = {name: value.numpy() for name, value in computed.items()}
        steps = trajectory.reward.size
        samples["observation"] = trajectory.observation[:-1].reshape(
            steps, *trajectory.observation.shape[2:]
        )
        samples["action"] = trajectory.action.reshape(
            steps, *trajectory.action.shape[2:]
        )
        return samples, {k: float(v) for k, v in statistics.items()}

    def sample_spec(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Returns shape and dtype of each entry of one sample.

        Returns:
            dict: `observation` and `action` as collected; `log_prob` and
            `value` under the weights that acted; `advantage`; `returns`, the
            target of the value. All but the first two are float32 scalars.
        """
        scalar = ((), np.dtype(np.float32))
        return {
            "observation": (
                self.observation_shape,
                np.dtype(self.observation_dtype),
            ),
            "action": (
                tuple(self.policy_head.action_shape),
                np.dtype(self.policy_head.action_dtype),
            ),
            "log_prob": scalar,
            "advantage": scalar,
            "returns": scalar,
            "value": scalar,
        }

    def _prepare(self, arrays: dict[str, Tensor]) -> tuple[Any, Any]:
        """Does what `prepare` promises, in the graph."""
        policy, _, samples = self._samples(arrays, training=False)
        samples["log_prob"] = policy.log_prob(samples["action"])
        computed = ("log_prob", "advantage", "returns", "value")
        return (
            {key: samples[key] for key in computed},
            {
                "explained_variance": losses.explained_variance(
                    samples["value"], samples["returns"], samples["weight"]
                )
            },
        )

    def _samples(
        self, arrays: dict[str, Tensor], training: bool
    ) -> tuple[Distribution, Tensor, dict[str, Tensor]]:
        """Runs the networks over a rollout and computes targets.

        Returns:
            The policy and the values `[T * B]`, and samples `[T * B, ...]`
            through which no gradient flows.
        """
        horizon, num_envs = arrays["reward"].shape
        steps = horizon * num_envs

        def flat(array: Tensor) -> Tensor:
            return ops.reshape(array, (-1, *array.shape[2:]))

        def rollout(array: Tensor) -> Tensor:
            return ops.reshape(array, (horizon, num_envs))

        rows = flat(arrays["observation"])
        has_final = "final_index" in arrays
        everything = rows
        if has_final:
            everything = ops.concatenate(
                [rows, arrays["final_observation"]], axis=0
            )
        policy, value = self._evaluate_rows(everything, steps, training)
        known = ops.stop_gradient(value)
        following = known[num_envs : steps + num_envs]
        if has_final:
            # One more slot, for rows that only fill up a fixed shape.
            following = tf.tensor_scatter_nd_update(
                ops.concatenate([following, ops.zeros((1,))], axis=0),
                arrays["final_index"][:, None],
                known[steps + num_envs :],
            )[:steps]
        values = rollout(known[:steps])
        advantages, targets = self._targets(arrays, values, rollout(following))
        return (
            policy,
            value[:steps],
            {
                "observation": rows[:steps],
                "action": flat(arrays["action"]),
                "advantage": flat(advantages),
                "returns": flat(targets),
                "value": known[:steps],
                "weight": ops.cast(flat(arrays["valid"]), "float32"),
            },
        )

    def _evaluate_rows(
        self, rows: Tensor, steps: int, training: bool
    ) -> tuple[Distribution, Tensor]:
        """Returns the policy of the first rows and the values of them all."""
        encoded = self.encode(rows)
        if self.critic is None:
            outputs = self.actor(encoded, training=training)
            parameters, value = self.split_outputs(outputs)
            return self.policy(parameters[:steps]), value
        parameters = self.actor(encoded[:steps], training=training)
        value = self.critic(encoded, training=training)
        return self.policy(parameters), one_value_each(value)

    def _targets(
        self, arrays: dict[str, Tensor], values: Tensor, next_values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns advantages and value targets `[T, B]`."""
        going_on = 1.0 - ops.cast(arrays["terminated"], "float32")
        return returns.generalized_advantage_estimation(
            arrays["reward"],
            self.gamma * going_on,
            values,
            next_values,
            self.gae_lambda,
            truncated=arrays["truncated"],
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "gamma": self.gamma,
            "gae_lambda": self.gae_lambda,
            "entropy_coefficient": self.entropy_coefficient,
            "value_coefficient": self.value_coefficient,
            "normalize_advantages": self.normalize_advantages,
        }


def _trajectory_spec(trajectory: Trajectory) -> dict[str, tf.TensorSpec]:
    """Returns a signature that leaves the number of final rows open."""
    return {
        key: tf.TensorSpec(
            (None, *array.shape[1:])
            if key.startswith("final")
            else array.shape,
            array.dtype,
        )
        for key, array in trajectory.arrays().items()
    }
