"""Between sequences of steps and single steps, in the graph.

Letters: B is the batch, T the steps of a sequence.
"""

from collections.abc import Callable

from keras import ops

from keras_rl2.basics.shapes import Tensor


def flat(array: Tensor) -> Tensor:
    """Lays sequences end to end: `[B, T, ...]` -> `[B * T, ...]`."""
    return ops.reshape(array, (-1, *array.shape[2:]))


def sequences_like(begins: Tensor) -> Callable[[Tensor], Tensor]:
    """Returns what undoes `flat`.

    Args:
        begins: `[B, T]`. Has the sizes of the sequences.

    Returns:
        Function from `[B * T, ...]` to `[B, T, ...]`.

    Example:

    >>> import numpy as np
    >>> rewards = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> flat(rewards).numpy().tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    >>> sequences_like(rewards)(flat(rewards)).numpy().tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    """
    batch, steps = ops.shape(begins)[:2]

    def sequences(array: Tensor) -> Tensor:
        return ops.reshape(array, (batch, steps, *array.shape[1:]))

    return sequences


def of_one_step(array: Tensor) -> Tensor:
    """Makes sequences of single steps: `[B, ...]` -> `[B, 1, ...]`."""
    return array[:, None]
