"""A bound on the variables that a config can create."""

import contextlib
import math
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from keras_rl2.basics.shapes import TensorLike

# The slots of an optimizer that had made no update are not in the file.
_TIMES = 8
# Variables of small networks beside weights: counts, seeds, statistics.
_MORE = 2**16


@contextlib.contextmanager
def no_more_weights_than(elements: int) -> Iterator[None]:
    """Raises an error for variables that a file has no numbers for.

    A config of a few bytes can ask for a layer of any size; the file has the
    weights of all layers. Each variable is first traced, which yields its
    shape and takes no memory.

    Args:
        elements: int. Numbers in the file.

    Yields:
        None. Within, and in this thread, a variable too many is a ValueError.

    Raises:
        ValueError: If variables are larger than the numbers of the file.
    """
    left = _TIMES * elements + _MORE

    def made(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        nonlocal left
        count = _elements(kwargs["initial_value"])
        if count is None or count > left:
            raise ValueError(
                f"its config asks for more weights than the {elements:,} that "
                "are in the file"
            )
        left -= count
        return next_creator(**kwargs)

    with tf.variable_creator_scope(made):
        yield


def _elements(
    initial_value: TensorLike | Callable[[], TensorLike],
) -> int | None:
    """Returns how many elements a variable will have; None if unknown."""
    shape = _traced_shape(initial_value)
    sizes = tf.TensorShape(shape).as_list()
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def _traced_shape(initial_value: Any) -> Any:
    """Returns the shape of a value, or of a function's result."""
    if not callable(initial_value):
        return tf.convert_to_tensor(initial_value).shape
    try:
        # Half the time of a `tf.function`, for each of many variables.
        with tf.Graph().as_default():
            return tf.convert_to_tensor(initial_value()).shape
    except RuntimeError:
        # A user's own, with tensors: only functions can take them in.
        function = tf.function(initial_value, autograph=False)
        return function.get_concrete_function().output_shapes
