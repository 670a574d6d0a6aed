"""Kinds of values of settings."""

import math
from collections.abc import Callable
from typing import Any
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of values.

    Attributes:
        words: str. The kind in messages: "a number".
        accepts: Callable. Returns whether a value is of the kind.
    """

    words: str
    accepts: Callable[[Any], bool]


def _is_whole(value: object) -> bool:
    # `True` is an int.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def is_schedule(value: object) -> bool:
    """Returns whether a value is a schedule over a run.

    Args:
        value: Anything.

    Returns:
        bool.

    Example:

    >>> is_schedule({"schedule": "linear", "initial": 1.0, "final": 0.05,
    ...              "fraction": 0.1})
    True
    """
    if not isinstance(value, dict) or value.get("schedule") != "linear":
        return False
    fraction = value.get("fraction", 1.0)
    return (
        {"schedule", "initial", "final"} <= value.keys()
        and value.keys() <= {"schedule", "initial", "final", "fraction"}
        and _is_number(value["initial"])
        and _is_number(value["final"])
        and _is_number(fraction)
        and 0.0 < fraction <= 1.0
    )


def _is_noise(value: object) -> bool:
    if isinstance(value, dict):
        return "class_name" in value or is_schedule(value)
    return value is None or isinstance(value, str) or _is_number(value)


def either(*kinds: Kind) -> Kind:
    """Returns the kind of values that are of one of several kinds.

    Args:
        *kinds: `Kind`.

    Returns:
        `Kind`.

    Example:

    >>> either(WHOLE, NONE).words
    'a whole number or null'
    """
    return Kind(
        " or ".join(kind.words for kind in kinds),
        lambda value: any(kind.accepts(value) for kind in kinds),
    )


def one_of(*choices: str) -> Kind:
    """Returns the kind of values that are one of some strings.

    Args:
        *choices: str.

    Returns:
        `Kind`.

    Example:

    >>> one_of("huber", "mse").words
    "'huber' or 'mse'"
    """
    words = " or ".join(repr(choice) for choice in choices)
    return Kind(words, lambda value: value in choices)


def _is_settings(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) for k in value)


NONE = Kind("null", lambda value: value is None)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TEXT = Kind("a text", lambda value: isinstance(value, str))
WHOLE = Kind("a whole number", _is_whole)
COUNT = Kind(
    "a whole number of at least 1",
    lambda value: _is_whole(value) and value >= 1,
)
NUMBER = Kind("a number", _is_number)
NUMBERS = Kind(
    "a list of numbers",
    lambda value: isinstance(value, list) and all(map(_is_number, value)),
)
WIDTHS = Kind(
    "a list of whole numbers",
    lambda value: isinstance(value, list) and all(map(_is_whole, value)),
)
SETTINGS = Kind("a dict of settings", _is_settings)
SCHEDULE = Kind(
    'a schedule such as {"schedule": "linear", "initial": 1.0, "final": 0.05, '
    '"fraction": 0.1}',
    is_schedule,
)
NOISE = Kind(
    "null, a number, the name or config of noise, or a schedule", _is_noise
)
