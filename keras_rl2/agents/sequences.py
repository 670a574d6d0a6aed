"""Between sequences of steps and single steps, in the graph."""

from collections.abc import Callable

from keras import ops

from keras_rl2.shapes import Tensor


def flat(array: Tensor) -> Tensor:
    """Lays sequences end to end: `[B, T, ...]` -> `[B * T, ...]`."""
    return ops.reshape(array, (-1, *array.shape[2:]))


def sequences_like(begins: Tensor) -> Callable[[Tensor], Tensor]:
    """Returns what undoes `flat`.

    Args:
        begins: `[B, T]`. Has the sizes of the sequences.

    Returns:
        Function from `[B * T, ...]` to `[B, T, ...]`.
    """
    batch, steps = ops.shape(begins)[:2]

    def sequences(array: Tensor) -> Tensor:
        return ops.reshape(array, (batch, steps, *array.shape[1:]))

    return sequences
