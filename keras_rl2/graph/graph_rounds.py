"""Whole rounds in the graph: rollout, statistics, samples, minibatches."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.basics.moments import Moments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.reward_scaler import PRIOR
from keras_rl2.envs.reward_scaler import RewardScaler
from keras_rl2.graph import noise
from keras_rl2.graph.graph_rollout import GraphRollout
from keras_rl2.graph.graph_rollout import RoundsInGraph
from keras_rl2.graph.graph_rollout import draw_seeds
from keras_rl2.graph.graph_rollout import ended_episodes
from keras_rl2.graph.graph_rollout import overrides
from keras_rl2.networks.sequences import flat
from keras_rl2.spaces.trees import map_leaves


class GraphRounds(RoundsInGraph):
    """Makes the rounds of an on-policy agent within its train function.

    Args:
        agent: `keras_rl2.Agent`. On-policy; acts and learns.
        dataset: `RolloutDataset` over a `GraphVectorEnv`.
    """

    def __init__(self, agent: Any, dataset: Any) -> None:
        super().__init__(agent, dataset)
        # ε itself is passed to each round: a schedule may run TensorFlow.
        self._noise_parts = agent.policy.noise.parts
        self._passes = dataset.passes
        self._minibatches = dataset.minibatches
        self._batch_size = dataset.batch_size
        self._scaler: RewardScaler | None = dataset.scaler

    def __call__(
        self,
        inputs: Mapping[str, Tensor],
        carried: Mapping[str, Tensor],
        from_trajectory: bool,
    ) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
        """Makes a round, in the graph.

        Args:
            inputs: Mapping of tensors; see `begin`.
            carried: Mapping of tensors; see `begin`.
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
        _, rollout, report = self._roll_out(carried["totals"], drawn)
        usable = tf.reduce_all(report["bad"] < 0)
        outliers = agent.normalizing.accumulate(
            map_leaves(flat, rollout.observation),
            tf.fill((self._horizon * env.num_envs,), usable),
        )
        usable &= ~tf.reduce_any(outliers[:-1] > 0)
        report["normalizing"] = outliers
        reward, scale = rollout.reward, carried["scale"]
        if self._scaler is not None:
            reward, scale = scale_rewards(
                self._scaler, agent.gamma, scale, reward, rollout.ended
            )
            report["scale"] = scale
            usable &= tf.reduce_all(tf.math.is_finite(scale))
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
        passed_on = {"totals": report["totals"], "scale": scale}
        return one_round, report, passed_on

    @staticmethod
    def can_make(agent: Any, dataset: Any) -> bool:
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
            and noise.can_draw(agent.policy.noise.parts)
            and not overrides(agent, "prepare", "observe", "begin_round")
        )

    @property
    def is_ready(self) -> bool:
        """Whether the next round can be made: observers see trajectories."""
        return not self._agent.observers

    def begin(self, rounds: int) -> dict[str, Any]:
        """Returns the arguments of a call that makes the next rounds.

        Returns:
            dict of `inputs`: the seeds `seed` of the noise and `shuffle` of the
            order of steps, `[K, 2]` uint32, and the numbers `noise`, see
            `noise.noise_inputs`, `[K, P]` float32; and of `carried`: `totals`,
            returns and lengths of the episodes in progress, `[2, B]` float64,
            and `scale`, see `RewardScaler.as_array`, `[0]` where rewards are
            not scaled.
        """
        dataset = self._dataset
        self._leave_environments()
        scaler = self._scaler
        return {
            "inputs": {
                **self._noise_inputs(rounds, dataset.source.noise),
                "shuffle": draw_seeds(dataset.shuffle, rounds),
            },
            "carried": {
                "totals": dataset.source.collector.episodes.in_progress,
                "scale": np.empty(0) if scaler is None else scaler.as_array(),
            },
        }

    def receive(self, reports: dict[str, np.ndarray]) -> None:
        """Keeps the statistics of rounds, once the graph has made them."""
        for k in range(len(reports["bad"])):
            self._receive_round({key: each[k] for key, each in reports.items()})

    def _receive_round(self, parts: dict[str, np.ndarray]) -> None:
        """Keeps the statistics of one round."""
        self._refuse_not_finite(parts.pop("bad"))
        self._agent.normalizing.tell(parts.pop("normalizing"), None)
        if self._scaler is not None:
            self._scaler.take_array(parts.pop("scale"))
        ended = ended_episodes(parts)
        del parts["count"], parts["episodes"]
        self._take_back(ended, parts.pop("totals"))
        self._dataset.take_round({k: float(each) for k, each in parts.items()})

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
        order = random_numbers.permutations(seed, self._passes, count)
        # Rows without a step take the last number of each pass, 0.
        empty = self._minibatches * self._batch_size - count
        order = tf.pad(order, ((0, 0), (0, empty)))
        # [passes, batch, M] -> [passes, M, batch]: every M-th step is taken.
        shape = (-1, self._batch_size, self._minibatches)
        rows = tf.transpose(tf.reshape(order, shape), (0, 2, 1))
        place = tf.reshape(tf.range(count + empty), shape[1:])
        weight = tf.cast(tf.transpose(place) < count, "float32")
        return (
            tf.reshape(rows, (-1, self._batch_size)),
            tf.tile(weight, (self._passes, 1)),
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
    valid = tf.ones_like(rollout.terminated)
    arrays = dict(zip(rollout._fields[:6], rollout, strict=False))
    return arrays | {"reward": reward, "valid": valid}


def scale_rewards(
    scaler: RewardScaler,
    gamma: float | Tensor,
    state: Tensor,
    reward: Tensor,
    ended: Tensor,
) -> tuple[Tensor, Tensor]:
    """Scales the rewards of T steps, as `RewardScaler.scale_rollout` does.

    Args:
        scaler: `RewardScaler`. Its settings, except for the discount factor.
        gamma: float or scalar tensor. Discount factor.
        state: `[4 + B]` float64. Its state; see `RewardScaler.as_array`.
        reward: `[T, B]` float32. Rewards.
        ended: `[T, B]` bool. Whether the episode ended in that step.

    Returns:
        Scaled rewards `[T, B]` float32, and the next state.
    """
    horizon, num_envs = reward.shape
    wide = tf.cast(reward, "float64")
    if not isinstance(gamma, float):
        gamma = tf.cast(gamma, "float64")

    def step(
        t: Tensor,
        moments: Moments,
        outliers: Tensor,
        returns: Tensor,
        variances: tf.TensorArray,
    ) -> tuple[Tensor, Moments, Tensor, Tensor, tf.TensorArray]:
        earlier = returns * gamma
        returns = earlier + wide[t]
        bounded = moments.bounded(returns, scaler.max_deviations, ops, PRIOR)
        moved = bounded != returns
        mean = tf.reduce_mean(bounded)
        variance = tf.reduce_mean(tf.square(bounded - mean))
        moments = moments.merged(mean, variance, num_envs)
        outliers += tf.reduce_sum(tf.cast(moved, "float64"))
        # An outlier would recur in each later return.
        returns = tf.where(moved, earlier, returns)
        returns = tf.where(ended[t], tf.zeros_like(returns), returns)
        variances = variances.write(t, moments.variance)
        return t + 1, moments, outliers, returns, variances

    *moments, outliers = tf.unstack(state[:4])
    _, moments, outliers, returns, variances = tf.while_loop(
        lambda t, *_: t < horizon,
        step,
        (
            0,
            Moments(*moments),
            outliers,
            state[4:],
            tf.TensorArray("float64", horizon, element_shape=()),
        ),
        maximum_iterations=horizon,
    )
    deviation = tf.sqrt(variances.stack() + scaler.epsilon)[:, None]
    scaled = tf.clip_by_value(wide / deviation, -scaler.clip, scaler.clip)
    state = tf.concat([[*moments, outliers], returns], axis=0)
    return tf.cast(scaled, "float32"), state
