"""A schedule of Stable-Baselines3, as plain numbers."""

from typing import NamedTuple


class LinearFall(NamedTuple):
    """A number that changes evenly over the first part of a run.

    Attributes:
        start: float. The first value.
        end: float. The last value, constant for the rest of the run.
        end_fraction: float. The part of the run in which the value changes.

    Example:

    >>> LinearFall(start=1e-3, end=0.0, end_fraction=0.5).end
    0.0
    """

    start: float
    end: float
    end_fraction: float
