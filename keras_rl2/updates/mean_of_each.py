"""Means of several scalars of an update."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike


def named(values: Mapping[str, Tensor], names: Iterable[str]) -> dict[str, Any]:
    """Returns the scalars of some names, or raises a `ValueError`."""
    for name in names:
        if name not in values:
            raise ValueError(
                "Expected `loss_terms`, or a function of `objectives`, to "
                f"return `{name}` for the logs. Received: {sorted(values)}"
            )
    return {name: values[name] for name in names}


class MeanOfEach(keras.metrics.Metric):
    """Means of several named scalars, kept in one variable.

    A `keras.metrics.Mean` per scalar costs two assignments each on every
    update; here all scalars of an update are one assignment.

    Args:
        names: Sequence of str. Names of the scalars, in order.
        totals: Sequence of str. Names of scalars that are added up instead,
            whatever an update weighs. Defaults to `()`.
        name: str. Name of the metric. Defaults to `"means"`.
    """

    def __init__(
        self,
        names: Sequence[str],
        totals: Sequence[str] = (),
        name: str = "means",
    ) -> None:
        super().__init__(name=name)
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
        """Adds one value of each scalar; a weight of 0 leaves it out."""
        weight = ops.cast(sample_weight, self.dtype)
        means = named(values, self.names).values()
        row = ops.stack(  # [names + 1], the last a count
            [ops.cast(each, self.dtype) for each in means]
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
