"""Whole rounds in the graph: rollout, statistics, samples, minibatches."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rl2.basics.outliers import FEWEST_EXAMPLES
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.reward_scaler import RewardScaler
from keras_rl2.graph import noise
from keras_rl2.graph.graph_rollout import GraphRollout
from keras_rl2.graph.graph_rollout import RoundsInGraph
from keras_rl2.graph.graph_rollout import overrides
from keras_rl2.graph.graph_vector_env import GraphVectorEnv
from keras_rl2.networks.inputs import flat
from keras_rl2.spaces.trees import map_leaves


class GraphRounds(RoundsInGraph):
    """Makes the rounds of an on-policy agent within its train function.

    Args:
        agent: `keras_rl2.Agent`. On-policy; acts and learns.
        env: `GraphVectorEnv`. B environments.
        horizon: int. Steps of a rollout, T.
        passes: int. Times that every step is trained on.
        minibatches: int. Minibatches of one pass.
        batch_size: int. Steps of a minibatch.
        scaler: `RewardScaler` or None. Settings of the scale of rewards; None
            for rewards that are not scaled.
        receive: Method that receives what the graph has counted in a round:
            returns and lengths of the last 100 episodes that ended, `[2, E]`;
            those of episodes in progress, `[2, B]`; and the statistics of the
            samples, a dict of floats. Its object is not kept alive.
    """

    def __init__(
        self,
        agent: Any,
        env: GraphVectorEnv,
        horizon: int,
        passes: int,
        minibatches: int,
        batch_size: int,
        scaler: RewardScaler | None,
        receive: Callable[[np.ndarray, np.ndarray, dict[str, float]], None],
    ) -> None:
        super().__init__(agent, env, horizon, receive)
        # ε itself is passed to each round: a schedule may run TensorFlow.
        self._noise_parts = agent.policy.noise_parts
        self._passes = passes
        self._minibatches = minibatches
        self._batch_size = batch_size
        self._scaler = scaler

    def __call__(
        self,
        inputs: Mapping[str, Tensor],
        carried: Mapping[str, Tensor],
        from_trajectory: bool,
    ) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
        """Makes a round, in the graph.

        Args:
            inputs: Mapping of tensors; see `RoundInputs`.
            carried: Mapping of tensors; see `Carried`.
            from_trajectory: bool. Whether the update takes the rollout itself.

        Returns:
            The round, see `round_dataset.minibatch`, with `usable`, a scalar
            bool: whether all numbers are finite, so that the updates may be
            made. Then the report, see `receive`, and what is passed on.
        """
        agent, env = self._agent, self._env
        drawn = noise.draw_noise(
            self._noise_parts,
            inputs["noise"],
            inputs["seed"],
            (self._horizon, env.num_envs),
        )
        drawn = tf.reshape(
            drawn, (self._horizon, env.num_envs, *agent.policy.noise_shape)
        )
        _, rollout, report = self._roll_out(carried["totals"], drawn)
        usable = tf.reduce_all(report["bad"] < 0)
        told = agent.normalizing.accumulate(
            map_leaves(flat, rollout.observation),
            tf.fill((self._horizon * env.num_envs,), usable),
        )
        usable &= ~tf.reduce_any(told[:-1] > 0)
        report["told"] = told
        reward, next_scale = self._scaled(rollout, carried["scale"])
        if self._scaler is not None:
            report["scale"] = next_scale
            usable &= tf.reduce_all(tf.math.is_finite(next_scale))
        arrays = trajectory_arrays(rollout, reward)
        one_round: dict[str, Any] = {"usable": usable}
        if from_trajectory:
            one_round |= arrays
        else:
            samples, statistics = agent.rollout_samples.prepared(arrays)
            samples["observation"] = map_leaves(flat, rollout.observation)
            samples["action"] = flat(rollout.action)
            rows, weight = self._minibatch_rows(inputs["shuffle"])
            one_round |= {"samples": samples, "rows": rows, "weight": weight}
            report |= statistics
        passed_on = {
            "totals": tf.cast(report["totals"], "float64"),
            "scale": next_scale,
        }
        return one_round, report, passed_on

    def _scaled(
        self, rollout: GraphRollout, last: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the rewards on their new scale, and that scale."""
        if self._scaler is None:
            return rollout.reward, last
        mean, variance, total, outliers = tf.unstack(last[:4])
        scale, reward = scale_rewards(
            self._scaler,
            self._agent.gamma,
            Scale(mean, variance, total, outliers, last[4:]),
            rollout.reward,
            rollout.ended,
        )
        return reward, tf.concat([tf.stack(scale[:4]), scale.returns], axis=0)

    @staticmethod
    def can_make(agent: Any) -> bool:
        """Returns whether rounds of an agent can be made in the graph.

        Others are made as with any environment.

        Returns:
            bool. False if the policy is recurrent, if a round is whole
            episodes, if noise is correlated over time, or if a subclass
            changes what Python does in a round.
        """
        return (
            hasattr(agent, "rollout_samples")
            and not agent.whole_episodes
            and not agent.policy.initial_state(1)
            and noise.can_draw(agent.policy.noise_parts)
            and not overrides(
                agent, "prepare", "observe", "draw_noise", "begin_round"
            )
        )

    def inputs(
        self,
        noise_generator: np.random.Generator,
        shuffle_generator: np.random.Generator,
        parts_of_rounds: Sequence[Sequence[Mapping[str, Any]]],
    ) -> dict[str, np.ndarray]:
        """Returns the arrays that the next rounds are made from.

        Returns:
            dict of the seeds `seed` of the noise and `shuffle` of the order of
            steps, `[K, 2]` uint32; and of the numbers `noise`, see
            `noise.noise_inputs`, `[K, P]` float32.
        """
        of_rounds = (len(parts_of_rounds), 2)
        return {
            "seed": noise_generator.integers(
                2**32, size=of_rounds, dtype="uint32"
            ),
            "shuffle": shuffle_generator.integers(
                2**32, size=of_rounds, dtype="uint32"
            ),
            "noise": np.array([*map(noise.noise_inputs, parts_of_rounds)]),
        }

    def carried(self, in_progress: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the arrays that rounds pass on to each other.

        Args:
            in_progress: `[2, B]` float64. Returns and lengths of the episodes
                in progress.

        Returns:
            dict of these `totals`, and of `scale`; see
            `RewardScaler.as_array`, `[0]` where rewards are not scaled.
        """
        scaler = self._scaler
        scale = np.empty(0) if scaler is None else scaler.as_array()
        return {"totals": in_progress, "scale": scale}

    def receive(self, reports: dict[str, np.ndarray]) -> None:
        """Keeps the statistics of rounds, once the graph has made them.

        Args:
            reports: dict of float64 arrays `[K, ...]` of K rounds, from a call
                of the graph.
        """
        for k in range(len(reports["bad"])):
            self._receive_round({key: each[k] for key, each in reports.items()})

    def _receive_round(self, parts: dict[str, np.ndarray]) -> None:
        """Keeps the statistics of one round."""
        self._refuse_not_finite(parts.pop("bad"))
        self._agent.normalizing.tell(parts.pop("told"), None)
        if self._scaler is not None:
            self._scaler.take_array(parts.pop("scale"))
        count, ended = parts.pop("count"), parts.pop("episodes")
        first = max(ended.shape[1] - int(count), 0)
        totals = parts.pop("totals")
        statistics = {name: float(each) for name, each in parts.items()}
        receive = self._receive()
        if receive is not None:
            receive(ended[:, first:], totals, statistics)

    def settings(self) -> tuple[Any, ...]:
        """Returns the numbers and functions that the graph is made of."""
        scaler = self._scaler
        return (
            self._env.kind,
            self._horizon,
            self._passes,
            self._minibatches,
            self._batch_size,
            scaler and (scaler.epsilon, scaler.clip, scaler.max_deviations),
        )

    def _minibatch_rows(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Distributes steps to minibatches; see `data.rollouts.shuffled_rows`.

        Returns:
            Rows `[passes * M, batch_size]` int32, and their weights, float32.
        """
        count = self._horizon * self._env.num_envs
        columns = -(-count // self._minibatches)
        order = random_numbers.permutations(seed, self._passes, count)
        # [passes, count] -> [passes, M, columns]: every M-th step is taken.
        empty = columns * self._minibatches - count
        order = tf.pad(order, ((0, 0), (0, empty)))
        order = tf.reshape(order, (self._passes, columns, self._minibatches))
        counted = tf.reshape(
            tf.range(columns * self._minibatches) < count,
            (columns, self._minibatches),
        )
        rows = tf.transpose(order, (0, 2, 1))
        weight = tf.broadcast_to(tf.transpose(counted), rows.shape)
        weight = tf.cast(weight, "float32")
        unused = ((0, 0), (0, 0), (0, self._batch_size - columns))
        shape = (self._passes * self._minibatches, self._batch_size)
        return (
            tf.reshape(tf.pad(rows, unused), shape),
            tf.reshape(tf.pad(weight, unused), shape),
        )


def trajectory_arrays(rollout: GraphRollout, reward: Tensor) -> dict[str, Any]:
    """Returns the arrays of which samples are made.

    Args:
        rollout: `GraphRollout`.
        reward: `[T, B]` float32. Rewards, scaled if enabled.

    Returns:
        dict; see `Trajectory.arrays`, with `next_observation` `[T, B, ...]` in
        place of the final ones.
    """
    return {
        "observation": rollout.observation,
        "next_observation": rollout.next_observation,
        "action": rollout.action,
        "reward": reward,
        "terminated": rollout.terminated,
        "truncated": rollout.truncated,
        "valid": tf.ones_like(rollout.terminated),
    }


class Scale(NamedTuple):
    """The state of a `RewardScaler`, as float64 tensors.

    Attributes:
        mean: Scalar. Mean of the returns so far.
        variance: Scalar. Variance of the returns so far.
        total: Scalar. Number of the returns so far.
        outliers: Scalar. Number of rewards that did not move the scale.
        returns: `[B]`. Discounted return of each environment.
    """

    mean: Tensor
    variance: Tensor
    total: Tensor
    outliers: Tensor
    returns: Tensor


def scale_rewards(
    scaler: RewardScaler,
    gamma: float | Tensor,
    scale: Scale,
    reward: Tensor,
    ended: Tensor,
) -> tuple[Scale, Tensor]:
    """Scales the rewards of T steps, as `RewardScaler.scale_rollout` does.

    Args:
        scaler: `RewardScaler`. Its settings, except for the discount factor.
        gamma: float or scalar tensor. Discount factor.
        scale: `Scale`. Its state.
        reward: `[T, B]` float32. Rewards.
        ended: `[T, B]` bool. Whether the episode ended in that step.

    Returns:
        The next state, and scaled rewards `[T, B]` float32.
    """
    horizon, num_envs = reward.shape
    wide = tf.cast(reward, "float64")
    if not isinstance(gamma, float):
        gamma = tf.cast(gamma, "float64")

    def step(
        t: Tensor, scale: Scale, after: tf.TensorArray
    ) -> tuple[Tensor, Scale, tf.TensorArray]:
        earlier = scale.returns * gamma
        returns = earlier + wide[t]
        bounded = _bounded(scaler, scale, returns)
        moved = bounded != returns
        mean = tf.reduce_mean(bounded)
        variance = tf.reduce_mean(tf.square(bounded - mean))
        total = scale.total + num_envs
        delta = mean - scale.mean
        squares = scale.variance * scale.total + variance * num_envs
        squares += delta * delta * (scale.total * num_envs / total)
        # An outlier would recur in each later return.
        kept = tf.where(moved, earlier, returns)
        scale = Scale(
            scale.mean + delta * (num_envs / total),
            squares / total,
            total,
            scale.outliers + tf.reduce_sum(tf.cast(moved, "float64")),
            tf.where(ended[t], tf.zeros_like(kept), kept),
        )
        return t + 1, scale, after.write(t, scale.variance)

    _, scale, after = tf.while_loop(
        lambda t, *_: t < horizon,
        step,
        (0, scale, tf.TensorArray("float64", horizon, element_shape=())),
        maximum_iterations=horizon,
    )
    deviation = tf.sqrt(after.stack() + scaler.epsilon)[:, None]
    scaled = tf.clip_by_value(wide / deviation, -scaler.clip, scaler.clip)
    return scale, tf.cast(scaled, "float32")


def _bounded(scaler: RewardScaler, scale: Scale, returns: Tensor) -> Tensor:
    """Returns `[B]` without outliers; see `RunningMoments.bounded`."""
    if scaler.max_deviations is None:
        return returns
    most = tf.minimum(
        scale.total, tf.constant(scaler.max_deviations**2, "float64")
    )
    of_prior = scaler.moments.of_prior(scale.mean)
    known = (scale.total >= FEWEST_EXAMPLES) & (
        scale.variance * scale.total > of_prior
    )
    reach = tf.sqrt(scale.variance * most)
    clipped = tf.clip_by_value(returns, scale.mean - reach, scale.mean + reach)
    return tf.where(known, clipped, returns)
