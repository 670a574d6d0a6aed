"""The shape and dtype of an array."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ArraySpec:
    """The shape and dtype of one array of an observation or action.

    Attributes:
        shape: tuple of ints. Shape in one observation.
        dtype: str. Dtype in which it is stored and passed on.
    """

    shape: tuple[int, ...]
    dtype: str
