"""Losses of the policy and its temperature, one number per example.

Letters: B is the batch, A the number of numbers in an action, C that of its
components with log-probabilities of their own.
"""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_same_floats
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape


def policy_gradient(log_prob: TensorLike, advantage: TensorLike) -> Tensor:
    """Makes actions with positive advantage more likely.

    The gradient of its mean is the negated policy gradient. The advantage
    counts as a constant.

        L = -log π(a|s) A

    Args:
        log_prob: `[B]` float, or `[B, C]` by component. Log-probability of the
            action taken.
        advantage: float of the same shape.

    Returns:
        float32 or wider of the same shape, to minimise.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> policy_gradient([-0.5, -2.0], [1.0, -1.0]).numpy().tolist()
    [0.5, -2.0]

    Reference:
        - [Williams, 1992](https://doi.org/10.1007/BF00992696)
    """
    log_prob, advantage = as_same_floats(
        (1, 2), log_prob=log_prob, advantage=advantage
    )
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
        log_prob: `[B]` float, or `[B, C]` by component. Log-probability of the
            action taken.
        old_log_prob: float of the same shape. The same under the policy that
            acted.
        advantage: float of the same shape.
        clip_ratio: float or scalar tensor. ε, typically 0.2.

    Returns:
        float32 or wider of the same shape, to minimise.

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
    log_prob, old_log_prob, advantage = as_same_floats(
        (1, 2),
        log_prob=log_prob,
        old_log_prob=old_log_prob,
        advantage=advantage,
    )
    clip_ratio = as_scalar(log_prob, clip_ratio=clip_ratio)
    advantage = ops.stop_gradient(advantage)
    ratio = ops.exp(log_prob - ops.stop_gradient(old_log_prob))
    clipped = ops.clip(ratio, 1.0 - clip_ratio, 1.0 + clip_ratio)
    return -ops.minimum(ratio * advantage, clipped * advantage)


def advantage_weight(
    advantage: TensorLike, inverse_temperature: TensorLike, maximum: TensorLike
) -> Tensor:
    """Weights an action of the data by its advantage, for imitation.

    Given to `policy_gradient` in place of an advantage, it makes that
    advantage-weighted regression.

        w = min(exp(β A), w_max)

    Args:
        advantage: `[B]` float. A, for example Q(s, a) - V(s).
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
    (advantage,) = as_same_floats(1, advantage=advantage)
    beta = as_scalar(advantage, inverse_temperature=inverse_temperature)
    maximum = as_scalar(advantage, maximum=maximum)
    # The exponent is clipped: exp of a large advantage overflows.
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
    value, action, data_action = as_float(value, action, data_action)
    check_shape(action.shape[:1], value=value)
    alpha = as_scalar(value, alpha=alpha)
    size = ops.stop_gradient(ops.mean(ops.abs(value)))
    # All values may be 0 before anything is learned.
    scale = alpha / ops.maximum(size, 1e-8)
    distance = ops.mean(ops.square(action - data_action), axis=-1)
    return distance - scale * value


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
    (entropy,) = as_same_floats(1, entropy=entropy)
    log_temperature = as_scalar(entropy, log_temperature=log_temperature)
    if ops.ndim(target_entropy):
        check_same_shape(entropy=entropy, target_entropy=target_entropy)
    return log_temperature * ops.stop_gradient(entropy - target_entropy)
