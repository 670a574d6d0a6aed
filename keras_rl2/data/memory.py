"""The memory that arrays need, and that which is available."""

import contextlib
import gc
import math
from collections.abc import Iterable

import numpy as np

from keras_rl2.spaces.array_spec import ArraySpec

# Garbage may hold as much as larger arrays need.
_LARGE_BYTES = 10**8


def bytes_of(specs: Iterable[ArraySpec]) -> int:
    """Returns the bytes of one array of each spec."""
    return sum(
        math.prod(spec.shape) * np.dtype(spec.dtype).itemsize for spec in specs
    )


def available_memory() -> int | None:
    """Returns the bytes available without swapping, as Linux reports them."""
    with (
        contextlib.suppress(OSError),
        open("/proc/meminfo", encoding="ascii") as file,
    ):
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def check_memory(needed: int, purpose: str) -> None:
    """Raises a `MemoryError` unless the bytes for a purpose are available."""
    if needed > _LARGE_BYTES:
        # Agent and dataset of an earlier training refer to each other.
        gc.collect()
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"Expected {purpose} to fit into the available memory, "
            f"{available / 2**30:.2f} GiB. Received: one that needs "
            f"{needed / 2**30:.2f} GiB"
        )
