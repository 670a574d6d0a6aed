"""Conversion of objects' state to plain numbers, arrays and strings.

A checkpoint is written as JSON and arrays. It contains no pickle, and reading
it runs no code.
"""

from collections import deque
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import numpy as np

# Marks a value of a type that JSON lacks: {"$tuple": [...]}.
_ARRAY, _SCALAR, _TUPLE, _DICT = "$array", "$scalar", "$tuple", "$dict"
_DEQUE, _GENERATOR, _NUMBERS = "$deque", "$generator", "$numbers"
# Numbers of a list, such as one of a `History`, that are saved as an array.
_MANY = 100
_KINDS = "biufcSU"
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


def to_json(value: object) -> tuple[Any, dict[str, np.ndarray]]:
    """Converts a value to JSON data and arrays.

    Example:

    >>> to_json({"steps": 3, "mean": np.zeros(2)})
    ({'steps': 3, 'mean': {'$array': '0'}}, {'0': array([0., 0.])})
    """
    arrays: dict[str, np.ndarray] = {}
    return _taken_apart(value, arrays), arrays


def from_json(value: object, arrays: Mapping[str, np.ndarray]) -> Any:
    """Restores a value converted by `to_json`."""
    if isinstance(value, list):
        return [from_json(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key in _PUT_TOGETHER:
            return _PUT_TOGETHER[key](inner, arrays)
    return {key: from_json(each, arrays) for key, each in value.items()}


def copied(value: object) -> Any:
    """Returns a copy that shares nothing with the value."""
    taken, arrays = to_json(value)
    return from_json(
        taken, {name: each.copy() for name, each in arrays.items()}
    )


def _taken_apart(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Returns the JSON data of a value, and moves its arrays to a dict."""

    def inner(each: object) -> Any:
        return _taken_apart(each, arrays)

    # Exactly these types: a subclass may hold more than its value.
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    is_array = kind is np.ndarray
    if (is_array or isinstance(value, np.generic)) and (
        value.dtype.kind in _KINDS
    ):
        name = str(len(arrays))
        arrays[name] = np.asarray(value)
        return {_ARRAY if is_array else _SCALAR: name}
    if kind is list and len(value) >= _MANY:
        is_number = {*map(type, value)} in ({float}, {int})
        # Integers of more than 64 bits are objects there.
        if is_number and (array := np.array(value)).dtype != np.object_:
            return {_NUMBERS: inner(array)[_ARRAY]}
    if kind is list:
        return [inner(each) for each in value]
    if kind is tuple:
        return {_TUPLE: [inner(each) for each in value]}
    if kind is deque:
        return {_DEQUE: [value.maxlen, [inner(each) for each in value]]}
    if isinstance(value, np.random.Generator):
        return {_GENERATOR: inner(value.bit_generator.state)}
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: inner(each) for key, each in value.items()}
        return {_DICT: [[inner(k), inner(each)] for k, each in value.items()]}
    raise TypeError(
        "Expected numbers, strings, arrays, and lists, tuples, deques and "
        f"dicts of them. Received: {kind.__name__}"
    )


def _generator(state: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Returns a random generator that continues from a state."""
    state = from_json(state, arrays)
    kinds = {name: getattr(np.random, name) for name in _BIT_GENERATORS}
    bits = kinds[state["bit_generator"]]()
    bits.state = state
    return np.random.Generator(bits)


_PUT_TOGETHER: dict[str, Callable[[Any, Mapping[str, np.ndarray]], Any]] = {
    _ARRAY: lambda name, arrays: arrays[name],
    _SCALAR: lambda name, arrays: arrays[name][()],
    _NUMBERS: lambda name, arrays: arrays[name].tolist(),
    _TUPLE: lambda items, arrays: tuple(from_json(items, arrays)),
    _DEQUE: lambda value, arrays: deque(from_json(value[1], arrays), value[0]),
    _GENERATOR: _generator,
    _DICT: lambda pairs, arrays: {
        from_json(key, arrays): from_json(each, arrays) for key, each in pairs
    },
}
