"""What Minari writes beside the episodes: spaces and a few facts, as JSON."""

import json
import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from keras_rl2.files.plain_files import read_json
from keras_rl2.spaces.space_configs import space_from_config

_INNER = "subspaces"
# Bounds of pictures are written one by one.
_MOST_BYTES = 2**26


def read_metadata(path: Path) -> dict[str, Any]:
    """Reads `metadata.json`, and the spaces in it.

    Args:
        path: path. The file.

    Returns:
        dict: what stands there, with `gymnasium.Space` or None for
        `observation_space` and `action_space`.

    Raises:
        ValueError: If it is no such file, or a space is none that agents use.
    """
    try:
        metadata = read_json(path, _MOST_BYTES)
    except (OSError, ValueError) as error:
        raise ValueError(
            "Expected a metadata.json as Minari writes it. Received: "
            f"{path} ({error})"
        ) from error
    if not isinstance(metadata, dict):
        raise ValueError(
            "Expected a metadata.json as Minari writes it. Received: "
            f"{path}, with a {type(metadata).__name__}"
        )
    for key in ("observation_space", "action_space"):
        text = metadata.get(key)
        try:
            given = json.loads(text) if isinstance(text, str) else text
            metadata[key] = (
                None if given is None else space_from_config(_config(given))
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"Expected a space that agents use as {key} of {path}. "
                f"Received: {error}"
            ) from error
    return metadata


def space_to_minari(space: gymnasium.Space[Any]) -> dict[str, Any]:
    """Writes a space as Minari does.

    Args:
        space: `gymnasium.Space`.

    Returns:
        dict of plain numbers; infinity as Python's `json` writes it.

    Example:

    >>> space_to_minari(gymnasium.spaces.Discrete(3))
    {'type': 'Discrete', 'dtype': 'int64', 'start': 0, 'n': 3}
    """
    kinds = gymnasium.spaces
    kind = {"type": type(space).__name__}
    if isinstance(space, kinds.Dict):
        inner = {key: space_to_minari(each) for key, each in space.items()}
        return {**kind, _INNER: inner}
    if isinstance(space, kinds.Tuple):
        return {**kind, _INNER: [space_to_minari(each) for each in space]}
    if isinstance(space, kinds.Discrete):
        start, n = int(space.start), int(space.n)
        return {**kind, "dtype": "int64", "start": start, "n": n}
    if isinstance(space, kinds.MultiBinary):
        shape = list(space.shape)
        return {**kind, "n": shape[0] if len(shape) == 1 else shape}
    numbers = {**kind, "dtype": str(space.dtype)}
    if isinstance(space, kinds.MultiDiscrete):
        start = space.start.tolist()
        return {**numbers, "nvec": space.nvec.tolist(), "start": start}
    assert isinstance(space, kinds.Box)
    low, high = space.low.tolist(), space.high.tolist()
    return {**numbers, "shape": list(space.shape), "low": low, "high": high}


def _config(given: Any) -> Any:
    """Turns a space as Minari writes it into the house's own config."""
    if not isinstance(given, dict):
        return given
    kind = given.get("type")
    if kind == "Dict":
        inner = given[_INNER].items()
        return {"type": kind, "spaces": {k: _config(v) for k, v in inner}}
    if kind == "Tuple":
        return {"type": kind, "spaces": [*map(_config, given[_INNER])]}
    if kind == "MultiBinary":
        return {"type": kind, "shape": np.atleast_1d(given["n"]).tolist()}
    if kind == "Box":
        low, high = map(_bounds, (given["low"], given["high"]))
        return {**given, "low": low, "high": high}
    return given


def _bounds(given: Any) -> Any:
    """Writes infinity as text, as the house's own config has it."""
    if isinstance(given, list):
        return [_bounds(each) for each in given]
    if isinstance(given, float) and math.isinf(given):
        return "inf" if given > 0 else "-inf"
    return given
