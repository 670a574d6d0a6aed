"""Metrics of training, as `keras.metrics.Metric`."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike

__all__ = ["MeanOfEach"]


@keras.saving.register_keras_serializable(package="keras_rl2")
class MeanOfEach(keras.metrics.Metric):
    """Means of several named scalars, kept in one variable.

    A `keras.metrics.Mean` per scalar costs two assignments each on every
    update; here all scalars of an update are one assignment.

    Args:
        names: Sequence of str. Names of the scalars, in order.
        totals: Sequence of str. Names of scalars that are added up instead,
            whatever an update weighs. Defaults to `()`.
        name: str. Name of the metric. Defaults to `"means"`.
        **kwargs: Keyword arguments of `keras.metrics.Metric`.

    Example:

    >>> metric = MeanOfEach(["loss", "entropy"])
    >>> metric.update_state({"loss": 1.0, "entropy": 3.0})
    >>> metric.update_state({"loss": 2.0, "entropy": 3.0})
    >>> {key: float(value) for key, value in metric.result().items()}
    {'loss': 1.5, 'entropy': 3.0}
    """

    def __init__(
        self,
        names: Sequence[str],
        totals: Sequence[str] = (),
        name: str = "means",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.names = tuple(names)
        self.totals = tuple(totals)
        self.sums = self.add_variable(
            shape=(len(self.totals) + len(self.names) + 1,),
            initializer="zeros",
            # Replicas have the same numbers.
            aggregation="only_first_replica",
            name="sums",
        )

    def update_state(
        self, values: dict[str, Tensor], sample_weight: TensorLike = 1.0
    ) -> None:
        """Adds one value of each scalar.

        Args:
            values: dict of scalars, one for each name.
            sample_weight: scalar float. Weight of this update; 0 leaves it
                out of the means. Defaults to `1.0`.
        """
        weight = ops.cast(sample_weight, self.dtype)
        row = ops.stack(  # [names + 1], the last a count
            [ops.cast(values[key], self.dtype) for key in self.names]
            + [ops.ones((), self.dtype)]
        )
        # 0 * NaN is NaN: a skipped update must not reach the sums.
        row = ops.where(weight > 0, row * weight, ops.zeros_like(row))
        if self.totals:
            totals = [ops.cast(values[key], self.dtype) for key in self.totals]
            row = ops.concatenate([ops.stack(totals), row])
        self.sums.assign_add(row)

    def result(self) -> dict[str, Tensor]:
        """Returns the mean of each scalar by its name, NaN of no updates."""
        # Slicing eagerly costs a call of TensorFlow for each name.
        eager = tf.executing_eagerly()
        sums = self.sums.numpy() if eager else ops.convert_to_tensor(self.sums)
        count = len(self.totals)
        with np.errstate(invalid="ignore"):
            means = sums[count:-1] / sums[-1]
        return {
            **{key: means[i] for i, key in enumerate(self.names)},
            **{key: sums[i] for i, key in enumerate(self.totals)},
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            **super().get_config(),
            "names": list(self.names),
            "totals": list(self.totals),
        }
