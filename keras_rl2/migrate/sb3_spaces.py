"""Gymnasium spaces, from their summaries by Stable-Baselines3."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.spaces import Box

from keras_rl2.spaces.space_configs import space_from_config

_CLASS = re.compile(r"<class '(?:gym|gymnasium)\.spaces\.\w+\.(\w+)'>")
# NumPy's mark for omitted numbers.
_LEFT_OUT = "..."


def read_space(summary: Mapping[str, Any]) -> Space[Any]:
    """Makes a space from its summary.

    The summary lists only some bounds of a large Box: if these are all equal,
    the others are assumed to be equal too; else the Box has no bounds.

    Args:
        summary: Mapping of class and attributes, mostly as strings.

    Returns:
        `gymnasium.Space`.

    Raises:
        ValueError: If the space is not a Box, Discrete, MultiDiscrete or
            MultiBinary.

    Example:

    >>> read_space({
    ...     ":type:": "<class 'gymnasium.spaces.box.Box'>", "dtype": "float32",
    ...     "_shape": [2], "low": "[-1.  0.]", "high": "[0.3 2. ]"})
    Box([-1.  0.], [0.3 2. ], (2,), float32)
    """
    found = _CLASS.fullmatch(str(summary.get(":type:")))
    kind = found[1] if found else None
    if kind == "Box":
        return _box(summary)
    config: dict[str, Any] = {"type": kind, "dtype": "int64"}
    if kind == "Discrete":
        for name in ("n", "start"):
            config[name] = int(summary.get(name, 0))
    elif kind == "MultiDiscrete":
        shape = tuple(summary["_shape"])
        for name in ("nvec", "start"):
            text = str(summary.get(name, np.zeros(shape, "int64")))
            numbers = _numbers(text, shape)
            if numbers is None:
                raise ValueError(f"a MultiDiscrete space with {name}={text}")
            config[name] = numbers.astype("int64").tolist()
    elif kind == "MultiBinary":
        config = {"type": kind, "shape": summary["_shape"]}
    else:
        raise ValueError(
            f"a space {summary.get(':type:')}: expected a Box, Discrete, "
            "MultiDiscrete or MultiBinary"
        )
    return space_from_config(config)


def _box(summary: Mapping[str, Any]) -> Space[Any]:
    """Makes a Box."""
    config = {"type": "Box", "shape": summary["_shape"], "low": 0, "high": 0}
    # Checks shape and dtype before memory of that size is allocated.
    like = space_from_config({**config, "dtype": summary["dtype"]})
    dtype, shape = np.dtype(str(like.dtype)), tuple(like.shape or ())
    widest = (-np.inf, np.inf)
    if dtype.kind in "iu":
        widest = (np.iinfo(dtype).min, np.iinfo(dtype).max)
    bounds = [_numbers(str(summary[side]), shape) for side in ("low", "high")]
    low, high = (
        np.full(shape, wide if found is None else found, dtype)
        for wide, found in zip(widest, bounds, strict=True)
    )
    return Box(low, high, shape, dtype.type)


def _numbers(
    text: str, shape: tuple[int, ...]
) -> npt.NDArray[np.float64] | None:
    """Parses an array printed by NumPy.

    Args:
        text: str.
        shape: tuple of ints. The expected shape.

    Returns:
        Array of the shape, or None if the text is incomplete.

    Raises:
        ValueError: If the text has anything but numbers, or too many of them.
    """
    words = text.replace("[", " ").replace("]", " ").split()
    numbers = np.array([float(each) for each in words if each != _LEFT_OUT])
    if np.isnan(numbers).any():
        raise ValueError("bounds that are no numbers")
    if _LEFT_OUT not in words:
        return numbers.reshape(shape)
    if numbers.size and (numbers == numbers[0]).all():
        return np.full(shape, numbers[0])
    return None
