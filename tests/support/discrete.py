"""Discrete spaces of other numbers than int64, where Gymnasium has them."""

import inspect

import numpy as np
from gymnasium.spaces import Discrete

# From Gymnasium 1.3 on.
HAS_DTYPES = "dtype" in inspect.signature(Discrete.__init__).parameters


def of_32_bits(n, start=0):
    """Returns a `Discrete` of int32, or of int64 where there is no other."""
    dtype = {"dtype": np.int32} if HAS_DTYPES else {}
    return Discrete(n, start=start, **dtype)
