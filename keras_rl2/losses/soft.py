"""Values with entropy, of maximum-entropy learning: one number per example.

Letters: B is the batch, A the number of actions, N that of critics.
"""

from collections.abc import Sequence
from functools import reduce

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape


def soft_value(
    log_prob: TensorLike, values: Sequence[TensorLike], temperature: TensorLike
) -> Tensor:
    """Values a state by one action drawn from the policy.

    Its negative mean is the loss of SAC's policy. Computed with the target
    critics, and discounted, it is the bootstrap of SAC's critics.

        V = min_i Q_i(s, a) - α log π(a|s),    a ~ π

    Args:
        log_prob: `[B]` float. log π(a|s) in nats.
        values: Sequence of N `[B]` float. Q_i(s, a).
        temperature: float or scalar tensor. α.

    Returns:
        `[B]` float32 or wider.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> soft_value([-1.0, 2.0], [[3.0, 5.0], [4.0, 0.0]], 0.5).numpy().tolist()
    [3.5, -1.0]

    Reference:
        - [Haarnoja et al., 2018](https://arxiv.org/abs/1812.05905), eq. 3.
    """
    log_prob, *values = _checked(1, log_prob, values)
    return reduce(ops.minimum, values) - _scalar(log_prob, temperature) * (
        log_prob
    )


def expected_soft_value(
    log_probs: TensorLike, values: Sequence[TensorLike], temperature: TensorLike
) -> Tensor:
    """Values a state by all actions, weighted by the policy's probabilities.

        V = Σ_a π(a|s) (min_i Q_i(s, a) - α log π(a|s))

    Args:
        log_probs: `[B, A]` float. log π(·|s) in nats.
        values: Sequence of N `[B, A]` float. Q_i(s, ·).
        temperature: float or scalar tensor. α.

    Returns:
        `[B]` float32 or wider.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> half = [[-0.6931472, -0.6931472]]
    >>> round(float(expected_soft_value(half, [[[1.0, 3.0]]], 1.0)[0]), 4)
    2.6931

    Reference:
        - [Christodoulou, 2019](https://arxiv.org/abs/1910.07207), eq. 10.
    """
    log_probs, *values = _checked(2, log_probs, values)
    value = reduce(ops.minimum, values) - _scalar(log_probs, temperature) * (
        log_probs
    )
    return ops.sum(ops.exp(log_probs) * value, axis=-1)


def temperature_loss(
    log_temperature: TensorLike,
    entropy: TensorLike,
    target_entropy: float | TensorLike,
) -> Tensor:
    """Raises the temperature where the policy is less random than wanted.

    The gradient with respect to log α is the excess of entropy.

        L = log α (H - H_target)

    Args:
        log_temperature: float or scalar tensor. log α.
        entropy: `[B]` float. H of the policy in nats, or -log π(a|s) of an
            action drawn from it. Counts as a constant.
        target_entropy: float or `[B]`. H_target in nats.

    Returns:
        `[B]` float32 or wider, to minimise.

    Raises:
        ValueError: If a rank is wrong.

    Example:

    >>> temperature_loss(2.0, [1.0, -1.0], -0.5).numpy().tolist()
    [3.0, -1.0]

    Reference:
        - [Haarnoja et al., 2018](https://arxiv.org/abs/1812.05905), eq. 18,
          with log α in place of α as most implementations have it.
    """
    check_rank(1, entropy=entropy)
    (entropy,) = as_float(entropy)
    log_temperature = _scalar(entropy, log_temperature)
    return log_temperature * ops.stop_gradient(entropy - target_entropy)


def _checked(
    rank: int, log_prob: TensorLike, values: Sequence[TensorLike]
) -> list[Tensor]:
    """Raises an error for other shapes, and casts the arrays."""
    named = {f"values_{i}": value for i, value in enumerate(values)}
    check_rank(rank, log_prob=log_prob, **named)
    check_same_shape(log_prob=log_prob, **named)
    return list(as_float(log_prob, *values))


def _scalar(like: Tensor, value: TensorLike) -> Tensor:
    """Returns a number or scalar in the precision of an array."""
    return as_scalar(like, value=value)
