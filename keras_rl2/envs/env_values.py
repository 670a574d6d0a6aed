"""Attributes of environments: as plain data and back, and when first made.

Beside plain data, a few kinds of objects are fully described by their values:
enumerations, dataclasses, and Gymnasium's running statistics. Attributes that
have not changed since the environment was made are settings of the program.
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
from collections.abc import Iterator
from typing import Any
from typing import Protocol
from typing import TypeAlias
from typing import runtime_checkable

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import VectorEnv
from gymnasium.wrappers.utils import RunningMeanStd

from keras_rl2.envs import env_processes
from keras_rl2.files import plain_data

# Keys of an object within plain data: its class, and its content.
_OBJECT, _MEMBER, _CONTENT = "$object", "$member", "content"
_DEEPEST = 100
# Items of a value above which comparing all of them takes too long.
_MOST_ITEMS = 1_000_000
# Larger arrays are not copied: their mark is enough for a comparison.
_MOST_BYTES = 1 << 24
_SIMPLE = (type(None), bool, int, float, str)
# The items of a class derived from these are no attributes of it.
_CONTAINERS = (dict, list, tuple, set, frozenset, deque, np.ndarray)
# Values without state, or without state that a step changes.
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


# An environment as Gymnasium has them, single or several in one.
GymnasiumEnv: TypeAlias = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]


@runtime_checkable
class Copyable(Protocol):
    """An environment that returns its state and restores it."""

    def get_state(self) -> Any:
        """Returns the state that later steps depend on, as plain data."""

    def set_state(self, state: object) -> None:
        """Restores a state that `get_state` returned."""


@dataclasses.dataclass(frozen=True)
class Made:
    """The value of an attribute when the environment was made.

    Attributes:
        mark: bytes, as returned by `mark`.
        value: list of the value, as returned by `copied`; empty for a large
            one.
    """

    mark: bytes
    value: list[Any]


# Attribute names and indices that lead from an environment to one within it.
Path = tuple[str | int, ...]
# By path and by the name of an attribute.
AllMade = dict[Path, dict[str, Made]]

# As returned by `as_made`, in a process that holds one environment.
made_here: AllMade = {}


def as_made(env: GymnasiumEnv) -> AllMade:
    """Returns the values of an environment's attributes, for comparison.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv` that has just been
            made, and is set up by its program.

    Returns:
        dict. Environments in other processes note their attributes there.
    """
    made: AllMade = {}
    for path, layer in layers(env):
        if isinstance(layer, AsyncVectorEnv):
            env_processes.ask(layer, _note_here)
            continue
        own = made[path] = {}
        for name, value in vars(layer).items():
            known = mark(value)
            if known is not None:
                large = getattr(value, "nbytes", 0) > _MOST_BYTES
                kept = [] if large or not known else [copied(value)]
                own[name] = Made(known, kept)
    return made


def layers(env: GymnasiumEnv, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yields an environment and those within it, with their paths.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.
        path: `Path`. The path of `env`. Defaults to `()`.

    Yields:
        A tuple `(path, environment)`. Environments in other processes, and
        those within a `Copyable`, are left out.
    """
    yield path, env
    if isinstance(env, Copyable | AsyncVectorEnv):
        return
    for name, value in vars(env).items():
        if isinstance(value, gymnasium.Env | VectorEnv):
            yield from layers(value, (*path, name))
        elif is_within(value):
            for index, each in enumerate(value):
                yield from layers(each, (*path, name, index))


def is_within(value: object) -> bool:
    """Returns whether an attribute is an environment, or a list of some.

    Args:
        value: Any.
    """
    if isinstance(value, list | tuple):
        return bool(value) and all(
            isinstance(each, gymnasium.Env | VectorEnv) for each in value
        )
    return isinstance(value, gymnasium.Env | VectorEnv)


def taken(value: Any, depth: int = 0) -> Any:
    """Returns a value with its objects as plain data.

    Args:
        value: Any.
        depth: int. Levels above it. Defaults to `0`.

    Returns:
        Plain data for `given`, not copied. Objects of unknown kinds stay as
        they are.

    Raises:
        TypeError: If it contains itself, or an object of a class that another
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
        # Combined members have no name.
        combined = isinstance(value, enum.Flag)
        content = value.value if combined else value.name
        return {_MEMBER: _path(kind), _CONTENT: content}
    if not _is_known(kind):
        return value
    content = dict(getattr(value, "__dict__", {}))
    if dataclasses.is_dataclass(value):
        # `__dict__` lacks attributes in slots.
        content |= {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(value)
            if hasattr(value, field.name)
        }
    return {_OBJECT: _path(kind), _CONTENT: inner(content)}


def given(value: Any) -> Any:
    """Returns the value that `taken` turned into plain data.

    No code of the objects' classes is run.

    Args:
        value: Plain data, as returned by `taken`.

    Raises:
        ValueError: If it names a class that is missing, or of another kind.
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
            # Some classes are frozen.
            object.__setattr__(made, name, each)
        return made
    return {key: given(each) for key, each in value.items()}


def mark(value: Any) -> bytes | None:
    """Returns a digest that is equal for equal values only.

    Args:
        value: Any.

    Returns:
        bytes; empty if the value has too many items to compare; None if it
        cannot be saved.
    """
    simple, count = _looked_through(value)
    if count > _MOST_ITEMS:
        return b""
    if simple:
        # Forty times as fast as the general case. In version 2, there are no
        # references, which depend on other holders of the same objects.
        try:
            whole = marshal.dumps(value, 2)
            return hashlib.blake2b(whole, digest_size=16).digest()
        except ValueError:
            # The value is nested too deep.
            return None
    try:
        text, arrays = plain_data.to_json(taken(value))
    except TypeError:
        return None
    digest = hashlib.blake2b(json.dumps(text).encode(), digest_size=16)
    for array in arrays.values():
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def is_kept(value: object) -> bool:
    """Returns whether a value can be saved, examining all of it.

    Args:
        value: Any.
    """
    try:
        return plain_data.is_plain(taken(value))
    except TypeError:
        return False


def copied(value: Any) -> Any:
    """Returns a copy of a value, in the form of `taken`.

    Args:
        value: Any that has a `mark`.
    """
    if _looked_through(value)[0]:
        return marshal.loads(marshal.dumps(value, 2))
    return plain_data.copied(taken(value))


def is_inert(value: Any) -> bool:
    """Returns whether a value has no hidden state that a step might change.

    Args:
        value: Any.
    """
    if isinstance(value, _INERT):
        return True
    if not isinstance(value, dict | list | tuple):
        return bool(mark(value))
    within = value.values() if isinstance(value, dict) else value
    try:
        # Not the mark of the whole, which looks at all that is within: at each
        # level of a value that contains itself that would take a minute.
        return all(map(is_inert, within))
    except RecursionError:
        return False


def replaced(before: object, value: object) -> Any:
    """Returns the object to assign to an attribute for a new value.

    Random generators and statistics are updated in place, since other objects
    may hold them too.

    Args:
        before: The present value of the attribute.
        value: The new value.
    """
    if isinstance(before, RunningMeanStd) and type(before) is type(value):
        vars(before).update(vars(value))
        return before
    if isinstance(before, np.random.Generator) and isinstance(
        value, np.random.Generator
    ):
        # The bit generators may be of different kinds.
        with contextlib.suppress(ValueError, TypeError):
            before.bit_generator.state = value.bit_generator.state
            return before
    return value


def _is_known(kind: type) -> bool:
    """Returns whether objects of a class are described by their values."""
    return kind is RunningMeanStd or (
        dataclasses.is_dataclass(kind)
        and not issubclass(kind, (gymnasium.Env, *_INERT, *_CONTAINERS))
    )


def _path(kind: type) -> str:
    """Returns the module and name of a class."""
    path = f"{kind.__module__}:{kind.__qualname__}"
    try:
        found = _found(path)
    except ValueError as error:
        raise TypeError(str(error)) from error
    if found is not kind:
        raise TypeError(f"Expected one class of this name. Received: {path}")
    return path


def _found(path: str) -> Any:
    """Returns a class of a module that is already imported."""
    module, _, names = path.partition(":")
    try:
        kind: Any = sys.modules[module]
        for name in names.split("."):
            kind = vars(kind)[name]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"Expected a class that is defined. Received: {path}"
        ) from error
    if not isinstance(kind, type) or not (
        _is_known(kind) or issubclass(kind, enum.Enum)
    ):
        raise ValueError(
            f"Expected a dataclass or an enumeration. Received: {path}"
        )
    return kind


def _looked_through(value: Any) -> tuple[bool, int]:
    """Returns whether a value has simple types only, and its item count.

    Counting stops above `_MOST_ITEMS`.
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


def _note_here(env: GymnasiumEnv) -> None:
    """Notes the attributes of the environment of this process."""
    made_here.clear()
    made_here.update(as_made(env))
