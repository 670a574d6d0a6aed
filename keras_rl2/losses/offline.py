"""Losses of learning from a fixed dataset, one number per example.

Letters: B is the batch, A the number of numbers in an action, N that of
sampled actions.
"""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape
from keras_rl2.basics.shapes import static_shape


def sampled_conservative_q(
    q_values: TensorLike, log_probs: TensorLike, taken: TensorLike
) -> Tensor:
    """Lowers the values of sampled actions but raises that of the data's.

    `conservative_q` where there are too many actions to sum over: each sample
    counts by how rarely it is drawn.

        L = log Σ_j exp(Q(s, a_j) - log p(a_j|s)) - Q(s, a_data)

    A sum as implementations have it, not the mean of the paper's estimate,
    which is lower by log N: no gradient differs, but published thresholds
    are for the sum.

    Args:
        q_values: `[B, N]` float. Q(s, a_j).
        log_probs: `[B, N]` float. log p(a_j|s) in nats, of whatever each was
            drawn from. Counts as a constant.
        taken: `[B]` float. Q(s, a_data).

    Returns:
        `[B]` float32 or wider, to minimise.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> import math
    >>> loss = sampled_conservative_q([[0.0, 0.0]], [[0.0, 0.0]], [1.0])
    >>> round(float(loss[0]), 4) == round(math.log(2.0) - 1.0, 4)
    True

    Reference:
        - [Kumar et al., 2020, CQL](https://arxiv.org/abs/2006.04779),
          appendix F.
    """
    check_rank(2, q_values=q_values, log_probs=log_probs)
    check_same_shape(q_values=q_values, log_probs=log_probs)
    shape = static_shape(q_values)
    check_shape((shape[0] if shape else None,), taken=taken)
    q_values, log_probs, taken = as_float(q_values, log_probs, taken)
    # Subtracted first: of two large numbers' difference few digits are left.
    difference = q_values - taken[:, None]
    return ops.logsumexp(difference - ops.stop_gradient(log_probs), axis=-1)


def advantage_weight(
    advantage: TensorLike, inverse_temperature: TensorLike, maximum: TensorLike
) -> Tensor:
    """Weights an action of the data by its advantage, for imitation.

    Given to `policy_gradient` in place of an advantage, it makes that
    advantage-weighted regression.

        w = min(exp(β A), w_max)

    Args:
        advantage: `[B]` float. A, e.g. Q(s, a) - V(s).
        inverse_temperature: float or scalar tensor. β; 0 weighs all alike.
        maximum: float or scalar tensor. w_max.

    Returns:
        `[B]` float32 or wider; a constant, which no gradient passes.

    Raises:
        ValueError: If the advantage is not of rank 1.

    Example:

    >>> weight = advantage_weight([0.0, 1.0, 99.0], 3.0, maximum=100.0)
    >>> [round(float(x), 3) for x in weight]
    [1.0, 20.086, 100.0]

    Reference:
        - [Peng et al., 2019](https://arxiv.org/abs/1910.00177)
        - [Kostrikov et al., 2022, IQL](https://arxiv.org/abs/2110.06169)
    """
    check_rank(1, advantage=advantage)
    (advantage,) = as_float(advantage)
    beta = as_scalar(advantage, inverse_temperature=inverse_temperature)
    maximum = as_scalar(advantage, maximum=maximum)
    # Clipped before: exp of a large advantage overflows.
    exponent = ops.minimum(beta * advantage, ops.log(maximum))
    return ops.stop_gradient(ops.exp(exponent))


def behavior_regularized_value(
    value: TensorLike,
    action: TensorLike,
    data_action: TensorLike,
    alpha: TensorLike,
) -> Tensor:
    """Makes a policy's actions valuable, and keeps them near those of the data.

    Values are measured by their mean size in the batch, which counts as a
    constant, so that α has a meaning whatever the rewards are.

        L = mean_k (a_k - b_k)² - λ Q(s, a),    λ = α / mean_B |Q(s, a)|

    Args:
        value: `[B]` float. Q(s, a) of the policy's actions.
        action: `[B, A]` float. a, the policy's.
        data_action: `[B, A]` float. b, those of the data.
        alpha: float or scalar tensor. α, the weight of the value.

    Returns:
        `[B]` float32 or wider, to minimise.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> behavior_regularized_value(
    ...     [2.0, -2.0], [[1.0], [0.0]], [[0.0], [0.0]], alpha=2.5,
    ... ).numpy().tolist()
    [-1.5, 2.5]

    Reference:
        - [Fujimoto and Gu, 2021](https://arxiv.org/abs/2106.06860), eq. 5.
    """
    check_rank(2, action=action, data_action=data_action)
    check_same_shape(action=action, data_action=data_action)
    shape = static_shape(action)
    check_shape((shape[0] if shape else None,), value=value)
    value, action, data_action = as_float(value, action, data_action)
    alpha = as_scalar(value, alpha=alpha)
    size = ops.stop_gradient(ops.mean(ops.abs(value)))
    # All values may be 0 before anything is learned.
    scale = alpha / ops.maximum(size, 1e-8)
    distance = ops.mean(ops.square(action - data_action), axis=-1)
    return distance - scale * value
