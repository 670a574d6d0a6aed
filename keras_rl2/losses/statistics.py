"""Weighted reductions over a batch, and diagnostics of a policy and values.

Letters: B is the batch, C the number of components of an action. Weights are 1
for a sample that counts, else 0.
"""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_same_floats
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_same_shape


def weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    """Averages the values that count.

    Args:
        values: `[B]` float, or `[B, C]`. The values of each sample.
        weight: `[B]` or `[B, C]` float32. 1 for a value that counts, else 0.

    Example:

    >>> import numpy as np
    >>> float(weighted_mean(np.array([1.0, 3.0, 9.0]), np.array([1.0, 1, 0])))
    2.0
    """
    check_same_shape(values=values, weight=weight)
    weight = ops.cast(weight, values.dtype)
    return ops.sum(values * weight) / ops.maximum(ops.sum(weight), 1.0)


def of_components(each: Tensor, values: Tensor) -> Tensor:
    """Repeats one number of each sample where samples have several values.

    Args:
        each: `[B]`, or as `values`. The numbers.
        values: `[B]`, or `[B, C]`, for each component of an action.

    Returns:
        `each` with the shape of `values`.

    Example:

    >>> import numpy as np
    >>> of_components(np.array([1.0, 2.0]), np.ones((2, 3))).numpy().tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    if len(each.shape) == len(values.shape):
        return each
    return ops.broadcast_to(each[:, None], ops.shape(values))


def normalize(values: Tensor, weight: Tensor, epsilon: float = 1e-8) -> Tensor:
    """Shifts and scales values to mean 0 and deviation 1.

    A single value is left as it is: nothing is known of its scale.

    Args:
        values: `[B]` float, or `[B, C]`. The values of each sample.
        weight: `[B]` or `[B, C]` float32. 1 for a value that counts, else 0.
        epsilon: float. Added to the deviation. Defaults to `1e-8`.

    Returns:
        `[B]`: (x - mean(x)) / (std(x) + epsilon).

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


def sequence_priority(td_error: Tensor, counts: Tensor) -> Tensor:
    """Reduces the TD errors of each sequence to one, as R2D2 does.

        p = 0.9 max_t |δ_t| + 0.1 mean_t |δ_t|

    Args:
        td_error: `[M, L]` float.
        counts: `[M, L]` bool. Which steps count. Without any, p is 0.

    Returns:
        `[M]` float.

    Example:

    >>> import numpy as np
    >>> sequence_priority(
    ...     np.array([[1.0, -3.0, 9.0]]), np.array([[True, True, False]])
    ... ).numpy().round(3).tolist()
    [2.9]

    Reference:
        - [Kapturowski et al., 2019](
          https://openreview.net/forum?id=r1lyTjAqYX)
    """
    counts = ops.cast(counts, td_error.dtype)
    error = counts * ops.abs(td_error)
    count = ops.maximum(ops.sum(counts, axis=1), 1.0)
    mean = ops.sum(error, axis=1) / count
    return 0.9 * ops.max(error, axis=1) + 0.1 * mean


def approximate_kl(log_prob: TensorLike, old_log_prob: TensorLike) -> Tensor:
    """Estimates from its own actions how far the policy has moved.

    The mean over actions of the old policy is an unbiased estimate of
    KL(π_old || π), and no term is negative.

        k₃ = (r - 1) - log r,    r = π(a|s) / π_old(a|s)

    Args:
        log_prob: `[B]` float, or `[B, C]` by component. Log-probability of the
            action taken.
        old_log_prob: float of the same shape. The same under the policy that
            acted.

    Returns:
        float32 or wider of the same shape.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> [round(float(k), 4) for k in approximate_kl([-1.0, 0.0], [-1.0, -1.0])]
    [0.0, 0.7183]

    Reference:
        - [Schulman, 2020, Approximating KL divergence](
          http://joschu.net/blog/kl-approx.html)
    """
    log_prob, old_log_prob = as_same_floats(
        (1, 2), log_prob=log_prob, old_log_prob=old_log_prob
    )
    log_ratio = log_prob - old_log_prob
    # expm1: exp(x) - 1 would lose all digits of the early, small changes.
    return ops.expm1(log_ratio) - log_ratio


def clip_fraction(
    log_prob: TensorLike, old_log_prob: TensorLike, clip_ratio: TensorLike
) -> Tensor:
    """Marks the examples whose probability ratio lies outside the clip.

    Args:
        log_prob: `[B]` float, or `[B, C]` by component. Log-probability of the
            action taken.
        old_log_prob: float of the same shape. The same under the policy that
            acted.
        clip_ratio: float or scalar tensor. As for `clipped_surrogate`.

    Returns:
        float32 or wider of the same shape: 1 where `|r - 1| > clip_ratio`,
        else 0.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> clip_fraction([-1.0, 0.0], [-1.0, -1.0], 0.2).numpy().tolist()
    [0.0, 1.0]
    """
    log_prob, old_log_prob = as_same_floats(
        (1, 2), log_prob=log_prob, old_log_prob=old_log_prob
    )
    clip_ratio = as_scalar(log_prob, clip_ratio=clip_ratio)
    change = ops.abs(ops.expm1(log_prob - old_log_prob))
    return ops.cast(change > clip_ratio, log_prob.dtype)


def explained_variance(
    values: TensorLike, returns: TensorLike, weights: TensorLike | None = None
) -> Tensor:
    """Measures how much of the returns' variance the values explain.

    1 is perfect, 0 no better than a constant, below 0 worse than one. It is
    one number for a whole batch.

        1 - Var[G - v] / Var[G]

    Args:
        values: `[...]` float. Any shape, such as `[B]` or `[T, B]`.
        returns: `[...]` float. The same shape.
        weights: `[...]` float, the same shape, or None for all 1. 0 leaves an
            example out. Defaults to `None`.

    Returns:
        scalar: float32 or wider; NaN where the returns do not vary.

    Raises:
        ValueError: If the shapes differ.

    Example:

    >>> float(explained_variance([1.0, 2.0], [1.0, 3.0]))
    0.75
    """
    check_same_shape(values=values, returns=returns)
    if weights is None:
        weights = ops.ones_like(as_float(returns)[0])
    check_same_shape(returns=returns, weights=weights)
    values, returns, weights = as_float(values, returns, weights)
    total = ops.maximum(ops.sum(weights), 1e-12)

    def variance(array: TensorLike) -> Tensor:
        mean = ops.sum(weights * array) / total
        return ops.sum(weights * ops.square(array - mean)) / total

    # Rounding of the mean leaves a variance that is not quite 0 for equal
    # returns, so constancy is tested on the returns themselves.
    # `tf.debugging.enable_check_numerics` stops at constants not finite.
    highest = ops.max(ops.where(weights > 0, returns, -3e38))
    lowest = ops.min(ops.where(weights > 0, returns, 3e38))
    explained = 1.0 - variance(returns - values) / variance(returns)
    varies = ops.cast(highest > lowest, returns.dtype)
    return explained * varies / varies
