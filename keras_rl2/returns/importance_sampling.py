"""Evaluation of a policy by the episodes of another one.

Letters: T is the number of steps of the longest episode, B that of episodes.
"""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape


def weighted_importance_sampling(
    log_ratios: TensorLike, rewards: TensorLike, gamma: TensorLike
) -> Tensor:
    """Averages returns by how much more likely a policy makes each episode.

    Per decision: a reward is weighted by the actions up to it, not by later
    ones. The estimate is biased, by less the more episodes there are, and has
    much lower variance than without the division by the sum of weights.

        V = Σ_t γᵗ Σ_b w_tb r_tb / Σ_b w_tb,
        w_tb = Π_k≤t π(a_kb|s_kb) / β(a_kb|s_kb)

    Args:
        log_ratios: `[T, B]` float. log π(a|s) - log β(a|s) in nats; 0 after
            the end of an episode, which keeps its weight.
        rewards: `[T, B]` float. 0 after the end of an episode.
        gamma: float or scalar tensor. Discount factor.

    Returns:
        `[T]` float32 or wider. Share of each step in the value: the sum is V.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> import math
    >>> log_ratios = [[math.log(3.0), 0.0], [0.0, 0.0]]
    >>> weighted_importance_sampling(
    ...     log_ratios, [[1.0, 0.0], [2.0, 2.0]], gamma=0.5
    ... ).numpy().round(6).tolist()
    [0.75, 1.0]

    Reference:
        - [Precup et al., 2000](https://scholarworks.umass.edu/cs_faculty_pubs/80),
          section 3, per-decision and weighted.
    """
    check_rank(2, log_ratios=log_ratios, rewards=rewards)
    check_same_shape(log_ratios=log_ratios, rewards=rewards)
    log_ratios, rewards = as_float(log_ratios, rewards)
    gamma = as_scalar(log_ratios, gamma=gamma)
    # A product of hundreds of ratios overflows; shares of a sum do not.
    share = ops.softmax(ops.cumsum(log_ratios, axis=0), axis=1)  # [T, B]
    step = ops.arange(ops.shape(rewards)[0], dtype=log_ratios.dtype)
    discounted: Tensor = ops.power(gamma, step) * ops.sum(
        share * rewards, axis=1
    )
    return discounted
