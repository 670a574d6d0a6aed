"""The state of environments: what has changed since they were made.

Gymnasium has no interface for it. An environment has methods of its own,
`get_state()` and `set_state(state)`; or all that its future depends on lies in
attributes that are plain data or known values, or MuJoCo's, as it does in
Gymnasium's own simulations but those of Box2D. What has not changed is a
setting: it is the program's, and neither saved nor put back.
"""

import dataclasses
import io
from collections.abc import Iterator
from typing import Any
from typing import Protocol
from typing import runtime_checkable

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector import VectorEnv

from keras_rl2.envs import env_processes
from keras_rl2.envs import env_values
from keras_rl2.envs import mujoco_state
from keras_rl2.envs import space_draws
from keras_rl2.files import plain_data

_ATTRIBUTES, _METHODS, _PROCESSES = "attributes", "own", "processes"
# Larger arrays are not copied to be compared with, which their mark is for.
_MOST_BYTES = 1 << 24


@runtime_checkable
class Copyable(Protocol):
    """An environment that gives its state away and takes it back."""

    def get_state(self) -> Any:
        """Returns all that later steps depend on, as plain data."""

    def set_state(self, state: Any) -> None:
        """Takes back what `get_state` gave."""


@dataclasses.dataclass(frozen=True)
class Made:
    """What an attribute was when the environment was made.

    Attributes:
        mark: bytes. As of `env_values.mark`.
        value: list of the value, as of `env_values.copied`; of nothing where
            it is a large one.
    """

    mark: bytes
    value: list[Any]


# The names that lead from an environment to one within it.
Path = tuple[str | int, ...]
# By path and by the name of an attribute.
AllMade = dict[Path, dict[str, Made]]

# What the environment of this process was, where it is that of one.
_made_here: AllMade = {}


def as_made(env: Any) -> AllMade:
    """Notes what the attributes of an environment are.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv` that has just been
            made, and is as its program wants it to be.

    Returns:
        dict. What is in other processes is noted there.
    """
    made: AllMade = {}
    for path, layer in _layers(env):
        if isinstance(layer, AsyncVectorEnv):
            env_processes.ask(layer, _note_here)
        else:
            made[path] = {
                name: _noted(mark, value)
                for name, value in vars(layer).items()
                if (mark := env_values.mark(value)) is not None
            }
    return made


def read(env: Any, made: AllMade | None = None) -> dict[str, Any]:
    """Returns what is known of an environment's state.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.
        made: As returned by `as_made`: what is still the same is left out.
            Defaults to `None`: nothing is.

    Returns:
        dict of plain data, copied.
    """
    taken: dict[str, Any] = plain_data.copied(
        env_values.taken(_read(env, made or {}, ()))
    )
    return taken


def write(env: Any, state: dict[str, Any], made: AllMade | None = None) -> None:
    """Gives an environment the state that `read` returned.

    Args:
        env: As of `read`, one made in the same way.
        state: dict, as returned by `read`.
        made: As returned by `as_made` of this environment: what the state says
            nothing of becomes what it was then. Defaults to `None`: it stays.

    Raises:
        ValueError: If it is that of another kind of environment.
    """
    put_back(env, made or {})
    _write(env, plain_data.copied(state))


def put_back(env: Any, made: AllMade) -> None:
    """Has attributes be what they were when an environment was made.

    Args:
        env: As of `read`.
        made: As returned by `as_made` of this environment.
    """
    for path, layer in _layers(env):
        if isinstance(layer, AsyncVectorEnv):
            env_processes.ask(layer, _put_back_here)
            continue
        own = vars(layer)
        for name, before in made.get(path, {}).items():
            mark = env_values.mark(own.get(name))
            if before.value and mark not in (None, before.mark):
                [value] = env_values.given(plain_data.copied(before.value))
                own[name] = env_values.replaced(own.get(name), value)


def kinds(env: Any) -> list[Any]:
    """Returns the names of the classes of an environment and of its wrappers.

    Args:
        env: As of `read`.
    """
    return [[*path, type(layer).__name__] for path, layer in _layers(env)]


def has_own_methods(env: Any) -> bool:
    """Says whether an environment gives its state itself.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.
    """
    inner = env.unwrapped
    if isinstance(inner, AsyncVectorEnv):
        return all(env_processes.ask(inner, has_own_methods))
    if isinstance(inner, SyncVectorEnv):
        return all(map(has_own_methods, inner.envs))
    return isinstance(inner, Copyable)


def all_spaces(env: Any) -> list[gymnasium.Space[Any]]:
    """Returns the spaces of an environment and of those within it.

    Args:
        env: As of `read`. What is in other processes is left out.
    """
    return [
        space
        for _, layer in _layers(env)
        for space in space_draws.of(layer).values()
    ]


def not_kept(env: Any) -> list[str]:
    """Names the attributes that cannot be saved.

    Args:
        env: As of `read`.

    Returns:
        list of str, each once.
    """
    names: dict[str, None] = {}
    for _, layer in _layers(env):
        if isinstance(layer, AsyncVectorEnv):
            for each in env_processes.ask(layer, not_kept):
                names.update(dict.fromkeys(each))
        elif not isinstance(layer, Copyable):
            for name, value in vars(layer).items():
                if not (
                    _is_within(value)
                    or mujoco_state.is_simulation(value)
                    or env_values.is_inert(value)
                ):
                    names[f"{type(layer).__name__}.{name}"] = None
    return [*names]


def writes_files(env: Any) -> bool:
    """Says whether another one like it would write to the same files.

    Args:
        env: As of `read`.
    """
    for _, layer in _layers(env):
        if isinstance(layer, AsyncVectorEnv):
            if any(env_processes.ask(layer, writes_files)):
                return True
        # That of `gymnasium.wrappers.RecordVideo`, or any other file.
        elif hasattr(layer, "video_folder") or any(
            isinstance(value, io.IOBase) for value in vars(layer).values()
        ):
            return True
    return False


def _layers(env: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yields an environment and those within it, with their paths."""
    yield path, env
    if isinstance(env, Copyable | AsyncVectorEnv):
        return
    for name, value in vars(env).items():
        if _is_env(value):
            yield from _layers(value, (*path, name))
        elif _is_within(value):
            for index, each in enumerate(value):
                yield from _layers(each, (*path, name, index))


def _read(env: Any, made: AllMade, path: Path) -> Any:
    """Returns the state of an environment and of those within it."""
    if isinstance(env, Copyable):
        return {_METHODS: env.get_state()}
    if isinstance(env, AsyncVectorEnv):
        states = env_processes.ask(env, _read_here)
        return {"kind": type(env).__name__, _PROCESSES: states}
    attributes: dict[str, Any] = {}
    shared: dict[str, str] = {}
    within: dict[str, Any] = {}
    simulated: dict[str, Any] = {}
    own = made.get(path, {})
    for name, value in vars(env).items():
        if _is_env(value):
            within[name] = _read(value, made, (*path, name))
        elif _is_within(value):
            within[name] = [
                _read(each, made, (*path, name, index))
                for index, each in enumerate(value)
            ]
        elif mujoco_state.is_simulation(value):
            simulated[name] = mujoco_state.read(_model_of(env, value), value)
        elif (same := _same_generator(attributes, value)) is not None:
            shared[name] = same
        elif _has_changed(value, own.get(name)):
            attributes[name] = value
    return {
        "kind": type(env).__name__,
        _ATTRIBUTES: attributes,
        "shared": shared,
        "drawn": {
            name: space_draws.read(space)
            for name, space in space_draws.of(env).items()
        },
        "within": within,
        "simulated": simulated,
    }


def _write(env: Any, state: dict[str, Any]) -> None:
    """Gives their states to an environment and to those within it."""
    if _METHODS in state:
        env.set_state(env_values.given(state[_METHODS]))
        return
    if state["kind"] != type(env).__name__:
        raise ValueError(
            f"Expected the state of a {type(env).__name__}. "
            f"Received: that of a {state['kind']}"
        )
    if _PROCESSES in state:
        states = state[_PROCESSES]
        env_processes.ask(env, _write_here, [(each,) for each in states])
        return
    for name, inner in state["within"].items():
        value = getattr(env, name)
        if isinstance(inner, list):
            for each, its in zip(value, inner, strict=True):
                _write(each, its)
        else:
            _write(value, inner)
    for name, inner in state["simulated"].items():
        simulation = getattr(env, name)
        mujoco_state.write(_model_of(env, simulation), simulation, inner)
    own = vars(env)
    for name, value in env_values.given(state[_ATTRIBUTES]).items():
        own[name] = env_values.replaced(own.get(name), value)
    # States of earlier releases have none.
    for name, same in state.get("shared", {}).items():
        own[name] = own[same]
    spaces = space_draws.of(env)
    for name, drawn in state.get("drawn", {}).items():
        space_draws.write(spaces[name], drawn)


def _model_of(env: Any, simulation: Any) -> Any:
    """Returns the model of MuJoCo that a simulation is of."""
    # Earlier releases do not tell it: Gymnasium's environments do.
    model = getattr(simulation, "model", None)
    return env.model if model is None else model


def _same_generator(attributes: dict[str, Any], value: Any) -> str | None:
    """Returns the attribute that is the same random generator, if one is."""
    if not isinstance(value, np.random.Generator):
        return None
    return next(
        (name for name in attributes if attributes[name] is value), None
    )


def _noted(mark: bytes, value: Any) -> Made:
    """Notes what an attribute is."""
    large = getattr(value, "nbytes", 0) > _MOST_BYTES
    return Made(mark, [] if large or not mark else [env_values.copied(value)])


def _has_changed(value: Any, made: Made | None) -> bool:
    """Whether an attribute can be saved, and is not what it was when made."""
    mark = env_values.mark(value)
    if not mark:
        return mark is not None and env_values.is_kept(value)
    # What is drawn from a generator is no setting.
    drawn = isinstance(value, np.random.Generator)
    return made is None or drawn or mark != made.mark


# What is called in processes.


def _note_here(env: Any) -> None:
    """Notes what the environment of this process is."""
    _made_here.clear()
    _made_here.update(as_made(env))


def _read_here(env: Any) -> dict[str, Any]:
    """Returns the state of the environment of this process."""
    return read(env, _made_here)


def _write_here(env: Any, state: dict[str, Any]) -> None:
    """Gives the environment of this process its state."""
    write(env, state, _made_here)


def _put_back_here(env: Any) -> None:
    """Has the environment of this process be what it was."""
    put_back(env, _made_here)


def _is_env(value: Any) -> bool:
    """Whether a value is an environment, or several of them together."""
    return isinstance(value, gymnasium.Env | VectorEnv)


def _is_within(value: Any) -> bool:
    """Whether a value is an environment, or a list of some."""
    return _is_env(value) or (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(map(_is_env, value))
    )
