"""Spaces written down as plain JSON.

Reading it runs nothing, so that an agent is saved with its spaces and can be
loaded from a file of unknown origin.
"""

import inspect
import math
import reprlib
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box
from gymnasium.spaces import Dict
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiBinary
from gymnasium.spaces import MultiDiscrete
from gymnasium.spaces import Tuple

GivenSpace = Space[Any] | Mapping[str, Any]
"""A space, or its config."""

# A shape from a file is allocated when its space is made, so a few bytes could
# ask for any amount of memory. The largest is a 4096 x 4096 grey image.
_MAX_ELEMENTS = 2**24
_MAX_AXES = 32
_MAX_DEPTH = 16
_MAX_SPACES = 1024
_BOX_KINDS = "fiub"


def as_space(space: GivenSpace | None) -> Space[Any] | None:
    """Returns a space, from itself, its config or None.

    Args:
        space: `gymnasium.Space`, a dict of `space_to_config`, or None.

    Returns:
        The space, or None.

    Raises:
        ValueError: If it is neither.

    Example:

    >>> as_space(space_to_config(Discrete(3)))
    Discrete(3)
    """
    if space is None or isinstance(space, Space):
        return space
    return space_from_config(space)


def space_to_config(space: Space[Any]) -> dict[str, Any]:
    """Writes a space as plain JSON.

    Bounds that are the same everywhere become one number, infinity becomes
    the string "inf", which JSON has no number for.

    Args:
        space: `gymnasium.Space`: `Box`, `Discrete`, `MultiDiscrete`,
            `MultiBinary`, or a `Dict` or `Tuple` of such.

    Returns:
        A dictionary that `space_from_config` turns into an equal space.

    Raises:
        ValueError: If `space` is of any other type.

    Example:

    >>> space_to_config(Box(-1, np.inf, (2,)))
    {'type': 'Box', 'low': -1.0, 'high': 'inf', 'shape': [2],
     'dtype': 'float32'}
    """
    if isinstance(space, Box):
        return {
            "type": "Box",
            "low": _bounds_to_json(space.low),
            "high": _bounds_to_json(space.high),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        }
    if isinstance(space, Discrete):
        return {
            "type": "Discrete",
            "n": int(space.n),
            "start": int(space.start),
            "dtype": str(space.dtype),
        }
    if isinstance(space, MultiDiscrete):
        return {
            "type": "MultiDiscrete",
            "nvec": space.nvec.tolist(),
            "start": space.start.tolist(),
            "dtype": str(space.dtype),
        }
    if isinstance(space, MultiBinary):
        return {"type": "MultiBinary", "shape": list(space.shape)}
    if isinstance(space, Dict) and _has_names(space):
        inner = {key: space_to_config(each) for key, each in space.items()}
        return {"type": "Dict", "spaces": inner}
    if isinstance(space, Tuple) and len(space):
        return {"type": "Tuple", "spaces": [*map(space_to_config, space)]}
    raise ValueError(
        "Expected a space of type Box, Discrete, MultiDiscrete, MultiBinary, "
        "Dict (with strings for keys) or Tuple, neither of them empty. "
        f"Received: space={space}"
    )


def _has_names(space: Dict) -> bool:
    """Returns whether a Dict has keys, all of them strings."""
    return len(space) > 0 and all(isinstance(key, str) for key in space)


def space_from_config(config: object) -> Space[Any]:
    """Makes a space from the config of `space_to_config`.

    The dictionary may come from an untrusted file, so only known keys with
    values of known types are accepted, and nothing large is allocated.

    Args:
        config: dict, as returned by `space_to_config`.

    Returns:
        A `gymnasium.Space`.

    Raises:
        ValueError: If `config` is anything else.

    Example:

    >>> space_from_config({"type": "MultiBinary", "shape": [3]})
    MultiBinary(3)
    """
    return _read_space(config, 0)


def _read_space(config: Any, depth: int) -> Space[Any]:
    """Makes a space that is nested to a depth."""
    kind = config.get("type") if isinstance(config, dict) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(
            f"Expected a dictionary with a type among {sorted(_READERS)}. "
            f"Received: config={reprlib.repr(config)}"
        )
    reader, keys = _READERS[kind]
    try:
        _require(set(config) == {"type", *keys}, f"the keys {keys}")
        _require(depth <= _MAX_DEPTH, f"at most {_MAX_DEPTH} levels")
        return reader(config) if reader else _read_nested(config, depth)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"Expected the config of a {kind} space: {error}. "
            f"Received: config={reprlib.repr(config)}"
        ) from error


def _bounds_to_json(bounds: np.ndarray) -> Any:
    """Returns one number if all bounds are equal, else nested lists."""
    if bounds.size and (bounds == bounds.flat[0]).all():
        return _number_to_json(bounds.flat[0].item())
    return _map_nested(_number_to_json, bounds.tolist())


def _number_to_json(number: float) -> float | str:
    """Writes infinity as text."""
    if isinstance(number, float) and math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def _map_nested(
    function: Callable[[Any], Any], value: object, depth: int = 0
) -> Any:
    """Applies a function to each element of nested lists."""
    if isinstance(value, list) and depth < _MAX_AXES:
        return [_map_nested(function, item, depth + 1) for item in value]
    return function(value)


def _require(condition: bool, expected: str) -> None:
    """Raises if a condition on a value does not hold."""
    if not condition:
        raise ValueError(f"expected {expected}")


def _read_number(number: Any) -> float:
    """Reads a bound: a number, or infinity as text."""
    if isinstance(number, str) and number in ("inf", "-inf"):
        return float(number)
    if type(number) not in (bool, int, float) or math.isnan(number):
        raise ValueError("expected numbers, 'inf' or '-inf' as bounds")
    return float(number) if isinstance(number, float) else int(number)


def _read_integer(value: object) -> int:
    """Reads an integer of 64 bits, which a bool is not."""
    if type(value) is not int or abs(value) >= 2**63:
        raise ValueError("expected integers")
    return value


def _read_integers(value: object) -> np.ndarray:
    """Reads nested lists of integers."""
    _require(isinstance(value, list) and len(value) > 0, "a list")
    return np.array(_map_nested(_read_integer, value), np.int64)


def _read_shape(value: Any) -> tuple[int, ...]:
    """Reads a shape of a sane size."""
    _require(isinstance(value, list) and len(value) <= _MAX_AXES, "a shape")
    shape = tuple(_read_integer(size) for size in value)
    _require(min(shape, default=0) >= 0, "sizes of 0 or more")
    _require(
        math.prod(shape) <= _MAX_ELEMENTS, f"at most {_MAX_ELEMENTS} elements"
    )
    return shape


def _read_dtype(value: object, kinds: str) -> np.dtype[Any]:
    """Reads the name of a numeric dtype."""
    dtypes = [np.dtype(code) for code in np.typecodes["All"]]
    names = sorted({dtype.name for dtype in dtypes if dtype.kind in kinds})
    _require(isinstance(value, str) and value in names, f"dtype among {names}")
    return np.dtype(str(value))


def _read_bounds(
    value: object, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray:
    """Reads bounds that are one number or nested lists of the shape."""
    bounds = np.array(_map_nested(_read_number, value), dtype)
    _require(bounds.shape in ((), shape), f"bounds of shape {shape}")
    return np.full(shape, bounds)


def _read_box(config: dict[str, Any]) -> Space[Any]:
    """Makes a Box."""
    shape = _read_shape(config["shape"])
    dtype = _read_dtype(config["dtype"], _BOX_KINDS)
    low = _read_bounds(config["low"], shape, dtype)
    high = _read_bounds(config["high"], shape, dtype)
    _require(bool((low <= high).all()), "low <= high")
    return Box(low, high, shape, dtype)


def _read_discrete(config: dict[str, Any]) -> Space[Any]:
    """Makes a Discrete."""
    n, start = _read_integer(config["n"]), _read_integer(config["start"])
    dtype = _read_dtype(config["dtype"], "iu")
    _require_values([n], [start], dtype)
    if dtype == np.int64:
        # The only dtype before Gymnasium 1.3, which takes no argument for it.
        return Discrete(n, start=start)
    known = "dtype" in inspect.signature(Discrete).parameters
    _require(known, "dtype int64, or Gymnasium 1.3 or newer for another")
    return Discrete(n, start=start, dtype=dtype.type)


def _read_multi_discrete(config: dict[str, Any]) -> Space[Any]:
    """Makes a MultiDiscrete."""
    nvec = _read_integers(config["nvec"])
    start = _read_integers(config["start"])
    dtype = _read_dtype(config["dtype"], "iu")
    _require(nvec.shape == start.shape, "nvec and start of one shape")
    _require_values(nvec.ravel().tolist(), start.ravel().tolist(), dtype)
    return MultiDiscrete(nvec, dtype, start=start)


def _require_values(
    sizes: list[int], starts: list[int], dtype: np.dtype[Any]
) -> None:
    """Raises for sizes below 1 and values that overflow the dtype."""
    limits = np.iinfo(dtype)
    for size, start in zip(sizes, starts, strict=True):
        last = max(size, start + size - 1)
        _require(size >= 1, "sizes of 1 or more")
        _require(limits.min <= start and last <= limits.max, "a wider dtype")


def _read_multi_binary(config: dict[str, Any]) -> Space[Any]:
    """Makes a MultiBinary."""
    shape = _read_shape(config["shape"])
    _require(min(shape, default=0) >= 1, "sizes of 1 or more")
    return MultiBinary(shape[0] if len(shape) == 1 else shape)


def _read_nested(config: dict[str, Any], depth: int) -> Space[Any]:
    """Makes a Dict or a Tuple of spaces."""
    given = config["spaces"]
    expected = _NESTED[config["type"]]
    _require(
        isinstance(given, expected) and bool(given),
        f"a {expected.__name__} of spaces that is not empty",
    )
    if not depth:
        count, elements = _sizes(config)
        _require(count <= _MAX_SPACES, f"at most {_MAX_SPACES} spaces")
        _require(elements <= _MAX_ELEMENTS, f"at most {_MAX_ELEMENTS} elements")
    if isinstance(given, dict):
        _require(all(isinstance(key, str) for key in given), "strings as keys")
        return Dict(
            {key: _read_space(each, depth + 1) for key, each in given.items()}
        )
    return Tuple([_read_space(each, depth + 1) for each in given])


def _sizes(config: object, depth: int = 0) -> tuple[int, int]:
    """Counts spaces and the elements of all boxes, as far as it can be read."""
    if not isinstance(config, dict) or depth > _MAX_DEPTH:
        return 0, 0
    inner = config.get("spaces", ())
    if isinstance(inner, dict):
        inner = [*inner.values()]
    spaces, elements = 0, 0
    for each in inner if isinstance(inner, list) else ():
        below = _sizes(each, depth + 1)
        spaces, elements = spaces + 1 + below[0], elements + below[1]
    shape = config.get("shape", ())
    if isinstance(shape, list) and all(type(size) is int for size in shape):
        elements += abs(math.prod(shape))
    return spaces, elements


_NESTED: dict[str, type] = {"Dict": dict, "Tuple": list}

_READERS: dict[
    str,
    tuple[Callable[[dict[str, Any]], Space[Any]] | None, tuple[str, ...]],
] = {
    "Box": (_read_box, ("low", "high", "shape", "dtype")),
    "Discrete": (_read_discrete, ("n", "start", "dtype")),
    "MultiDiscrete": (_read_multi_discrete, ("nvec", "start", "dtype")),
    "MultiBinary": (_read_multi_binary, ("shape",)),
    # Each function reads its nested spaces, one level deeper.
    "Dict": (None, ("spaces",)),
    "Tuple": (None, ("spaces",)),
}
