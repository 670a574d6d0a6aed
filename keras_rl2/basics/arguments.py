"""Checks of arguments, before anything is made from them."""

import difflib
import functools
import inspect
import math
import numbers
import os
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar
from typing import cast

import numpy as np

from keras_rl2.basics import foreign_names

Function = TypeVar("Function", bound=Callable[..., Any])
Given = TypeVar("Given")


def is_number(value: object) -> bool:
    """Says whether a value is a real number, which no boolean is meant to be.

    Args:
        value: What was given.

    Example:

    >>> is_number(np.float32(0.5)), is_number(True), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole_number(value: object) -> bool:
    """Says whether a value is an integer, of Python or NumPy.

    Args:
        value: What was given.
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def given_or(given: Given | None, own: Given) -> Given:
    """Returns an argument that was given, or else what stands for it.

    Args:
        given: The argument, or None.
        own: Of the same type.

    Example:

    >>> given_or(None, 4), given_or(0, 4)
    (4, 0)
    """
    return own if given is None else given


def present(**given: Any) -> dict[str, Any]:
    """Leaves out arguments that are None, where None stands for a default.

    Args:
        **given: name = value.

    Example:

    >>> check_positive(**present(max_steps=None))
    """
    return {key: value for key, value in given.items() if value is not None}


def check_in_range(**ranges: tuple[Any, float, float]) -> None:
    """Refuses hyper-parameters out of range.

    Args:
        **ranges: name = (value, lowest, highest).

    Raises:
        ValueError: If a value is not a number within its bounds.

    Example:

    >>> check_in_range(gamma=(1.5, 0.0, 1.0))
    Traceback (most recent call last):
    ...
    ValueError: Expected `gamma` to be a number from 0 to 1. Received: gamma=1.5
    """
    for name, (value, low, high) in ranges.items():
        if not is_number(value) or not low <= value <= high:
            raise _refused(name, value, f"a number from {low:g} to {high:g}")


def check_above_zero(**given: Any) -> None:
    """Refuses what is not a number above 0, seconds say.

    Args:
        **given: name = value.

    Raises:
        ValueError: If one is not finite, or not above 0.
    """
    for name, value in given.items():
        if not is_number(value) or not 0 < value < math.inf:
            raise _refused(name, value, "a finite number above 0")


def check_positive(**counts: Any) -> None:
    """Refuses sizes below 1.

    Args:
        **counts: name = value.

    Raises:
        ValueError: If one is not an integer of at least 1.
    """
    check_at_least(1, **counts)


def check_at_least(lowest: int, /, **counts: Any) -> None:
    """Refuses counts below a bound.

    Args:
        lowest: int. What they are to be at least.
        **counts: name = value.

    Raises:
        ValueError: If one is not an integer of at least as much.

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
    """Refuses what is not a sequence of sizes, of layers say.

    Args:
        **sizes: name = value.

    Raises:
        ValueError: If one is not a sequence of integers of at least 1.
    """
    for name, value in sizes.items():
        if (
            isinstance(value, str)
            or not isinstance(value, Sequence | np.ndarray)
            or not all(is_whole_number(each) and each > 0 for each in value)
        ):
            what = "a sequence of integers of at least 1"
            raise _refused(name, value, what)


def check_flag(**flags: Any) -> None:
    """Refuses what is neither True nor False, be it as good as one of them.

    Args:
        **flags: name = value.

    Raises:
        ValueError: If one is no boolean, `"False"` say, which would be true.
    """
    for name, value in flags.items():
        # Not `isinstance`: this is asked at each `act`.
        if value is not True and value is not False:
            if isinstance(value, np.bool_):
                continue
            raise _refused(name, value, "True or False")


def check_seed(seed: Any, name: str = "seed") -> None:
    """Refuses what is no seed.

    Args:
        seed: int or None.
        name: str. Of the argument. Defaults to `"seed"`.

    Raises:
        ValueError: If it is neither an integer of at least 0 nor None.
    """
    check_at_least(0, **present(**{name: seed}))


def check_path(**paths: Any) -> None:
    """Refuses what is no path; an integer would be an open file's number.

    Args:
        **paths: name = value.

    Raises:
        ValueError: If one is neither a string nor a path.
    """
    for name, value in paths.items():
        if not isinstance(value, str | os.PathLike):
            raise _refused(name, value, "a path")


def check_text(**texts: Any) -> None:
    """Refuses what is no string.

    Args:
        **texts: name = value.

    Raises:
        ValueError: If one is none.
    """
    for name, value in texts.items():
        if not isinstance(value, str):
            raise _refused(name, value, "a string")


def check_has(what: str, *attributes: str, **things: Any) -> None:
    """Refuses what is not of a kind, by what that kind has.

    Args:
        what: str. The kind, in words.
        *attributes: str. What things of the kind have.
        **things: name = value.

    Raises:
        ValueError: If one of them lacks an attribute.
    """
    for name, value in things.items():
        if not all(hasattr(value, each) for each in attributes):
            raise _refused(name, value, what)


def check_choice(**choices: tuple[Any, tuple[Any, ...]]) -> None:
    """Refuses arguments that are not among those allowed.

    Args:
        **choices: name = (value, allowed values).

    Raises:
        ValueError: If a value is none of them.
    """
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise _refused(name, value, either(map(repr, allowed)))


def _refused(name: str, value: Any, what: str) -> ValueError:
    """Returns what is raised of an argument that is something else."""
    return ValueError(
        f"Expected `{name}` to be {what}. Received: {name}={value!r}"
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
        TypeError: If one is unknown. Says what it is called here where it is
            of another library, or else names the nearest, or all where none
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
        answer = foreign_names.answer(name, allowed)
        if answer is not None:
            raise TypeError(
                f"Expected an argument that {owner} takes: {answer}. "
                f"Received: {name}={value!r}"
            )
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


def standing_for(called: Callable[..., Any]) -> Callable[[Function], Function]:
    """Has a signature stand for a function, which is given what was given.

    The signature names all arguments, for readers and for type checkers; the
    function knows which of them were passed.

    Args:
        called: Callable with `**kwargs`. Is called instead.

    Returns:
        Callable from a function without a body of its own to one that looks
        like it.

    Example:

    >>> @standing_for(lambda **given: sorted(given))
    ... def given(*, gamma: float = 0.99, seed: int | None = None) -> list[str]:
    ...     raise NotImplementedError
    >>> given(seed=None)
    ['seed']
    """

    def signed(function: Function) -> Function:
        @functools.wraps(function)
        def made(*args: Any, **kwargs: Any) -> Any:
            return called(*args, **kwargs)

        return cast(Function, made)

    return signed


def refusing_unknown(function: Function) -> Function:
    """Has a function answer to names that it does not know.

    Args:
        function: Callable without `**kwargs`, or the `__init__` of a class.

    Returns:
        Callable that looks like it.

    Raises:
        TypeError: When it is called with an unknown name; see
            `refuse_unknown`.

    Example:

    >>> @refusing_unknown
    ... def rollouts(horizon: int = 128) -> int:
    ...     return horizon
    >>> rollouts(n_steps=64)
    Traceback (most recent call last):
    ...
    TypeError: Expected an argument that rollouts takes: `n_steps` is `horizon`
    here. Received: n_steps=64
    """
    names = frozenset(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not names.issuperset(kwargs):
            is_constructor = function.__name__ == "__init__"
            owner = type(args[0]) if is_constructor else function
            refuse_unknown(owner.__name__, kwargs, names - {"self"})
        return function(*args, **kwargs)

    return cast(Function, checked)


def of_constructor(kind: type) -> set[str]:
    """Returns the arguments of a constructor, which may hand on to a base's.

    Args:
        kind: class. Whose constructor it is. Where that takes `**kwargs`, they
            are those of the next class in the order of its bases.

    Returns:
        set of str: all names.

    Example:

    >>> class Base:
    ...     def __init__(self, *, gamma=0.99): ...
    >>> class Derived(Base):
    ...     def __init__(self, actor, **kwargs): ...
    >>> sorted(of_constructor(Derived))
    ['actor', 'gamma']
    """
    names: set[str] = set()
    constructors = [vars(each).get("__init__") for each in kind.__mro__]
    for constructor in filter(None, constructors):
        given = inspect.signature(constructor).parameters.values()
        kinds = {each.kind for each in given}
        rest = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        names |= {each.name for each in given if each.kind not in rest}
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            break
    return names - {"self"}
