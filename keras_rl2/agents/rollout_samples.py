"""From a rollout to samples: one forward pass, advantages and targets."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any
from typing import cast

import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2 import returns
from keras_rl2.data import Trajectory
from keras_rl2.distributions import Distribution
from keras_rl2.shapes import Tensor

if TYPE_CHECKING:
    from keras_rl2.agents.on_policy_agent import OnPolicyAgent

Prepared = tuple[dict[str, Tensor], dict[str, Tensor]]


class RolloutSamples:
    """Makes samples of the rollouts of an on-policy agent.

    T is the number of steps, B that of environments, N = T * B.

    Args:
        agent: `OnPolicyAgent`. Whose networks are run.
    """

    def __init__(self, agent: "OnPolicyAgent") -> None:
        self._agent = agent
        self._functions: dict[tuple[int, ...], Callable[..., Prepared]] = {}

    @property
    def spec(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Shape and dtype of each entry of one sample."""
        agent = self._agent
        scalar = ((), np.dtype(np.float32))
        return {
            "observation": (
                agent.observation_shape,
                np.dtype(agent.observation_dtype),
            ),
            "action": (
                tuple(agent.policy_head.action_shape),
                np.dtype(agent.policy_head.action_dtype),
            ),
            "log_prob": scalar,
            "advantage": scalar,
            "returns": scalar,
            "value": scalar,
        }

    def prepare(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Computes what updates need, in one call; see `Agent.prepare`.

        Args:
            trajectory: `Trajectory` of T steps of B environments.

        Returns:
            Samples, a dict of arrays `[N, ...]`, and statistics, a dict of
            floats.
        """
        key = trajectory.action.shape[:2]
        if key not in self._functions:
            self._functions[key] = tf.function(
                self._prepared,
                input_signature=[_trajectory_spec(trajectory)],
                autograph=False,
            )
        computed, statistics = self._functions[key](trajectory.arrays())
        samples = {
            name: cast(tf.Tensor, value).numpy()
            for name, value in computed.items()
        }
        # [T, B, ...] -> [N, ...], of observations without the last one
        steps = trajectory.reward.size
        samples["observation"] = trajectory.observation[:-1].reshape(
            steps, *trajectory.observation.shape[2:]
        )
        samples["action"] = trajectory.action.reshape(
            steps, *trajectory.action.shape[2:]
        )
        return samples, {
            k: float(cast(tf.Tensor, v)) for k, v in statistics.items()
        }

    def _prepared(self, arrays: dict[str, Tensor]) -> Prepared:
        """Does what `prepare` promises, in the graph."""
        policy, _, samples = self.of(arrays, training=False)
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

    def of(
        self, arrays: dict[str, Tensor], training: bool
    ) -> tuple[Distribution, Tensor, dict[str, Tensor]]:
        """Runs the networks over a rollout and computes targets, in the graph.

        Args:
            arrays: dict, as of `Trajectory.arrays`.
            training: bool. Passed on to the networks.

        Returns:
            The policy and the values `[N]`, and samples `[N, ...]` through
            which no gradient flows.
        """
        horizon: int
        num_envs: int
        horizon, num_envs = arrays["reward"].shape
        steps = horizon * num_envs

        def flat(array: Tensor) -> Tensor:
            # [T, B, ...] -> [N, ...]
            return ops.reshape(array, (-1, *array.shape[2:]))

        def rollout(array: Tensor) -> Tensor:
            # [N] -> [T, B]
            return ops.reshape(array, (horizon, num_envs))

        # [N + B + E, ...]: of each step, of what follows the last ones, and
        # of the E episodes that ended within a step.
        rows = flat(arrays["observation"])
        has_final = "final_index" in arrays
        everything = rows
        if has_final:
            everything = ops.concatenate(
                [rows, arrays["final_observation"]], axis=0
            )
        policy, value = self._agent.evaluate_rows(everything, steps, training)
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

    def _targets(
        self, arrays: dict[str, Tensor], values: Tensor, next_values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns advantages and value targets `[T, B]`."""
        going_on = 1.0 - ops.cast(arrays["terminated"], "float32")
        return returns.generalized_advantage_estimation(
            arrays["reward"],
            self._agent.gamma * going_on,
            values,
            next_values,
            self._agent.gae_lambda,
            truncated=arrays["truncated"],
        )


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
