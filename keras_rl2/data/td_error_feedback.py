"""The way of TD errors from an agent back to a prioritised replay buffer."""

from typing import Any

import numpy as np
import tensorflow as tf


class TDErrorFeedback:
    """TD errors of the minibatches of one round.

    The compiled updates write them to a variable, since nothing else leaves
    the graph in the middle of a round; they are read once, after it.

    Args:
        updates: int. Minibatches of a round.
        batch_size: int. Transitions of each.

    Attributes:
        td_errors: `tf.Variable` `[updates, batch]` float32. What the agent
            writes to, by the `position` of a minibatch.
        index: `[updates, batch]` int64. Numbers of the transitions whose
            errors are expected; None if none are.

    Example:

    >>> feedback = TDErrorFeedback(updates=2, batch_size=2)
    >>> feedback.expect(np.array([[7, 8], [9, 7]]))
    >>> row = feedback.td_errors[0].assign([0.5, -1.0])
    >>> index, td_error = feedback.take()
    >>> index.tolist(), td_error.tolist()
    ([7, 8], [0.5, -1.0])
    """

    def __init__(self, updates: int, batch_size: int) -> None:
        none = tf.fill((updates, batch_size), np.nan)
        self.td_errors: Any = tf.Variable(none, trainable=False)
        self.index: np.ndarray | None = None

    def expect(self, index: np.ndarray) -> None:
        """Says which transitions are trained on next.

        Args:
            index: `[updates, batch]` int64.
        """
        self.index = index
        self.td_errors.assign(tf.fill(self.td_errors.shape, np.nan))

    def take(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Takes the errors that there are, and expects no more.

        Returns:
            Numbers of transitions `[M]` int64 and TD errors `[M]` float32,
            of minibatches that were trained on; None if none were expected.
        """
        if self.index is None:
            return None
        td_errors = self.td_errors.numpy()
        # Others belong to minibatches that nobody has trained on.
        known = np.isfinite(td_errors)
        index, self.index = self.index[known], None
        return index, td_errors[known]

    def drop(self) -> None:
        """Expects no errors any more."""
        self.index = None
