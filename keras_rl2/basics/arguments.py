"""Checks of arguments, before anything is made from them."""

import difflib
import functools
import inspect
import math
import numbers
import os
import typing
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar
from typing import cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")


def is_number(value: object) -> bool:
    """Returns whether a value is a real number; a boolean is not.

    Example:

    >>> is_number(np.float32(0.5)), is_number(True), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole_number(value: object) -> bool:
    """Returns whether a value is an integer, of Python or NumPy."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def given_or(value: Value | None, default: Value) -> Value:
    """Returns an argument, or a default if it is None.

    Example:

    >>> given_or(None, 4), given_or(0, 4)
    (4, 0)
    """
    return default if value is None else value


def present(**arguments: Any) -> dict[str, Any]:
    """Leaves out arguments that are None, where None stands for a default.

    Example:

    >>> check_positive(**present(max_steps=None))
    """
    return {k: value for k, value in arguments.items() if value is not None}


def check_in_range(**ranges: tuple[Any, float, float]) -> None:
    """Raises if a hyper-parameter is out of range.

    Example:

    >>> check_in_range(gamma=(1.5, 0.0, 1.0))
    Traceback (most recent call last):
    ...
    ValueError: Expected `gamma` to be a number from 0 to 1. Received: gamma=1.5
    """
    for name, (value, low, high) in ranges.items():
        if not is_number(value) or not low <= value <= high:
            raise _refused(name, value, f"a number from {low:g} to {high:g}")


def check_above_zero(**values: Any) -> None:
    """Raises unless values, for example of seconds, are numbers above 0."""
    for name, value in values.items():
        if not is_number(value) or not 0 < value < math.inf:
            raise _refused(name, value, "a finite number above 0")


def check_positive(**counts: Any) -> None:
    """Raises if a size is below 1."""
    check_at_least(1, **counts)


def check_at_least(lowest: int, /, **counts: Any) -> None:
    """Raises if a count is below a bound.

    Example:

    >>> check_at_least(0, warm_up=2.5)
    Traceback (most recent call last):
    ...
    ValueError: Expected `warm_up` to be an integer of at least 0. Received:
    warm_up=2.5
    """
    for name, value in counts.items():
        if not is_whole_number(value) or value < lowest:
            raise _refused(name, value, f"an integer of at least {lowest}")


def check_sizes(**sizes: Any) -> None:
    """Raises unless values are sequences of sizes, for example of layers."""
    for name, value in sizes.items():
        if (
            isinstance(value, str)
            or not isinstance(value, Sequence | np.ndarray)
            or not all(is_whole_number(each) and each > 0 for each in value)
        ):
            raise _refused(name, value, "a sequence of integers of at least 1")


def check_flag(**flags: Any) -> None:
    """Raises unless flags are True or False themselves."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise _refused(name, value, "True or False")


def check_seed(seed: object, name: str = "seed") -> None:
    """Raises unless a value is a seed."""
    check_at_least(0, **present(**{name: seed}))


def check_path(**paths: Any) -> None:
    """Raises unless values are paths; an integer would be a file descriptor."""
    check_known(lambda p: isinstance(p, str | os.PathLike), "a path", **paths)


def check_text(**texts: Any) -> None:
    """Raises unless values are strings."""
    check_known(lambda text: isinstance(text, str), "a string", **texts)


def check_has(what: str, *attributes: str, **things: Any) -> None:
    """Raises unless values have all attributes of a kind."""
    for name, value in things.items():
        if not all(hasattr(value, each) for each in attributes):
            raise _refused(name, value, what)


def check_choice(**choices: tuple[Any, tuple[Any, ...]]) -> None:
    """Raises if an argument is not among the allowed values."""
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise _refused(name, value, either(map(repr, allowed)))


def check_known(known: Callable[[Any], Any], what: str, **values: Any) -> None:
    """Raises unless a function of each value is true and raises no error."""
    for name, value in values.items():
        try:
            is_known = bool(known(value))
        except (TypeError, ValueError):
            is_known = False
        if not is_known:
            raise _refused(name, value, what)


def _refused(name: str, value: object, what: str) -> ValueError:
    """Returns the error for an argument of another kind."""
    return ValueError(
        f"Expected `{name}` to be {what}. Received: {name}={value!r}"
    )


def refuse_unknown(
    owner: str, arguments: Mapping[str, Any], allowed: Collection[str]
) -> None:
    """Raises for unknown keyword arguments.

    Example:

    >>> refuse_unknown("PPO", {"gama": 1}, ["gamma", "seed"])
    Traceback (most recent call last):
    ...
    TypeError: Expected an argument that PPO takes, perhaps `gamma`. Received:
    gama=1
    """
    for name, value in arguments.items():
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
    """Writes `2 or 4`."""
    return " or ".join(str(choice) for choice in choices)


def refusing_unknown(function: Function) -> Function:
    """Lets a function explain unknown argument names in its error.

    Args:
        function: Callable, or the `__init__` of a class. Its `**kwargs`, if
            any, are the keys of `Unpack[Arguments]`, a `TypedDict`.

    Example:

    >>> @refusing_unknown
    ... def rollouts(horizon: int = 128) -> int:
    ...     return horizon
    >>> rollouts(horizn=64)
    Traceback (most recent call last):
    ...
    TypeError: Expected an argument that rollouts takes, perhaps `horizon`.
    Received: horizn=64
    """
    return refusing({})(function)


def refusing(
    elsewhere: Mapping[str, str],
) -> Callable[[Function], Function]:
    """Lets a method of Keras refuse Keras' arguments that it does not take.

    Example:

    >>> @refusing({"y": "`x` alone"})
    ... def fit(x: int) -> int:
    ...     return x
    >>> fit(1, y=None)
    1
    >>> fit(1, y=2)
    Traceback (most recent call last):
    ...
    ValueError: Expected `fit` without `y`; use `x` alone. Received: y=2
    """

    def refused(function: Function) -> Function:
        names: set[str] = set()
        most = 0
        for name, each in inspect.signature(function).parameters.items():
            most += each.kind is each.POSITIONAL_OR_KEYWORD
            if each.kind is not each.VAR_KEYWORD:
                names.add(name)
            elif typing.get_origin(each.annotation) is typing.Unpack:
                # `**kwargs` stands for the keys of this `TypedDict`.
                [keys] = typing.get_args(each.annotation)
                names.update(keys.__annotations__)

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if elsewhere and len(args) > most:
                kwargs |= zip(elsewhere, args[most:], strict=False)
                args = args[:most]
            if not names.issuperset(kwargs):
                refuse(args, {k: kwargs.pop(k) for k in kwargs.keys() - names})
            return function(*args, **kwargs)

        def refuse(args: tuple[Any, ...], others: dict[str, Any]) -> None:
            for name in elsewhere.keys() & others.keys():
                value = others.pop(name)
                if value is not None:
                    raise ValueError(
                        f"Expected `{function.__name__}` without `{name}`; "
                        f"use {elsewhere[name]}. Received: {name}={value!r}"
                    )
            is_constructor = function.__name__ == "__init__"
            owner = type(args[0]) if is_constructor else function
            refuse_unknown(owner.__name__, others, names - {"self"})

        return cast(Function, checked)

    return refused
