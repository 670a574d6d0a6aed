"""Losses of action values Q(s, ·), one number per example.

Letters: B is the batch, A the number of actions.
"""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape
from keras_rl2.basics.shapes import static_shape


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
    _check_transition(
        action,
        reward,
        discount,
        q_values=q_values,
        next_q_values=next_q_values,
    )
    q_values, reward, discount, next_q_values = as_float(
        q_values, reward, discount, next_q_values
    )
    next_value = ops.max(next_q_values, axis=-1)
    return _td_error(_chosen(q_values, action), reward, discount, next_value)


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
    _check_transition(
        action,
        reward,
        discount,
        q_values=q_values,
        next_q_values=next_q_values,
        next_q_selector=next_q_selector,
    )
    q_values, reward, discount, next_q_values, next_q_selector = as_float(
        q_values, reward, discount, next_q_values, next_q_selector
    )
    next_value = _chosen(next_q_values, ops.argmax(next_q_selector, axis=-1))
    return _td_error(_chosen(q_values, action), reward, discount, next_value)


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
    check_rank(2, q_values=q_values)
    check_shape(_batch_shape(q_values), action=action)
    (q_values,) = as_float(q_values)
    chosen = _chosen(q_values, action)
    # Subtracted first: of two large numbers' difference few digits are left.
    return ops.logsumexp(q_values - chosen[:, None], axis=-1)


def _check_transition(
    action: TensorLike,
    reward: TensorLike,
    discount: TensorLike,
    **values: TensorLike,
) -> None:
    """Raises an error unless a transition is `[B]`, with values `[B, A]`."""
    check_rank(2, **values)
    check_same_shape(**values)
    arrays = {"action": action, "reward": reward, "discount": discount}
    check_rank(1, **arrays)
    check_same_shape(**arrays)
    for value in values.values():
        check_shape(_batch_shape(value), **arrays)


def _batch_shape(values: TensorLike) -> tuple[int | None]:
    """Returns the static shape of the batch axis."""
    shape = static_shape(values)
    return (shape[0] if shape else None,)


def _chosen(values: Tensor, action: TensorLike) -> Tensor:
    """Returns the value `[B]` of one action each from values `[B, A]`."""
    actions = ops.arange(ops.shape(values)[-1], dtype="int32")
    mask = ops.cast(action, "int32")[:, None] == actions  # [B, A]
    # A product with the one-hot vector would turn the -inf of a forbidden
    # action into NaN; a gather's gradient is a scatter, which XLA likes less.
    return ops.sum(ops.where(mask, values, 0.0), axis=-1)


def _td_error(
    value: Tensor, reward: Tensor, discount: Tensor, next_value: Tensor
) -> Tensor:
    """Returns r + γ v' - v, the target a constant."""
    # Values after the end may be anything, e.g. -inf if no action is allowed.
    bootstrap = ops.where(discount == 0.0, 0.0, discount * next_value)
    return ops.stop_gradient(reward + bootstrap) - value
