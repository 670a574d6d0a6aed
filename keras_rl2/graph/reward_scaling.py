"""Scaling of the rewards of a rollout, in the graph."""

from typing import NamedTuple

import tensorflow as tf

from keras_rl2.basics.outliers import FEWEST_EXAMPLES
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.reward_scaler import RewardScaler


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
