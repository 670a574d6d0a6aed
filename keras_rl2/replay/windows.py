"""The windows of n-step transitions."""

import numpy as np


def complete_windows(
    reward: np.ndarray,
    ended: np.ndarray,
    waiting: np.ndarray,
    n_step: int,
    gamma: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Says which windows are complete, and adds up their rewards.

    The window of step t reaches to the end of its episode, but over n steps
    at the most:

        R_t = Σ_{i<k} γ^i r_{t+i}

    It is complete if its last step is among the T steps.

    Args:
        reward: `[T, B]` floats.
        ended: `[T, B]` bool. Last steps of episodes, however they ended.
        waiting: `[T, B]` bool. Steps whose windows are asked for.
        n_step: int. n.
        gamma: float. γ.

    Returns:
        `[T, B]` bool, windows that were waiting and are complete; their
        rewards R, `[T, B]` float64; and their lengths k, `[T, B]` int64.

    Example:

    >>> complete, total, length = complete_windows(
    ...     np.array([[1.0], [2.0], [4.0]]),
    ...     np.array([[False], [True], [False]]),
    ...     np.array([[True], [True], [True]]), 3, 0.5)
    >>> complete[:, 0].tolist(), total[:2, 0].tolist(), length[:2, 0].tolist()
    ([True, True, False], [2.0, 2.0], [2, 1])
    """
    complete = np.zeros(reward.shape, np.bool_)
    total = np.zeros(reward.shape, np.float64)
    length = np.zeros(reward.shape, np.int64)
    goes_on = waiting
    for i in range(min(n_step, len(reward))):
        count = len(reward) - i
        goes_on = goes_on[:count]
        total[:count] += gamma**i * np.where(goes_on, reward[i:], 0.0)
        length[:count] += goes_on
        complete[:count] |= goes_on & (ended[i:] | (i == n_step - 1))
        goes_on = goes_on & ~ended[i:]
    return complete, total, length
