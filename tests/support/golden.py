"""Published cases: numbers of other libraries and of papers."""

import json
import pathlib

import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "golden" / "golden_vectors.json"


def load_cases():
    """Returns all cases of the file."""
    return json.loads(PATH.read_text())["cases"]


def as_arrays(value, dtype):
    """Turns lists into arrays; scalars, None and text stay."""
    if isinstance(value, dict):
        return {name: as_arrays(item, dtype) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    try:
        return np.asarray(value, dtype=dtype)
    except ValueError:
        return [as_arrays(item, dtype) for item in value]
