"""The state of environments: the changes since they were made.

Gymnasium has no interface for it. Either an environment has methods of its
own, `get_state()` and `set_state(state)`; or its future depends only on
attributes that are plain data or known values, on a MuJoCo simulation, and on
the random numbers of its spaces, as in all simulations of Gymnasium but those
of Box2D. Attributes that have not changed are settings of the program: they are
neither saved nor restored.
"""

import copy
import io
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector import VectorEnv

from keras_rl2.envs import env_processes
from keras_rl2.envs import env_values
from keras_rl2.envs.env_values import AllMade
from keras_rl2.envs.env_values import Copyable
from keras_rl2.envs.env_values import GymnasiumEnv
from keras_rl2.envs.env_values import Made
from keras_rl2.envs.env_values import Path
from keras_rl2.files import plain_data

_ATTRIBUTES, _METHODS, _PROCESSES = "attributes", "own", "processes"
# Spaces of a class may be shared by all its environments.
_OF_CLASSES = ("action_space", "observation_space")
_BATCHED = (*_OF_CLASSES, "_action_space", "_observation_space")
# MuJoCo's results for constraints: their number varies from step to step.
_OF_CONSTRAINTS = ("efc_", "efm_", "iefc_", "ifrc_", "iacc")


def read(env: GymnasiumEnv, made: AllMade | None = None) -> dict[str, Any]:
    """Returns the state of an environment as far as it can be saved.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.
        made: dict, as returned by `env_values.as_made`. Attributes that have
            not changed since are left out. Defaults to `None`: none is.

    Returns:
        dict of plain data, copied.
    """
    taken: dict[str, Any] = plain_data.copied(
        env_values.taken(_read(env, made or {}, ()))
    )
    return taken


def write(
    env: GymnasiumEnv, state: dict[str, Any], made: AllMade | None = None
) -> None:
    """Restores a state that `read` returned.

    Args:
        env: An environment made in the same way as that of `read`.
        state: dict, as returned by `read`.
        made: dict, as returned by `env_values.as_made` for this environment.
            Attributes that the state leaves out are reset to these values.
            Defaults to `None`: they stay.

    Raises:
        ValueError: If the state belongs to another kind of environment.
    """
    put_back(env, made or {})
    _write(env, plain_data.copied(state))


def put_back(env: GymnasiumEnv, made: AllMade) -> None:
    """Resets attributes to their values when the environment was made.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.
        made: dict, as returned by `env_values.as_made` for this environment.
    """
    for path, layer in env_values.layers(env):
        if isinstance(layer, AsyncVectorEnv):
            env_processes.ask(layer, _put_back_here)
            continue
        own = vars(layer)
        for name, before in made.get(path, {}).items():
            mark = env_values.mark(own.get(name))
            if before.value and mark not in (None, before.mark):
                [value] = env_values.given(plain_data.copied(before.value))
                own[name] = env_values.replaced(own.get(name), value)


def kinds(env: GymnasiumEnv) -> list[Any]:
    """Returns the names of the classes of an environment and of its wrappers.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.
    """
    return [
        [*path, type(layer).__name__] for path, layer in env_values.layers(env)
    ]


def has_own_methods(env: GymnasiumEnv) -> bool:
    """Returns whether an environment has methods for its state.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.
    """
    inner = env.unwrapped
    if isinstance(inner, AsyncVectorEnv):
        return all(env_processes.ask(inner, has_own_methods))
    if isinstance(inner, SyncVectorEnv):
        return all(map(has_own_methods, inner.envs))
    return isinstance(inner, Copyable)


def all_spaces(env: GymnasiumEnv) -> list[gymnasium.Space[Any]]:
    """Returns the spaces of an environment and of those within it.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`. Environments in
            other processes are left out.
    """
    return [
        space
        for _, layer in env_values.layers(env)
        for space in _own_spaces(layer).values()
    ]


def not_kept(env: GymnasiumEnv) -> list[str]:
    """Returns the names of the attributes that cannot be saved.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.

    Returns:
        list of str, each once.
    """
    names: dict[str, None] = {}
    for _, layer in env_values.layers(env):
        if isinstance(layer, AsyncVectorEnv):
            for each in env_processes.ask(layer, not_kept):
                names.update(dict.fromkeys(each))
        elif not isinstance(layer, Copyable):
            for name, value in vars(layer).items():
                if not (
                    env_values.is_within(value)
                    or _is_simulation(value)
                    or env_values.is_inert(value)
                ):
                    names[f"{type(layer).__name__}.{name}"] = None
    return [*names]


def writes_files(env: GymnasiumEnv) -> bool:
    """Returns whether another environment like it would write to its files.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.
    """
    for _, layer in env_values.layers(env):
        if isinstance(layer, AsyncVectorEnv):
            if any(env_processes.ask(layer, writes_files)):
                return True
        # `gymnasium.wrappers.RecordVideo`, or any other open file.
        elif hasattr(layer, "video_folder") or any(
            isinstance(value, io.IOBase) for value in vars(layer).values()
        ):
            return True
    return False


def read_draws(space: gymnasium.Space[Any]) -> list[Any]:
    """Returns the random states of a space and of the spaces within it.

    Args:
        space: `gymnasium.Space`.

    Returns:
        list of plain data, copied; None for a space that was neither seeded
        nor sampled.
    """
    return [
        copy.deepcopy(each.np_random.bit_generator.state)
        # `np_random` makes one, which would differ from process to process.
        if vars(each).get("_np_random") is not None
        else None
        for each in _with_inner_spaces(space)
    ]


def write_draws(space: gymnasium.Space[Any], states: list[Any]) -> None:
    """Restores the random states of a space and of the spaces within it.

    Args:
        space: `gymnasium.Space`.
        states: list, as returned by `read_draws`.

    Raises:
        ValueError: If they belong to another space.
    """
    for each, state in zip(_with_inner_spaces(space), states, strict=True):
        if state is not None:
            each.np_random.bit_generator.state = state


def read_simulation(model: Any, data: Any) -> dict[str, Any]:
    """Returns the state of a MuJoCo simulation.

    Args:
        model: `mujoco.MjModel`.
        data: `mujoco.MjData`.

    Returns:
        dict of arrays: the state by MuJoCo's definition, and the results that
        MuJoCo computed from it. Between two steps, the results belong to the
        moment before the last integration, and environments read them: they
        cannot be computed again.
    """
    mujoco: Any = sys.modules["mujoco"]
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return {"state": state, "computed": _computed(data)}


def write_simulation(model: Any, data: Any, state: Any) -> None:
    """Restores the state of a MuJoCo simulation.

    Args:
        model: `mujoco.MjModel`.
        data: `mujoco.MjData`.
        state: dict, as returned by `read_simulation`; or an array, in states
            of earlier releases.
    """
    mujoco: Any = sys.modules["mujoco"]
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    whole = isinstance(state, dict)
    array = state["state"] if whole else state
    mujoco.mj_setState(model, data, array, kind)
    mujoco.mj_forward(model, data)
    # The computation has changed the warm start of the solver.
    mujoco.mj_setState(model, data, array, kind)
    for name, computed in _computed(data).items() if whole else ():
        before = state["computed"].get(name)
        if before is not None and before.shape == computed.shape:
            computed[...] = before


def _read(env: GymnasiumEnv, made: AllMade, path: Path) -> Any:
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
        if isinstance(value, gymnasium.Env | VectorEnv):
            within[name] = _read(value, made, (*path, name))
        elif env_values.is_within(value):
            within[name] = [
                _read(each, made, (*path, name, index))
                for index, each in enumerate(value)
            ]
        elif _is_simulation(value):
            simulated[name] = read_simulation(_model_of(env, value), value)
        elif (same := _same_generator(attributes, value)) is not None:
            shared[name] = same
        elif _has_changed(value, own.get(name)):
            attributes[name] = value
    return {
        "kind": type(env).__name__,
        _ATTRIBUTES: attributes,
        "shared": shared,
        "drawn": {
            name: read_draws(space) for name, space in _own_spaces(env).items()
        },
        "within": within,
        "simulated": simulated,
    }


def _write(env: Any, state: dict[str, Any]) -> None:
    """Restores the states of an environment and of those within it."""
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
        write_simulation(_model_of(env, simulation), simulation, inner)
    own = vars(env)
    for name, value in env_values.given(state[_ATTRIBUTES]).items():
        own[name] = env_values.replaced(own.get(name), value)
    # States of earlier releases have none.
    for name, same in state.get("shared", {}).items():
        own[name] = own[same]
    spaces = _own_spaces(env)
    for name, drawn in state.get("drawn", {}).items():
        write_draws(spaces[name], drawn)


def _model_of(env: Any, simulation: Any) -> Any:
    """Returns the MuJoCo model of a simulation."""
    # Simulations of earlier MuJoCo releases lack it; Gymnasium's environments
    # have it.
    model = getattr(simulation, "model", None)
    return env.model if model is None else model


def _same_generator(attributes: dict[str, Any], value: object) -> str | None:
    """Returns the name of an attribute with the same random generator."""
    if not isinstance(value, np.random.Generator):
        return None
    return next(
        (name for name in attributes if attributes[name] is value), None
    )


def _has_changed(value: object, made: Made | None) -> bool:
    """Returns whether an attribute can be saved, and has changed."""
    mark = env_values.mark(value)
    if not mark:
        return mark is not None and env_values.is_kept(value)
    # The state of a random generator is no setting.
    drawn = isinstance(value, np.random.Generator)
    return made is None or drawn or mark != made.mark


def _read_here(env: GymnasiumEnv) -> dict[str, Any]:
    """Returns the state of the environment of this process."""
    return read(env, env_values.made_here)


def _write_here(env: GymnasiumEnv, state: dict[str, Any]) -> None:
    """Restores the state of the environment of this process."""
    write(env, state, env_values.made_here)


def _put_back_here(env: GymnasiumEnv) -> None:
    """Resets the attributes of the environment of this process."""
    put_back(env, env_values.made_here)


def _own_spaces(env: GymnasiumEnv) -> dict[str, gymnasium.Space[Any]]:
    """Returns the spaces of an environment, keyed by attribute.

    Spaces of the environments within it are left out, and so are batched
    spaces, which are never seeded.
    """
    batched = _BATCHED if isinstance(env, VectorEnv) else ()
    of_class = {name: getattr(type(env), name, None) for name in _OF_CLASSES}
    return {
        name: value
        for name, value in {**of_class, **vars(env)}.items()
        if isinstance(value, gymnasium.Space) and name not in batched
    }


def _with_inner_spaces(
    space: gymnasium.Space[Any],
) -> Iterator[gymnasium.Space[Any]]:
    """Yields a space, and the spaces that it consists of."""
    yield space
    for value in vars(space).values():
        if isinstance(value, dict):
            value = value.values()
        elif not isinstance(value, list | tuple):
            value = (value,)
        for each in value:
            if isinstance(each, gymnasium.Space):
                yield from _with_inner_spaces(each)


def _is_simulation(value: object) -> bool:
    """Returns whether a value is a MuJoCo simulation."""
    mujoco: Any = sys.modules.get("mujoco")
    return mujoco is not None and isinstance(value, mujoco.MjData)


def _computed(data: Any) -> dict[str, np.ndarray]:
    """Returns the results of a simulation that exist at any time."""
    named = {
        name: getattr(data, name)
        for name in dir(data)
        if not name.startswith(("_", *_OF_CONSTRAINTS))
    }
    return {
        name: value
        for name, value in named.items()
        if isinstance(value, np.ndarray) and value.dtype == np.float64
    }
