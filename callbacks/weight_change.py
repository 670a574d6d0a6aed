"""How far a training has moved the weights."""

import math
from collections.abc import Sequence

import numpy as np


def relative_change(
    before: Sequence[np.ndarray], after: Sequence[np.ndarray]
) -> float:
    """Returns the norm of a change of weights over the norm of the weights.

    Args:
        before: Sequence of arrays.
        after: Sequence of arrays of the same shapes.

    Returns:
        float: |after - before| / |before|, over all arrays together.
    """
    changes = [y - x for x, y in zip(before, after, strict=True)]
    return _norm(changes) / max(_norm(before), 1e-12)


def _norm(arrays: Sequence[np.ndarray]) -> float:
    """Returns the Euclidean norm of all arrays together."""
    return math.sqrt(
        sum(float(np.square(x, dtype=np.float64).sum()) for x in arrays)
    )
