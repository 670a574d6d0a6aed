"""Checks of shapes and dtypes for the mathematics.

Every function of `losses`, `returns` and `distributions` begins with one of
these checks: arrays that do not fit raise while the graph is traced, so that
nothing is ever broadcast by accident.
"""

from collections.abc import Callable
from itertools import combinations
from itertools import starmap
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
    expected = f"rank {' or '.join(map(str, ranks))}"
    _check_each(arrays, expected, lambda shape: len(shape) in ranks)


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
    shapes = [s for s in map(static_shape, arrays.values()) if s is not None]
    if not all(starmap(_compatible, combinations(shapes, 2))):
        raise ValueError(f"Expected equal shapes. {_received(arrays)}")


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
    _check_each(
        arrays,
        f"shape {_text(shape)}",
        lambda received: _compatible(shape, received),
        {"": shape},
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
    dtypes = [standardize_dtype(a.dtype) for a in arrays if hasattr(a, "dtype")]
    dtype = result_type(
        "float32", *(each for each in dtypes if "float" in each)
    )
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


def _as_dtype(array: TensorLike, dtype: str) -> Tensor:
    """Converts to a tensor without a detour through a narrower dtype."""
    if not hasattr(array, "dtype"):
        return ops.convert_to_tensor(np.asarray(array, dtype=dtype))
    return ops.cast(array, dtype)


def _compatible(first: Shape, second: Shape) -> bool:
    """Returns whether two shapes are equal as far as they are known."""
    return len(first) == len(second) and all(
        # None is a size that is known when the graph runs.
        one == other or one is None or other is None
        for one, other in zip(first, second, strict=True)
    )


def _check_each(
    arrays: dict[str, TensorLike],
    expected: str,
    fits: Callable[[Shape], bool],
    wanted: dict[str, Shape] | None = None,
) -> None:
    """Raises if the known shape of an array does not fit."""
    shapes = {name: static_shape(array) for name, array in arrays.items()}
    wrong = [n for n, s in shapes.items() if s is not None and not fits(s)]
    if wrong:
        raise ValueError(
            f"Expected {expected} for {', '.join(wrong)}. "
            f"{_received(arrays, wanted)}"
        )


def _received(
    arrays: dict[str, TensorLike], wanted: dict[str, Shape] | None = None
) -> str:
    """Describes each argument by its name and shape, perhaps with a hint."""
    shapes = {name: static_shape(array) for name, array in arrays.items()}
    described = ", ".join(
        f"{name} of shape {_text(shape)}" for name, shape in shapes.items()
    )
    hint = _broadcast_hint({**(wanted or {}), **shapes})
    return f"Received: {described}{hint}"


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
    row = known[column][:-1]
    flat = next((s for s in known.values() if _compatible(s, row)), None)
    if not flat:
        return ""
    return (
        f". These would broadcast to {_text((*flat, flat[-1]))}: squeeze the "
        f"last axis of {column}, e.g. keras.ops.squeeze({column}, axis=-1)."
    )
