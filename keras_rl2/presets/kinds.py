"""Kinds of values of an agent's settings."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of values, in words for messages, and a function to tell them."""

    words: str
    accepts: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    # `True` is an int.
    return type(value) in (int, float) and math.isfinite(value)


def is_schedule(value: object) -> bool:
    """Returns whether a value is a schedule over a run; see `Preset`."""
    if not isinstance(value, dict) or value.get("schedule") != "linear":
        return False
    numbers = {"fraction": 1.0, **value}
    del numbers["schedule"]
    return (
        numbers.keys() == {"initial", "final", "fraction"}
        and all(map(_is_number, numbers.values()))
        and 0.0 < numbers["fraction"] <= 1.0
    )


def either(*kinds: Kind) -> Kind:
    """Returns the kind of values that are of one of several kinds."""
    return Kind(
        " or ".join(kind.words for kind in kinds),
        lambda value: any(kind.accepts(value) for kind in kinds),
    )


def one_of(*choices: str) -> Kind:
    """Returns the kind of values that are one of some strings."""
    return Kind(" or ".join(map(repr, choices)), lambda value: value in choices)


NONE = Kind("null", lambda value: value is None)
FLAG = Kind("true or false", lambda value: type(value) is bool)
COUNT = Kind("a whole number", lambda value: type(value) is int)
NUMBER = Kind("a number", _is_number)
NUMBERS = Kind("a list of numbers", lambda value: type(value) is list)
SCHEDULE = Kind("a schedule as `Preset` describes", is_schedule)
NOISE = Kind(
    "null, a number, the name or config of noise, or a schedule",
    lambda value: (
        _is_number(value)
        or isinstance(value, str | None)
        or is_schedule(value)
        or (isinstance(value, dict) and "class_name" in value)
    ),
)
