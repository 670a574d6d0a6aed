"""Losses of the policy, one number per example.

Letters: B is the batch.
"""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape


def policy_gradient(log_prob: TensorLike, advantage: TensorLike) -> Tensor:
    """Makes actions with positive advantage more likely.

    The gradient of its mean is the negated policy gradient. The advantage
    counts as a constant.

        L = -log π(a|s) A

    Args:
        log_prob: `[B]` float. Log-probability of the action taken.
        advantage: `[B]` float.

    Returns:
        `[B]` float32 or wider, to minimise.

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
    log_prob: TensorLike,
    old_log_prob: TensorLike,
    advantage: TensorLike,
    clip_ratio: TensorLike,
) -> Tensor:
    """Improves the policy, without reward for leaving the old one far behind.

        r = π(a|s) / π_old(a|s)
        L = -min(r A, clip(r, 1 - ε, 1 + ε) A)

    The advantage and the old log-probability count as constants.

    Args:
        log_prob: `[B]` float. Log-probability of the action taken.
        old_log_prob: `[B]` float. The same under the policy that acted.
        advantage: `[B]` float.
        clip_ratio: float or scalar tensor. ε, typically 0.2.

    Returns:
        `[B]` float32 or wider, to minimise.

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
