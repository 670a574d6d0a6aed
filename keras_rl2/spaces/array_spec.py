"""What an array is like."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ArraySpec:
    """What one array of an observation or action is like.

    Attributes:
        shape: tuple of ints. Of one observation.
        dtype: str. As it is stored and handed on.
    """

    shape: tuple[int, ...]
    dtype: str
