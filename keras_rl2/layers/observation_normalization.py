"""Normalisation of observations by running statistics.

Letters: B is the batch, D the observation's own axes.
"""

import functools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_rl2.basics.arguments import check_above_zero
from keras_rl2.basics.arguments import present
from keras_rl2.basics.moments import FEWEST_EXAMPLES
from keras_rl2.basics.moments import MAX_DEVIATIONS
from keras_rl2.basics.moments import Moments
from keras_rl2.basics.shapes import Shape
from keras_rl2.basics.shapes import Tensor

__all__ = ["ObservationNormalization"]

_LARGEST = float(np.finfo(np.float32).max)


@keras.saving.register_keras_serializable(package="keras_rl2")
class ObservationNormalization(keras.layers.Layer):
    """Scales observations by the mean and deviation of all those collected.

    Being a layer, its statistics are saved, exported and copied with the
    network. They change only at the boundary of a round: `accumulate` includes
    a rollout, `commit` puts the new statistics into use. So the acting
    policy, the recorded log-probabilities and the updates of one round all see
    the same function, and neither `evaluate` nor `act` changes anything.

        y = clip((x - mean) / sqrt(variance + epsilon), -clip, clip)

    An outlier does not spoil them: after 1000 observations, a value beyond
    `max_deviations` standard deviations (of fewer than `max_deviations` squared
    observations: beyond the square root of their number) is included as if it
    were at that distance. An entry that has been constant is exempt, since its
    scale is unknown.

    Args:
        clip: float. Bound of the normalised observation. Defaults to `10.0`.
        epsilon: float. Added to the variance. Defaults to `1e-8`.
        key: str. Name of the array of a Dict or Tuple observation:
            `"position"`, `"arm.angle"` for a key within a key, `"0"` in a
            Tuple. Defaults to `""`, the only one.
        max_deviations: float or None. Distance from the mean, in standard
            deviations, beyond which a value moves the statistics no further.
            None for no such limit. Defaults to `100.0`.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> import numpy as np
    >>> layer = ObservationNormalization()
    >>> layer.build((None, 1))
    >>> finite = layer.accumulate(
    ...     np.array([[1.0], [3.0]], "float32"), np.ones(2))
    >>> layer.commit()
    >>> layer(np.array([[3.0]], "float32")).numpy().round(2).tolist()
    [[1.0]]

    Reference:
        - Chan et al., 1979, "Updating Formulae and a Pairwise Algorithm for
          Computing Sample Variances."
    """

    def __init__(
        self,
        clip: float = 10.0,
        epsilon: float = 1e-8,
        key: str = "",
        max_deviations: float | None = MAX_DEVIATIONS,
        **kwargs: Any,
    ) -> None:
        # Under mixed precision, large observations would be rounded before
        # their mean is taken off.
        super().__init__(autocast=False, **kwargs)
        check_above_zero(**present(max_deviations=max_deviations))
        self.clip = clip
        self.epsilon = epsilon
        self.key = key
        self.max_deviations = max_deviations

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the statistics, one of each per observation entry."""
        statistic = functools.partial(
            self.add_weight,
            shape=tuple(input_shape[1:]),
            initializer="zeros",
            trainable=False,
            autocast=False,
        )
        self.mean = statistic(name="mean", dtype="float32")
        self.variance = statistic(
            name="variance", initializer="ones", dtype="float32"
        )
        # These are float64: sums of float32 would lose a small deviation from a
        # large mean. LiteRT does not compute in it, so the two above do not.
        self.running_mean = statistic(name="running_mean", dtype="float64")
        self.running_variance = statistic(
            name="running_variance", initializer="ones", dtype="float64"
        )
        self.count = statistic(name="count", shape=(), dtype="float64")

    def call(self, inputs: Tensor) -> Tensor:
        """Normalises with the statistics in use."""
        x = ops.cast(inputs, "float32")
        x = (x - self.mean) / ops.sqrt(self.variance + self.epsilon)
        return ops.cast(ops.clip(x, -self.clip, self.clip), self.compute_dtype)

    def accumulate(self, observation: Tensor, weight: Tensor) -> Tensor:
        """Includes observations in the next running statistics, not in use yet.

        Args:
            observation: `[B, *D]`. Observations.
            weight: `[B]`. 1 for a row that counts, 0 for one that does not.

        Returns:
            scalar bool. Whether the statistics stay finite. Where they would
            not, since the squares of observations are not finite in float32,
            nothing is taken in.
        """
        found = self.moments_with(self.bounded(observation), weight)
        finite = all_finite(found)
        self.keep_moments(found, finite)
        return finite

    def bounded(self, observation: Tensor) -> Tensor:
        """Returns observations without outliers, as the statistics take them.

        Args:
            observation: `[B, *D]`. Observations.

        Returns:
            `[B, *D]` float64. Values too far from the mean are moved to the
            nearest allowed one, unless their square is not finite:
            `accumulate` raises an error for those.
        """
        x = ops.cast(observation, "float64")
        moments = Moments(self.running_mean, self.running_variance, self.count)
        return ops.where(
            ops.square(x) < _LARGEST,
            moments.bounded(x, self.max_deviations, ops),
            x,
        )

    def moments_with(self, observation: Tensor, weight: Tensor) -> Moments:
        """Returns the running statistics with more observations included.

        Args:
            observation: `[B, *D]`. Observations.
            weight: `[B]`. 1 for a row that counts, 0 for one that does not.

        Returns:
            `Moments` of mean `[*D]`, variance `[*D]` and count, a scalar.
        """
        x = ops.cast(observation, "float64")
        weight = ops.cast(weight, "float64")
        rows = ops.reshape(  # [B, 1, ...], as many axes as x
            weight, (-1,) + (1,) * (len(x.shape) - 1)
        )
        batch_count = ops.sum(weight)
        safe_count = ops.maximum(batch_count, 1.0)
        # This is no product, since rows with weight 0 may not be finite.
        x = ops.where(rows > 0, x, ops.zeros_like(x))
        batch_mean = ops.sum(x * rows, axis=0) / safe_count  # [*D]
        batch_variance = (
            ops.sum(ops.square(x - batch_mean) * rows, axis=0) / safe_count
        )
        total = self.count + batch_count
        share = batch_count / ops.maximum(total, 1.0)
        delta = batch_mean - self.running_mean
        # The weight of the old variance is its share of all rows, so that the
        # initial variance of 1 leaves with the first rollout.
        variance = (
            self.running_variance * (1.0 - share)
            + batch_variance * share
            + ops.square(delta) * share * (1.0 - share)
        )
        return Moments(self.running_mean + delta * share, variance, total)

    def are_ordinary(self, moments: Moments) -> Tensor:
        """Returns whether new observations certainly contain no outlier.

        An outlier would increase the variance by at least a known share: the
        comparison takes an array `[*D]` instead of `[B, *D]`.

        Args:
            moments: As returned by `moments_with` for unbounded observations.

        Returns:
            scalar bool. False also where the moments are not finite.
        """
        _, variance, total = moments
        limit = largest = ops.full_like(variance, _LARGEST)
        if self.max_deviations is not None:
            most = ops.minimum(self.count, self.max_deviations**2)
            # Half of the growth by an outlier leaves a margin for rounding.
            growth = (1.0 + 0.5 * most / total) * self.count / total
            limit = ops.where(
                self.count >= FEWEST_EXAMPLES,
                self.running_variance * growth,
                largest,
            )
        # A comparison with NaN is false.
        return ops.all(variance <= limit)

    def keep_moments(
        self,
        moments: Moments,
        enabled: Tensor | None = None,
    ) -> None:
        """Replaces the running statistics.

        Args:
            moments: As returned by `moments_with`.
            enabled: scalar bool. Whether they are replaced at all; None if
                they are. Defaults to `None`.
        """
        variables = (self.running_mean, self.running_variance, self.count)
        for variable, value in zip(variables, moments, strict=True):
            if enabled is not None:
                value = ops.where(enabled, value, variable)
            variable.assign(value)

    def commit(self) -> None:
        """Puts the running statistics into use."""
        self.mean.assign(self.running_mean)
        self.variance.assign(self.running_variance)

    def compute_output_shape(self, input_shape: Shape) -> Any:
        """Returns the shape of the input, which normalising keeps."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            **super().get_config(),
            "clip": self.clip,
            "epsilon": self.epsilon,
            "key": self.key,
            "max_deviations": self.max_deviations,
        }


def all_finite(arrays: Sequence[Tensor]) -> Tensor:
    """Returns whether all numbers of some arrays are finite in float32."""
    each = [ops.all(ops.abs(array) < _LARGEST) for array in arrays]
    return ops.all(ops.stack(each))
