"""Spaces written down as plain JSON, with which agents are saved."""

import reprlib
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


def as_space(space: GivenSpace | None) -> Space[Any] | None:
    """Returns a space, from itself, its config or None.

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
    the string `"inf"`, which JSON has no number for.

    Example:

    >>> space_to_config(Box(-1, np.inf, (2,)))
    {'type': 'Box', 'low': -1.0, 'high': 'inf', 'shape': [2],
     'dtype': 'float32'}
    """
    if isinstance(space, Box):
        return {
            "type": "Box",
            "low": bounds_to_json(space.low),
            "high": bounds_to_json(space.high),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        }
    if isinstance(space, Discrete | MultiDiscrete):
        is_one = isinstance(space, Discrete)
        kind, count = ("Discrete", "n") if is_one else ("MultiDiscrete", "nvec")
        return {
            "type": kind,
            count: getattr(space, count).tolist(),
            "start": space.start.tolist(),
            "dtype": str(space.dtype),
        }
    if isinstance(space, MultiBinary):
        return {"type": "MultiBinary", "shape": list(space.shape)}
    if isinstance(space, Dict):
        inner = {key: space_to_config(each) for key, each in space.items()}
        return {"type": "Dict", "spaces": inner}
    if isinstance(space, Tuple):
        return {"type": "Tuple", "spaces": [*map(space_to_config, space)]}
    raise ValueError(
        "Expected a space of type Box, Discrete, MultiDiscrete, MultiBinary, "
        f"Dict or Tuple. Received: space={space}"
    )


def space_from_config(config: object) -> Space[Any]:
    """Makes a space from the config of `space_to_config`.

    Example:

    >>> space_from_config({"type": "MultiBinary", "shape": [3]})
    MultiBinary(3)
    """
    fields: Any = config if isinstance(config, Mapping) else {}
    kind = fields.get("type")
    if kind == "Dict":
        inner = fields["spaces"].items()
        return Dict({key: space_from_config(each) for key, each in inner})
    if kind == "Tuple":
        return Tuple([space_from_config(each) for each in fields["spaces"]])
    if kind == "MultiBinary":
        shape = fields["shape"]
        return MultiBinary(shape[0] if len(shape) == 1 else shape)
    if kind not in ("Box", "Discrete", "MultiDiscrete"):
        raise ValueError(
            "Expected the config of a space, as `space_to_config` returns it. "
            f"Received: config={reprlib.repr(config)}"
        )
    dtype = np.dtype(fields["dtype"])
    if kind == "Box":
        shape = tuple(fields["shape"])
        low, high = (
            np.full(shape, np.array(fields[key], dtype))
            for key in ("low", "high")
        )
        return Box(low, high, shape, dtype)
    if kind == "MultiDiscrete":
        return MultiDiscrete(fields["nvec"], dtype, start=fields["start"])
    # Before Gymnasium 1.3, int64 is the only dtype and no argument.
    other = {} if dtype == np.int64 else {"dtype": dtype.type}
    return Discrete(fields["n"], start=fields["start"], **other)


def bounds_to_json(bounds: np.ndarray) -> Any:
    """Returns one number if all bounds are equal, else nested lists."""
    values = bounds.astype(object)
    # JSON has no number for infinity.
    values[bounds == np.inf] = "inf"
    values[bounds == -np.inf] = "-inf"
    if bounds.size and (bounds == bounds.flat[0]).all():
        return values.flat[0]
    return values.tolist()
