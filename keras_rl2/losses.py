"""Losses and diagnostics, one number per example.

Pure functions of arrays of shape `[B]`, `B` the batch. Nothing is reduced (the
agent averages, so that it can weigh or mask examples first) and nothing is
broadcast: `[B, 1]` beside `[B]` raises. Half precision is cast up to float32.
"""

from keras import ops

from keras_rl2.shapes import Tensor
from keras_rl2.shapes import as_float
from keras_rl2.shapes import as_scalar
from keras_rl2.shapes import check_rank
from keras_rl2.shapes import check_same_shape


def policy_gradient(log_prob: Tensor, advantage: Tensor) -> Tensor:
    """Make actions with positive advantage more likely.

    The gradient of its mean is the negated policy gradient. The advantage
    counts as a constant.

        L = -log π(a|s) A

    Args:
        log_prob: `[B]`, log-probability of the action taken.
        advantage: `[B]`.

    Returns:
        `[B]`, to minimise; float32 or wider.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:
    >>> policy_gradient([-0.5, -2.0], [1.0, -1.0]).numpy().tolist()
    [0.5, -2.0]

    Reference:
        - [Williams, 1992](https://doi.org/10.1007/BF00992696)
    """
    check_rank(1, log_prob=log_prob, advantage=advantage)
    check_same_shape(log_prob=log_prob, advantage=advantage)
    log_prob, advantage = as_float(log_prob, advantage)
    return -log_prob * ops.stop_gradient(advantage)


def clipped_surrogate(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantage: Tensor,
    clip_ratio: Tensor,
) -> Tensor:
    """Improve the policy, without reward for leaving the old one far behind.

        r = π(a|s) / π_old(a|s)
        L = -min(r A, clip(r, 1 - ε, 1 + ε) A)

    The advantage and the old log-probability count as constants.

    Args:
        log_prob: `[B]`, log-probability of the action taken.
        old_log_prob: `[B]`, the same under the policy that acted.
        advantage: `[B]`.
        clip_ratio: ε, number or scalar tensor, typically 0.2.

    Returns:
        `[B]`, to minimise; float32 or wider.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:
    >>> import math
    >>> loss = clipped_surrogate(
    ...     [math.log(0.75), math.log(0.75)], [math.log(0.5)] * 2,
    ...     advantage=[1.0, -1.0], clip_ratio=0.25,
    ... )
    >>> loss.numpy().tolist()
    [-1.25, 1.5]

    Reference:
        - [Schulman et al., 2017](https://arxiv.org/abs/1707.06347)
    """
    arrays = {
        "log_prob": log_prob,
        "old_log_prob": old_log_prob,
        "advantage": advantage,
    }
    check_rank(1, **arrays)
    check_same_shape(**arrays)
    log_prob, old_log_prob, advantage = as_float(*arrays.values())
    clip_ratio = as_scalar(log_prob, clip_ratio=clip_ratio)
    advantage = ops.stop_gradient(advantage)
    ratio = ops.exp(log_prob - ops.stop_gradient(old_log_prob))
    clipped = ops.clip(ratio, 1.0 - clip_ratio, 1.0 + clip_ratio)
    return -ops.minimum(ratio * advantage, clipped * advantage)


def clipped_value(
    value: Tensor, old_value: Tensor, returns: Tensor, clip_range: Tensor
) -> Tensor:
    """Fit the value, without reward for moving far from its old estimate.

        c = v_old + clip(v - v_old, -ε, ε)
        L = max((v - G)², (c - G)²)

    Args:
        value: `[B]`.
        old_value: `[B]`, value when the data were collected.
        returns: `[B]`, the targets.
        clip_range: ε, number or scalar tensor, in units of the return.

    Returns:
        `[B]`, to minimise (no factor 1/2); float32 or wider.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:
    >>> clipped_value([2.0], [0.0], [2.0], clip_range=0.5).numpy().tolist()
    [2.25]

    Reference:
        - [Schulman et al., 2016, GAE](https://arxiv.org/abs/1506.02438), the
          trust region on values; this form is OpenAI Baselines' PPO.
    """
    arrays = {"value": value, "old_value": old_value, "returns": returns}
    check_rank(1, **arrays)
    check_same_shape(**arrays)
    value, old_value, returns = as_float(*arrays.values())
    clip_range = as_scalar(value, clip_range=clip_range)
    change = ops.clip(value - old_value, -clip_range, clip_range)
    clipped = old_value + change
    return ops.maximum(
        ops.square(value - returns), ops.square(clipped - returns)
    )


def huber(error: Tensor, delta: Tensor = 1.0) -> Tensor:
    """Punish small errors by their square, large ones by their size.

        L = e² / 2           where |e| <= δ
            δ (|e| - δ / 2)  elsewhere

    Args:
        error: `[B]`, e.g. a TD error.
        delta: δ, number or scalar tensor. Default 1.

    Returns:
        `[B]`, to minimise; float32 or wider.

    Raises:
        ValueError: If the error is not of rank 1.

    Example:
    >>> huber([-2.0, 0.5]).numpy().tolist()
    [1.5, 0.125]

    Reference:
        - [Huber, 1964](https://doi.org/10.1214/aoms/1177703732)
    """
    check_rank(1, error=error)
    (error,) = as_float(error)
    delta = as_scalar(error, delta=delta)
    size = ops.abs(error)
    quadratic = ops.minimum(size, delta)
    return 0.5 * ops.square(quadratic) + delta * (size - quadratic)


def expectile(error: Tensor, expectile: Tensor) -> Tensor:
    """Weigh squared errors by sign, to fit an expectile and not the mean.

    With `error = target - prediction`, an expectile above 1/2 pulls the
    prediction towards the larger targets: IQL's value loss.

        L = |τ - 1(e < 0)| e²

    Args:
        error: `[B]`, target - prediction.
        expectile: τ in [0, 1], number or scalar tensor.

    Returns:
        `[B]`, to minimise; float32 or wider.

    Raises:
        ValueError: If the error is not of rank 1.

    Example:
    >>> expectile([-2.0, 2.0], expectile=0.75).numpy().tolist()
    [1.0, 3.0]

    Reference:
        - [Kostrikov et al., 2022, IQL](https://arxiv.org/abs/2110.06169)
    """
    check_rank(1, error=error)
    (error,) = as_float(error)
    expectile = as_scalar(error, expectile=expectile)
    weight = ops.where(error < 0, 1.0 - expectile, expectile)
    return weight * ops.square(error)


def approximate_kl(log_prob: Tensor, old_log_prob: Tensor) -> Tensor:
    """Estimate from its own actions how far the policy has moved.

    The mean over actions of the old policy is an unbiased estimate of
    KL(π_old || π), and no term is negative.

        k₃ = (r - 1) - log r,    r = π(a|s) / π_old(a|s)

    Args:
        log_prob: `[B]`, log-probability of the action taken.
        old_log_prob: `[B]`, the same under the policy that acted.

    Returns:
        `[B]`, float32 or wider.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:
    >>> [round(float(k), 4) for k in approximate_kl([-1.0, 0.0], [-1.0, -1.0])]
    [0.0, 0.7183]

    Reference:
        - [Schulman, 2020, Approximating KL divergence](
          http://joschu.net/blog/kl-approx.html)
    """
    check_rank(1, log_prob=log_prob, old_log_prob=old_log_prob)
    check_same_shape(log_prob=log_prob, old_log_prob=old_log_prob)
    log_prob, old_log_prob = as_float(log_prob, old_log_prob)
    log_ratio = log_prob - old_log_prob
    # expm1: exp(x) - 1 would lose all digits of the early, small changes.
    return ops.expm1(log_ratio) - log_ratio


def clip_fraction(
    log_prob: Tensor, old_log_prob: Tensor, clip_ratio: Tensor
) -> Tensor:
    """Mark the examples whose probability ratio lies outside the clip.

    Args:
        log_prob: `[B]`, log-probability of the action taken.
        old_log_prob: `[B]`, the same under the policy that acted.
        clip_ratio: Number or scalar tensor, as for `clipped_surrogate`.

    Returns:
        `[B]`, 1 where |r - 1| > clip_ratio, else 0; float32 or wider.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:
    >>> clip_fraction([-1.0, 0.0], [-1.0, -1.0], 0.2).numpy().tolist()
    [0.0, 1.0]
    """
    check_rank(1, log_prob=log_prob, old_log_prob=old_log_prob)
    check_same_shape(log_prob=log_prob, old_log_prob=old_log_prob)
    log_prob, old_log_prob = as_float(log_prob, old_log_prob)
    clip_ratio = as_scalar(log_prob, clip_ratio=clip_ratio)
    change = ops.abs(ops.expm1(log_prob - old_log_prob))
    return ops.cast(change > clip_ratio, log_prob.dtype)


def explained_variance(
    values: Tensor, returns: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Measure how much of the returns' variance the values explain.

    1 is perfect, 0 no better than a constant, below 0 worse than one. The one
    function here that reduces: it is a property of a whole batch.

        1 - Var[G - v] / Var[G]

    Args:
        values: Any shape, e.g. `[B]` or `[T, B]`.
        returns: Same shape.
        weights: Same shape, 0 leaves an example out. Default `None`: all 1.

    Returns:
        Scalar, float32 or wider; NaN where the returns do not vary.

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

    def variance(array: Tensor) -> Tensor:
        mean = ops.sum(weights * array) / total
        return ops.sum(weights * ops.square(array - mean)) / total

    # Rounding of the mean leaves a variance that is not quite 0 for equal
    # returns, so constancy is tested on the returns themselves.
    highest = ops.max(ops.where(weights > 0, returns, -float("inf")))
    lowest = ops.min(ops.where(weights > 0, returns, float("inf")))
    explained = 1.0 - variance(returns - values) / variance(returns)
    return ops.where(highest > lowest, explained, float("nan"))
