"""Losses of values, of states and of actions, one number per example.

Letters: B is the batch, A the number of actions, N that of critics or of
sampled actions.
"""

from collections.abc import Sequence
from functools import reduce

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_same_floats
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape


def huber(error: TensorLike, delta: TensorLike = 1.0) -> Tensor:
    """Punishes small errors by their square, large ones by their size.

        L = e² / 2           where |e| <= δ
            δ (|e| - δ / 2)  elsewhere

    Args:
        error: `[B]` float. For example, a TD error.
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
    (error,) = as_same_floats(1, error=error)
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
    (error,) = as_same_floats(1, error=error)
    expectile = as_scalar(error, expectile=expectile)
    weight = ops.where(error < 0, 1.0 - expectile, expectile)
    return weight * ops.square(error)


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
    value, old_value, returns = as_same_floats(
        1, value=value, old_value=old_value, returns=returns
    )
    clip_range = as_scalar(value, clip_range=clip_range)
    change = ops.clip(value - old_value, -clip_range, clip_range)
    clipped = old_value + change
    return ops.maximum(
        ops.square(value - returns), ops.square(clipped - returns)
    )


def q_learning(
    q_values: TensorLike,
    action: TensorLike,
    reward: TensorLike,
    discount: TensorLike,
    next_q_values: TensorLike,
) -> Tensor:
    """Compares the value of the action taken with the best that may follow.

    The gradient reaches `q_values` alone; the target counts as a constant,
    also where both come from the same network. `next_q_values` of -inf mark
    actions that are not allowed. Where the discount is 0 they play no part.

        δ = r + γ max_a Q'(s', a) - Q(s, a)

    Args:
        q_values: `[B, A]` float. Q(s, ·).
        action: `[B]` int. The actions taken, in 0 ... A-1.
        reward: `[B]` float. Or the discounted sum of n rewards.
        discount: `[B]` float. γ (1 - terminated), γⁿ for the sum of n rewards.
        next_q_values: `[B, A]` float. Q'(s', ·), in DQN of the target network.

    Returns:
        `[B]` float32 or wider: the TD error target - prediction, for `huber`
        or a square.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> q_learning(
    ...     [[1.0, 0.0], [0.0, 2.0]], action=[0, 1], reward=[1.0, 1.0],
    ...     discount=[0.5, 0.0], next_q_values=[[4.0, 6.0], [9.0, 9.0]],
    ... ).numpy().tolist()
    [3.0, -1.0]

    Reference:
        - [Watkins and Dayan, 1992](https://doi.org/10.1007/BF00992698)
        - [Mnih et al., 2015, DQN](https://doi.org/10.1038/nature14236)
    """
    return double_q_learning(
        q_values, action, reward, discount, next_q_values, next_q_values
    )


def double_q_learning(
    q_values: TensorLike,
    action: TensorLike,
    reward: TensorLike,
    discount: TensorLike,
    next_q_values: TensorLike,
    next_q_selector: TensorLike,
) -> Tensor:
    """Lets one network choose the next action and another one judge it.

    The maximum over noisy values is biased upwards; the value, by another
    estimate, of the action that is maximal is much less so. Else as
    `q_learning`, and equal to it where both estimates are one.

        δ = r + γ Q'(s', argmax_a Q(s', a)) - Q(s, a)

    Args:
        q_values: `[B, A]` float. Q(s, ·).
        action: `[B]` int. The actions taken, in 0 ... A-1.
        reward: `[B]` float. Or the discounted sum of n rewards.
        discount: `[B]` float. γ (1 - terminated), γⁿ for the sum of n rewards.
        next_q_values: `[B, A]` float. Q'(s', ·), which judges: of the target
            network.
        next_q_selector: `[B, A]` float. Q(s', ·), which chooses: of the
            network that is trained. Of equal values the first is chosen.

    Returns:
        `[B]` float32 or wider: the TD error target - prediction, for `huber`
        or a square.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> double_q_learning(
    ...     [[1.0, 0.0]], action=[0], reward=[1.0], discount=[0.5],
    ...     next_q_values=[[4.0, 6.0]], next_q_selector=[[1.0, 0.0]],
    ... ).numpy().tolist()
    [2.0]

    Reference:
        - [van Hasselt et al., 2016](https://arxiv.org/abs/1509.06461)
    """
    values = {
        "q_values": q_values,
        "next_q_values": next_q_values,
        "next_q_selector": next_q_selector,
    }
    check_rank(2, **values)
    check_same_shape(**values)
    q_values, next_q_values, next_q_selector, reward, discount = as_float(
        *values.values(), reward, discount
    )
    check_shape(
        q_values.shape[:1], action=action, reward=reward, discount=discount
    )
    next_value = of_action(next_q_values, ops.argmax(next_q_selector, axis=-1))
    # Values after the end may be anything, such as -inf if no action is
    # allowed.
    bootstrap = ops.where(discount == 0.0, 0.0, discount * next_value)
    return ops.stop_gradient(reward + bootstrap) - of_action(q_values, action)


def conservative_q(q_values: TensorLike, action: TensorLike) -> Tensor:
    """Lowers the values of all actions but raises that of the one in the data.

    CQL adds it to the loss of the TD error, so that actions the data does not
    hold are not overrated. It is never negative, and equals the negative
    log-likelihood of the action under the policy softmax(Q).

        L = log Σ_a exp Q(s, a) - Q(s, a_data)

    Args:
        q_values: `[B, A]` float. Q(s, ·).
        action: `[B]` int. The actions in the data, in 0 ... A-1.

    Returns:
        `[B]` float32 or wider, to minimise.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> loss = conservative_q([[0.0, 0.0], [9.0, -99.0]], action=[0, 1])
    >>> [round(float(x), 4) for x in loss]
    [0.6931, 108.0]

    Reference:
        - [Kumar et al., 2020, CQL](https://arxiv.org/abs/2006.04779), the
          variant CQL(H) for discrete actions.
    """
    (q_values,) = as_same_floats(2, q_values=q_values)
    check_shape(q_values.shape[:1], action=action)
    chosen = of_action(q_values, action)
    # It is subtracted first: a difference of large numbers has few digits.
    return ops.logsumexp(q_values - chosen[:, None], axis=-1)


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
    q_values, log_probs, taken = as_float(q_values, log_probs, taken)
    check_shape(q_values.shape[:1], taken=taken)
    # It is subtracted first: a difference of large numbers has few digits.
    difference = q_values - taken[:, None]
    return ops.logsumexp(difference - ops.stop_gradient(log_probs), axis=-1)


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
    return _soft_values(1, log_prob, values, temperature)[1]


def expected_soft_value(
    log_probs: TensorLike, values: Sequence[TensorLike], temperature: TensorLike
) -> Tensor:
    """Values a state by all actions, weighted by the policy's probabilities.

        V = Σ_a π(a|s) (min_i Q_i(s, a) - α log π(a|s))

    Args:
        log_probs: `[B, A]` float. `log π(·|s)` in nats.
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
    log_probs, value = _soft_values(2, log_probs, values, temperature)
    return ops.sum(ops.exp(log_probs) * value, axis=-1)


def of_action(values: Tensor, action: TensorLike) -> Tensor:
    """Returns the values of one action each.

    Args:
        values: `[B, A, ...]`. Values of all actions.
        action: `[B]` int.

    Returns:
        `[B, ...]`.
    """
    actions = ops.arange(ops.shape(values)[1], dtype="int32")
    mask = ops.cast(action, "int32")[:, None] == actions  # [B, A]
    if len(values.shape) == 3:
        mask = mask[..., None]
    # A product with the one-hot vector would turn the -inf of a forbidden
    # action into NaN; a gather's gradient is a scatter, which XLA likes less.
    return ops.sum(ops.where(mask, values, 0.0), axis=1)


def _soft_values(
    rank: int,
    log_prob: TensorLike,
    values: Sequence[TensorLike],
    temperature: TensorLike,
) -> tuple[Tensor, Tensor]:
    """Returns log-probabilities, and the smallest values with entropy."""
    named = {f"values_{index}": value for index, value in enumerate(values)}
    log_prob, *values = as_same_floats(rank, log_prob=log_prob, **named)
    alpha = as_scalar(log_prob, temperature=temperature)
    return log_prob, reduce(ops.minimum, values) - alpha * log_prob
