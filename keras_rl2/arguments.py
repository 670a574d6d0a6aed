"""Checks of arguments, before anything is made from them."""

import difflib
import inspect
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import numpy as np


def check_in_range(**numbers: tuple[Any, float, float]) -> None:
    """Refuses hyper-parameters out of range.

    Args:
        **numbers: name = (value, lowest, highest).

    Raises:
        ValueError: If a value is not a number within its bounds.

    Example:

    >>> check_in_range(gamma=(1.5, 0.0, 1.0))
    Traceback (most recent call last):
    ...
    ValueError: Expected `gamma` to be a number from 0 to 1. Received: gamma=1.5
    """
    for name, (value, low, high) in numbers.items():
        if not isinstance(value, (int, float, np.number)) or not (
            low <= value <= high
        ):
            raise ValueError(
                f"Expected `{name}` to be a number from {low:g} to {high:g}. "
                f"Received: {name}={value!r}"
            )


def check_positive(**numbers: object) -> None:
    """Refuses sizes below 1.

    Args:
        **numbers: name = value.

    Raises:
        ValueError: If one is not an integer of at least 1.
    """
    for name, value in numbers.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(
                f"Expected `{name}` to be an integer of at least 1. "
                f"Received: {name}={value!r}"
            )


def check_choice(**choices: tuple[Any, tuple[Any, ...]]) -> None:
    """Refuses arguments that are not among those allowed.

    Args:
        **choices: name = (value, allowed values).

    Raises:
        ValueError: If a value is none of them.
    """
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ValueError(
                f"Expected `{name}` to be {either(map(repr, allowed))}. "
                f"Received: {name}={value!r}"
            )


def refuse_unknown(
    owner: str, given: Mapping[str, Any], allowed: Collection[str]
) -> None:
    """Refuses keyword arguments that there are not.

    Args:
        owner: str. What they were given to.
        given: Mapping from names to values.
        allowed: Collection of str. The names that there are.

    Raises:
        TypeError: If one is unknown. Names the nearest ones, or all where none
            is near.

    Example:

    >>> refuse_unknown("PPO", {"gama": 1}, ["gamma", "seed"])
    Traceback (most recent call last):
    ...
    TypeError: Expected an argument that PPO takes, perhaps `gamma`. Received:
    gama=1
    """
    for name, value in given.items():
        if name in allowed:
            continue
        near = difflib.get_close_matches(name, sorted(allowed), cutoff=0.7)
        choices = f"one of {', '.join(sorted(allowed))}"
        if near:
            choices = f"perhaps {either(f'`{each}`' for each in near)}"
        raise TypeError(
            f"Expected an argument that {owner} takes, {choices}. "
            f"Received: {name}={value!r}"
        )


def either(choices: Iterable[Any]) -> str:
    """Writes `2 or 4`.

    Args:
        choices: Iterable. What there is to choose from.

    Returns:
        str.
    """
    return " or ".join(str(choice) for choice in choices)


def of_constructor(kind: type, base: type) -> set[str]:
    """Returns the arguments of a constructor that hands the rest on to bases.

    Args:
        kind: class. Whose constructor it is.
        base: class. The last of its bases that is asked.

    Returns:
        set of str: all names, of bases' arguments too.
    """
    signatures = [
        inspect.signature(vars(each)["__init__"])
        for each in kind.__mro__
        if issubclass(each, base) and "__init__" in vars(each)
    ]
    rest = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {
        parameter.name
        for signature in signatures
        for parameter in signature.parameters.values()
        if parameter.kind not in rest
    } - {"self"}
