"""Checks of shapes and dtypes for the mathematics.

Every function of `losses`, `returns` and `distributions` begins with one of
these checks: arrays that do not fit raise while the graph is traced, so that
nothing is ever broadcast by accident.
"""

from collections.abc import Mapping
from typing import Any
from typing import TypeAlias

import numpy as np
from keras import ops
from keras.backend import result_type
from keras.backend import standardize_dtype

Tensor: TypeAlias = Any
"""A NumPy array, a Keras variable, or a tensor, eager or symbolic."""

TensorLike: TypeAlias = Any
"""A tensor, or a value that becomes one: a number or a nested list."""

Shape = tuple[int | None, ...]


def static_shape(array: TensorLike) -> Shape | None:
    """Returns the statically known shape.

    Example:

    >>> static_shape([[1.0, 2.0, 3.0]])
    (1, 3)
    """
    shape = getattr(array, "shape", None)
    if shape is None:
        return np.shape(array)
    if getattr(shape, "rank", 0) is None:
        return None
    return tuple(shape)


def check_rank(rank: int | tuple[int, ...], **arrays: TensorLike) -> None:
    """Raises unless arrays have the given number of axes.

    Args:
        rank: int or tuple of int. Number of axes that each array must have, or
            several to choose from.
        **arrays: `[...]`. The arrays, by their names in the message.
            An array of unknown rank passes.

    Example:

    >>> check_rank(1, reward=[1.0, 2.0])
    >>> check_rank(2, rewards=[1.0, 2.0])
    Traceback (most recent call last):
    ValueError: Expected rank 2 for rewards. Received: rewards of shape [2]
    """
    ranks = (rank,) if isinstance(rank, int) else rank
    shapes = _shapes(arrays)
    wrong = [
        name
        for name, shape in shapes.items()
        if shape is not None and len(shape) not in ranks
    ]
    if wrong:
        raise ValueError(
            f"Expected rank {' or '.join(map(str, ranks))} for "
            f"{', '.join(wrong)}. "
            f"Received: {_describe(shapes)}{_broadcast_hint(shapes)}"
        )


def check_same_shape(**arrays: TensorLike) -> None:
    """Raises if the shapes of arrays differ.

    Shapes must be exactly equal: `[B, 1]` beside `[B]` would broadcast to
    `[B, B]` and train on nonsense without any error, so it raises.

    Args:
        **arrays: `[...]`. The arrays, by their names in the message.
            Unknown dimensions and arrays of unknown rank pass.

    Example:

    >>> check_same_shape(value=[1.0, 2.0], returns=[0.5, 0.0])
    >>> check_same_shape(value=[[1.0], [2.0]], returns=[0.5, 0.0])
    Traceback (most recent call last):
    ValueError: Expected equal shapes. Received: value of shape [2, 1], returns
    of shape [2]. These would broadcast to [2, 2]: squeeze the last axis of
    value, e.g. keras.ops.squeeze(value, axis=-1).
    """
    shapes = _shapes(arrays)
    known = [shape for shape in shapes.values() if shape is not None]
    # None is a size that is known when the graph runs.
    if len({len(shape) for shape in known}) > 1 or any(
        len({*sizes} - {None}) > 1 for sizes in zip(*known, strict=True)
    ):
        raise ValueError(
            f"Expected equal shapes. "
            f"Received: {_describe(shapes)}{_broadcast_hint(shapes)}"
        )


def check_shape(shape: Shape, **arrays: TensorLike) -> None:
    """Raises unless arrays have the given shape.

    Args:
        shape: tuple. The shape, None for each dimension that may be any.
        **arrays: `[...]`. The arrays, by their names in the message.
            Unknown dimensions and arrays of unknown rank pass.

    Example:

    >>> check_shape((None, 2), action=[[0, 1]])
    >>> check_shape((1,), action=[[0, 1]])
    Traceback (most recent call last):
    ValueError: Expected shape [1] for action. Received: action of shape [1, 2]
    """
    shapes = _shapes(arrays)
    wrong = [
        name
        for name, found in shapes.items()
        if found is not None and not _compatible(shape, found)
    ]
    if wrong:
        hint = _broadcast_hint({"": shape, **shapes})
        raise ValueError(
            f"Expected shape {_text(shape)} for {', '.join(wrong)}. "
            f"Received: {_describe(shapes)}{hint}"
        )


def as_float(*arrays: TensorLike) -> tuple[Tensor, ...]:
    """Converts arrays to tensors of one common dtype, float32 or wider.

    Integers, booleans and half precision become float32; float64 stays, and
    takes the others with it.

    Example:

    >>> rewards, terminated = as_float([1.0, 2.0], np.array([True, False]))
    >>> terminated.dtype.name
    'float32'
    """
    # int64 would promote float32 to float64 under NumPy's rules, and a list
    # holds Python's doubles: only floating arrays choose the precision.
    dtypes = [
        standardize_dtype(array.dtype)
        for array in arrays
        if hasattr(array, "dtype")
    ]
    dtype = result_type("float32", *(d for d in dtypes if "float" in d))
    return tuple(_as_dtype(array, dtype) for array in arrays)


def as_same_floats(
    rank: int | tuple[int, ...], **arrays: TensorLike
) -> tuple[Tensor, ...]:
    """Converts arrays of one rank and shape to tensors, as `as_float` does.

    Args:
        rank: int or tuple of int. See `check_rank`.
        **arrays: `[...]`. The arrays, by their names in messages.
    """
    check_rank(rank, **arrays)
    check_same_shape(**arrays)
    return as_float(*arrays.values())


def as_scalar(like: Tensor, **number: TensorLike) -> Tensor:
    """Converts one number to a scalar tensor of another tensor's dtype.

    Example:

    >>> (ratio,) = as_float([0.5])
    >>> as_scalar(ratio, clip_ratio=0.2).dtype.name
    'float32'
    """
    check_rank(0, **number)
    (value,) = number.values()
    return _as_dtype(value, standardize_dtype(like.dtype))


def _shapes(arrays: Mapping[str, TensorLike]) -> dict[str, Shape | None]:
    """Returns the static shape of each array."""
    return {name: static_shape(array) for name, array in arrays.items()}


def _as_dtype(array: TensorLike, dtype: str) -> Tensor:
    """Converts to a tensor without a detour through a narrower dtype."""
    if not hasattr(array, "dtype"):
        return ops.convert_to_tensor(np.asarray(array, dtype=dtype))
    return ops.cast(array, dtype)


def _compatible(first: Shape, second: Shape) -> bool:
    """Returns whether two shapes are equal as far as they are known."""
    return len(first) == len(second) and all(
        a is None or b is None or a == b
        for a, b in zip(first, second, strict=True)
    )


def _describe(shapes: dict[str, Shape | None]) -> str:
    """Describes each argument by its name and shape."""
    return ", ".join(
        f"{name} of shape {_text(shape)}" for name, shape in shapes.items()
    )


def _text(shape: Shape | None) -> str:
    """Writes a shape as the documentation does: [T, B]."""
    if shape is None:
        return "unknown"
    return f"[{', '.join('?' if d is None else str(d) for d in shape)}]"


def _broadcast_hint(shapes: dict[str, Shape | None]) -> str:
    """Explains the [B, 1] beside [B] mistake where it was made."""
    known = {name: shape for name, shape in shapes.items() if shape}
    column = next((n for n, s in known.items() if s[-1] == 1), None)
    if column is None:
        return ""
    flat = next(
        (s for s in known.values() if _compatible(s, known[column][:-1])),
        None,
    )
    if not flat:
        return ""
    broadcast = (*flat[:-1], flat[-1], flat[-1])
    return (
        f". These would broadcast to {_text(broadcast)}: squeeze the last axis "
        f"of {column}, e.g. keras.ops.squeeze({column}, axis=-1)."
    )
