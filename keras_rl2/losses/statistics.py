"""Weighted reductions over a batch: pure functions of `keras.ops`.

Letters: B is the batch. Weights are 1 for a sample that counts, else 0.
"""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape


def weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    """Averages the values that count.

    Args:
        values: `[B]` float. One value for each sample.
        weight: `[B]` float32. 1 for a sample that counts, else 0.

    Returns:
        scalar: sum(w x) / max(sum(w), 1), so 0 where nothing counts.

    Raises:
        ValueError: If the shapes are not both `[B]`.

    Example:

    >>> import numpy as np
    >>> float(weighted_mean(np.array([1.0, 3.0, 9.0]), np.array([1.0, 1, 0])))
    2.0
    """
    check_same_shape(values=values, weight=weight)
    check_rank(1, values=values)
    weight = ops.cast(weight, values.dtype)
    return ops.sum(values * weight) / ops.maximum(ops.sum(weight), 1.0)


def normalize(values: Tensor, weight: Tensor, epsilon: float = 1e-8) -> Tensor:
    """Shifts and scales values to mean 0 and deviation 1.

    A single value is left as it is: nothing is known of its scale.

    Args:
        values: `[B]` float. One value for each sample.
        weight: `[B]` float32. 1 for a sample that counts, else 0.
        epsilon: float. Added to the deviation. Defaults to `1e-8`.

    Returns:
        `[B]`: (x - mean(x)) / (std(x) + epsilon).

    Raises:
        ValueError: If the shapes are not both `[B]`.

    Example:

    >>> import numpy as np
    >>> values = normalize(np.array([1.0, 3.0, 9.0]), np.array([1.0, 1, 0]))
    >>> values[:2].numpy().round(3).tolist()
    [-1.0, 1.0]
    """
    mean = weighted_mean(values, weight)
    centred = values - mean
    deviation = ops.sqrt(weighted_mean(ops.square(centred), weight))
    several = ops.sum(ops.cast(weight, values.dtype)) > 1.5
    return ops.where(several, centred / (deviation + epsilon), values)
