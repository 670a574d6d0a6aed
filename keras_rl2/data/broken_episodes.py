"""What failures of environments leave of a rollout."""

import numpy as np


class BrokenEpisodes:
    """Steps of a rollout in which environments failed and were begun anew.

    A failure costs one step of all environments, in which they begin anew.
    What the failed ones did before it, since their last reset, is discarded:
    something was wrong there. Episodes of the others are cut off: all
    environments of a vector begin anew together.

    Letters: T steps of B environments.

    Args:
        shape: tuple. T and B.

    Attributes:
        rows: list of ints. The steps in which they began anew.
        discarded: `[T, B]` bool. Steps that are not to be learned from.
        cut: `[T, B]` bool. Last steps of episodes that were broken off: none
            whose return says anything.
        discarded_before: `[B]` bool. Environments of which the steps before
            the rollout, since their last reset, are to be discarded too.
        cut_before: bool. Whether episodes were broken off by the first step,
            so that they ended with the rollout before.

    Example:

    >>> broken = BrokenEpisodes((4, 2))
    >>> broken.add(2, np.array([True, False]), np.zeros((4, 2), np.bool_))
    >>> broken.discarded.T.tolist()
    [[True, True, True, False], [False, False, True, False]]
    >>> broken.cut.T.tolist(), broken.discarded_before.tolist()
    ([[False, True, False, False], [False, True, False, False]], [True, False])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.rows: list[int] = []
        self.discarded = np.zeros(shape, np.bool_)
        self.cut = np.zeros(shape, np.bool_)
        self.discarded_before = np.zeros(shape[1], np.bool_)
        self.cut_before = False

    def add(self, t: int, failed: np.ndarray, ended: np.ndarray) -> None:
        """Adds a failure.

        Args:
            t: int. The step that could not be taken.
            failed: `[B]` bool. The environments that failed.
            ended: `[T, B]` bool. Last steps of episodes, before step `t`.
        """
        start = self.rows[-1] + 1 if self.rows else 0
        self.rows.append(t)
        self.discarded[t] = True
        for index in np.flatnonzero(failed):
            ends = np.flatnonzero(ended[start:t, index])
            first = start + int(ends[-1]) + 1 if ends.size else start
            self.discarded[first:t, index] = True
            self.discarded_before[index] |= first == 0
        if t > start:
            self.cut[t - 1] = ~ended[t - 1]
        self.cut_before |= t == 0
