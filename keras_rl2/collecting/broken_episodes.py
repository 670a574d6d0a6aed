"""Episodes of a rollout that failures of environments interrupted."""

from collections.abc import Sequence
from typing import Self

import numpy as np


class BrokenEpisodes:
    """Steps of a rollout in which environments failed and were reset.

    A failure costs one step of all environments, in which they are reset. The
    steps of the failed environments since their last reset are discarded, since
    they may be wrong. The episodes of the other environments are cut off: all
    environments of a vector are reset together.

    Letters: T steps of B environments.

    Args:
        shape: tuple. T and B.

    Attributes:
        anew: `[T, B]` bool. Steps in which environments were reset after a
            failure.
        discarded: `[T, B]` bool. Steps that are not trained on.
        cut: `[T, B]` bool. Last steps of interrupted episodes; their returns do
            not count.
        discarded_before: `[B]` bool. Environments where the steps between the
            last reset and the rollout are also discarded.
        cut_before: `[B]` bool. Environments with episodes that were interrupted
            before the first step, and thus ended with the previous rollout.

    Example:

    >>> broken = BrokenEpisodes((4, 2))
    >>> broken.add(2, np.array([True, False]), np.zeros((4, 2), np.bool_))
    >>> broken.discarded.T.tolist()
    [[True, True, True, False], [False, False, True, False]]
    >>> broken.cut.T.tolist(), broken.discarded_before.tolist()
    ([[False, True, False, False], [False, True, False, False]], [True, False])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.anew = np.zeros(shape, np.bool_)
        self.discarded = np.zeros(shape, np.bool_)
        self.cut = np.zeros(shape, np.bool_)
        self.discarded_before = np.zeros(shape[1], np.bool_)
        self.cut_before = np.zeros(shape[1], np.bool_)

    def add(self, t: int, failed: np.ndarray, ended: np.ndarray) -> None:
        """Adds a failure.

        Args:
            t: int. The step that failed.
            failed: `[B]` bool. The environments that failed.
            ended: `[T, B]` bool. Last steps of episodes, before step `t`.
        """
        (earlier,) = np.nonzero(self.anew.any(axis=1))
        start = int(earlier[-1]) + 1 if earlier.size else 0
        self.anew[t] = True
        self.discarded[t] = True
        for index in np.flatnonzero(failed):
            ends = np.flatnonzero(ended[start:t, index])
            first = start + int(ends[-1]) + 1 if ends.size else start
            self.discarded[first:t, index] = True
            self.discarded_before[index] |= first == 0
        if t > start:
            self.cut[t - 1] = ~ended[t - 1]
        self.cut_before |= t == 0

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenates the broken episodes of several environments.

        Args:
            parts: Sequence of `BrokenEpisodes`, all of T steps.

        Returns:
            `BrokenEpisodes` of all their environments.
        """
        steps = len(parts[0].anew)
        joined = cls((steps, sum(len(each.cut_before) for each in parts)))
        for name in vars(joined):
            arrays = [vars(each)[name] for each in parts]
            vars(joined)[name] = np.concatenate(arrays, axis=-1)
        return joined
