"""Losses of a state value, and of any error, one number per example.

Letters: B is the batch.
"""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape


def clipped_value(
    value: TensorLike,
    old_value: TensorLike,
    returns: TensorLike,
    clip_range: TensorLike,
) -> Tensor:
    """Fits the value, without reward for moving far from its old estimate.

        c = v_old + clip(v - v_old, -ε, ε)
        L = max((v - G)², (c - G)²)

    Args:
        value: `[B]` float.
        old_value: `[B]` float. Value when the data were collected.
        returns: `[B]` float. The targets G.
        clip_range: float or scalar tensor. ε, in units of the return.

    Returns:
        `[B]` float32 or wider, to minimise; without a factor 1/2.

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


def huber(error: TensorLike, delta: TensorLike = 1.0) -> Tensor:
    """Punishes small errors by their square, large ones by their size.

        L = e² / 2           where |e| <= δ
            δ (|e| - δ / 2)  elsewhere

    Args:
        error: `[B]` float. E.g. a TD error.
        delta: float or scalar tensor. δ. Defaults to `1.0`.

    Returns:
        `[B]` float32 or wider, to minimise.

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


def expectile(error: TensorLike, expectile: TensorLike) -> Tensor:
    """Weighs squared errors by sign, to fit an expectile and not the mean.

    With `error = target - prediction`, an expectile above 1/2 pulls the
    prediction towards the larger targets: IQL's value loss.

        L = |τ - 1(e < 0)| e²

    Args:
        error: `[B]` float. target - prediction.
        expectile: float or scalar tensor. τ in [0, 1].

    Returns:
        `[B]` float32 or wider, to minimise.

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
