"""Environments by their ids, and clear errors for unknown ones."""

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import gymnasium

from keras_rl2.cli import errors
from keras_rl2.envs import make_env
from keras_rl2.envs.making import find_spec

# Extras of Gymnasium, by the folder that its environments live in.
_EXTRAS = {
    "box2d": "box2d",
    "classic_control": "classic-control",
    "mujoco": "mujoco",
    "phys2d": "jax",
    "tabular": "jax",
    "toy_text": "toy-text",
}


def require(env_id: str) -> None:
    """Checks that an environment is registered.

    Args:
        env_id: str. Its id; `module:id` imports the module first, which may
            lie in the working directory, and `module:Class` takes a class of
            it that is not registered.

    Raises:
        CommandError: If there is no such id; names the nearest ones.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        _import(module)
    elif name.startswith("ALE/"):
        errors.require_modules(env_id, "pip install ale-py", "ale_py")
        importlib.import_module("ale_py")
    if find_spec(env_id) is None:
        raise errors.CommandError(
            f"unknown environment {name!r}, nearest: "
            f"{errors.nearest(name, gymnasium.registry)} (of your own: "
            "module:id or module:Class)"
        )


def graph_env_class(env_id: str) -> Any:
    """Returns the class of an environment that runs within a graph.

    Args:
        env_id: str. `module:Class`, where the class is a `GraphEnv`.

    Returns:
        The class; None for every other environment.

    Raises:
        CommandError: If there is no such module.
    """
    module, _, name = env_id.rpartition(":")
    if not module:
        return None
    _import(module)
    found = getattr(sys.modules[module], name, None)
    # Nothing but a module with such a class has imported it.
    bases = getattr(found, "__mro__", ())
    is_graph = any(base.__name__ == "GraphEnv" for base in bases)
    return found if is_graph else None


def make(
    env_id: str,
    env_kwargs: Mapping[str, Any] | None = None,
    render_mode: str | None = None,
) -> Any:
    """Makes a single environment, as training sees it.

    Args:
        env_id: str. Its id, see `require`.
        env_kwargs: dict or None. Arguments of the environment. Defaults to
            `None`.
        render_mode: str or None. See `gymnasium.make`. Defaults to `None`.

    Returns:
        `gymnasium.Env`.

    Raises:
        CommandError: If it does not exist, or needs a missing package.
        ValueError: If it does not take the arguments.
    """
    require(env_id)
    try:
        return make_env(env_id, env_kwargs=env_kwargs, render_mode=render_mode)
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        raise errors.CommandError(_how_to_install(env_id, error)) from error


def render_modes(
    env_id: str, env_kwargs: Mapping[str, Any] | None = None
) -> list[str]:
    """Returns the ways in which an environment can be drawn.

    Args:
        env_id: str. Its id, see `require`.
        env_kwargs: dict or None. Arguments of the environment. Defaults to
            `None`.

    Returns:
        list of str: `"rgb_array"` and the like.

    Raises:
        CommandError: If it does not exist, or needs a missing package.
    """
    with make(env_id, env_kwargs) as env:
        return list(env.metadata.get("render_modes") or [])


def _import(module: str) -> None:
    """Imports the module that registers an environment."""
    folder = os.getcwd()
    # An installed command, other than `python -m`, does not look there.
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise errors.CommandError(
            f"no module {error.name!r}, asked for by {module!r}, on Python's "
            f"path or in {folder}"
        ) from error


def _how_to_install(env_id: str, error: Exception) -> str:
    """Returns the name of the package that an environment misses."""
    spec = find_spec(env_id)
    assert spec is not None
    home = str(spec.entry_point).removeprefix("gymnasium.envs.")
    extra = _EXTRAS.get(home.partition(".")[0])
    advice = f'pip install "gymnasium[{extra}]"' if extra else str(error)
    return f"{env_id} needs a package that is not installed: {advice}"
