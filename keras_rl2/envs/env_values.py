"""Values of environments' attributes, as plain data and back.

Beside plain data there are a few kinds of objects that are no more than their
values: enumerations, dataclasses, and Gymnasium's running statistics.
"""

import contextlib
import dataclasses
import enum
import functools
import hashlib
import json
import marshal
import sys
import types
from collections import deque
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers.utils import RunningMeanStd

from keras_rl2.files import plain_data

# How an object is held in plain data: its class, and what is in it.
_OBJECT, _MEMBER, _CONTENT = "$object", "$member", "content"
_DEEPEST = 100
# Items in a value beyond which it takes too long to look at all of them.
_MOST_ITEMS = 1_000_000
_SIMPLE = (type(None), bool, int, float, str)
# What is in a class derived from these is no attribute of it.
_CONTAINERS = (dict, list, tuple, set, frozenset, deque, np.ndarray)
# What has no state, or none that a step changes.
_INERT = (
    gymnasium.Space,
    EnvSpec,
    enum.Enum,
    type,
    functools.partial,
    types.ModuleType,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    np.ufunc,
)


def taken(value: Any, depth: int = 0) -> Any:
    """Returns a value with its objects as plain data.

    Args:
        value: Any.
        depth: int. Levels above it. Defaults to `0`.

    Returns:
        What `given` takes; not copied. What is of no known kind is left as it
        is.

    Raises:
        TypeError: If it holds itself, or an object of a class that another
            process would not find.

    Example:

    >>> statistics = taken([RunningMeanStd(shape=(2,))])
    >>> statistics[0]["content"]["mean"]
    array([0., 0.])
    """
    if depth > _DEEPEST:
        raise TypeError(f"Expected a tree of at most {_DEEPEST} levels.")
    inner = functools.partial(taken, depth=depth + 1)
    kind = type(value)
    if kind in (list, tuple):
        return kind(map(inner, value))
    if kind is deque:
        return deque(map(inner, value), value.maxlen)
    if kind is dict:
        return {key: inner(each) for key, each in value.items()}
    if isinstance(value, enum.Enum):
        # Members that are combined have no name.
        combined = isinstance(value, enum.Flag)
        content = value.value if combined else value.name
        return {_MEMBER: _path(kind), _CONTENT: content}
    if not _is_known(kind):
        return value
    content = dict(getattr(value, "__dict__", {}))
    if dataclasses.is_dataclass(value):
        # Those with slots are not in there.
        content |= {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(value)
            if hasattr(value, field.name)
        }
    return {_OBJECT: _path(kind), _CONTENT: inner(content)}


def given(value: Any) -> Any:
    """Returns what `taken` was given.

    No code of the objects' classes is run.

    Args:
        value: As returned by `taken`.

    Raises:
        ValueError: If it names a class that is not there, or of another kind.
    """
    kind = type(value)
    if kind in (list, tuple):
        return kind(map(given, value))
    if kind is deque:
        return deque(map(given, value), value.maxlen)
    if kind is not dict:
        return value
    if value.keys() == {_MEMBER, _CONTENT}:
        found, content = _found(value[_MEMBER]), value[_CONTENT]
        return found[content] if isinstance(content, str) else found(content)
    if value.keys() == {_OBJECT, _CONTENT}:
        made = object.__new__(_found(value[_OBJECT]))
        for name, each in given(value[_CONTENT]).items():
            # Some are frozen.
            object.__setattr__(made, name, each)
        return made
    return {key: given(each) for key, each in value.items()}


def mark(value: Any) -> bytes | None:
    """Returns what two values have in common only if they are the same.

    Args:
        value: Any.

    Returns:
        bytes; empty of a value with so many items that it would take long;
        None of one that cannot be saved.
    """
    simple, count = _looked_through(value)
    if count > _MOST_ITEMS:
        return b""
    if simple:
        # Forty times as fast as what follows; and without references, which
        # would say who else holds the same objects.
        try:
            return _digest(marshal.dumps(value, 2))
        except ValueError:
            # Nested too deep.
            return None
    try:
        text, arrays = plain_data.to_json(taken(value))
    except TypeError:
        return None
    parts: list[Any] = [json.dumps(text).encode()]
    for array in arrays.values():
        parts.append(f"{array.dtype.str}{array.shape}".encode())
        parts.append(np.ascontiguousarray(array))
    return _digest(*parts)


def is_kept(value: Any) -> bool:
    """Says whether a value can be saved, having looked at all of it.

    Args:
        value: Any.
    """
    try:
        return plain_data.is_plain(taken(value))
    except TypeError:
        return False


def copied(value: Any) -> Any:
    """Returns a copy of a value, as `taken` gives it.

    Args:
        value: One that has a `mark`.
    """
    if _looked_through(value)[0]:
        return marshal.loads(marshal.dumps(value, 2))
    return plain_data.copied(taken(value))


def is_inert(value: Any) -> bool:
    """Says whether there is nothing in a value that a step might change.

    Args:
        value: Any.
    """
    if isinstance(value, _INERT) or mark(value):
        return True
    within = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list | tuple):
        return False
    try:
        return all(map(is_inert, within))
    except RecursionError:
        return False


def replaced(before: Any, value: Any) -> Any:
    """Returns what takes the place of an attribute's value.

    Random generators and statistics stay the objects that they are: others
    may hold them too.

    Args:
        before: What the attribute is.
        value: What it is to be.
    """
    if isinstance(before, RunningMeanStd) and type(before) is type(value):
        vars(before).update(vars(value))
        return before
    if isinstance(before, np.random.Generator) and isinstance(
        value, np.random.Generator
    ):
        # Of another kind otherwise.
        with contextlib.suppress(ValueError, TypeError):
            before.bit_generator.state = value.bit_generator.state
            return before
    return value


def _is_known(kind: type) -> bool:
    """Whether objects of a class are their values."""
    return kind is RunningMeanStd or (
        dataclasses.is_dataclass(kind)
        and not issubclass(kind, (gymnasium.Env, *_INERT, *_CONTAINERS))
    )


def _path(kind: type) -> str:
    """Returns where a class is found."""
    path = f"{kind.__module__}:{kind.__qualname__}"
    try:
        found = _found(path)
    except ValueError as error:
        raise TypeError(str(error)) from error
    if found is not kind:
        raise TypeError(f"Expected one class of this name. Received: {path}")
    return path


def _found(path: str) -> Any:
    """Returns a class, which is not imported for it."""
    module, _, names = path.partition(":")
    try:
        kind: Any = sys.modules[module]
        for name in names.split("."):
            kind = vars(kind)[name]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"Expected a class that is there. Received: {path}"
        ) from error
    if not isinstance(kind, type) or not (
        _is_known(kind) or issubclass(kind, enum.Enum)
    ):
        raise ValueError(
            f"Expected a dataclass or an enumeration. Received: {path}"
        )
    return kind


def _looked_through(value: Any) -> tuple[bool, int]:
    """Returns whether a value is of Python's simplest types, and its items.

    Those of a value with very many are not all looked at.
    """
    left, count, simple = [value], 0, True
    while left and count <= _MOST_ITEMS:
        each = left.pop()
        kind = type(each)
        if kind in _SIMPLE:
            continue
        if kind is dict:
            left.extend(each)
            each = each.values()
        elif kind not in (list, tuple):
            simple = False
            if kind not in (deque, set, frozenset):
                continue
        count += len(each)
        left.extend(each)
    return simple, count


def _digest(*parts: Any) -> bytes:
    """Returns a short name of bytes and of arrays without gaps."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()
