"""Presets from their files, or made of the defaults of an algorithm."""

import os
from pathlib import Path
from typing import Any

from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.algorithms import algorithm_name
from keras_rl2.presets.preset import Preset
from keras_rl2.presets.preset import is_schedule
from keras_rl2.presets.preset import settings_of
from keras_rl2.presets.preset import unknown
from keras_rl2.saving.atomic_files import read_json

_FOLDER = Path(__file__).parent / "data"


def find(algorithm: str, environment: str) -> Preset:
    """Returns the preset of an algorithm for an environment.

    Args:
        algorithm: str. Its name, in upper or lower case.
        environment: str. Id of the environment.

    Returns:
        `Preset`.

    Raises:
        ValueError: If there is no such algorithm, or none of its presets is
            for the environment.

    Example:

    >>> preset = find("ppo", "CartPole-v1")
    >>> preset.algorithm, preset.total_steps, preset.dataset["horizon"]
    ('PPO', 100000, 32)
    """
    algorithm = algorithm_name(algorithm)
    path = _FOLDER / file_name(algorithm, environment)
    if not path.is_file():
        raise _no_preset(algorithm, environment)
    return read(path)


def available(environment: str | None = None) -> list[Preset]:
    """Returns all presets, sorted by environment and algorithm.

    Args:
        environment: str or None. Id of the environment that presets are asked
            for; None for all. Defaults to `None`.

    Returns:
        list of `Preset`; empty if there is none for the environment.

    Example:

    >>> [preset.algorithm for preset in available("CartPole-v1")]
    ['A2C', 'BehaviorCloning', 'CQL', 'DQN', 'PPO']
    """
    presets = [read(path) for path in _FOLDER.glob("*.json")]
    return sorted(
        (p for p in presets if environment in (None, p.environment)),
        key=lambda preset: (preset.environment, preset.algorithm),
    )


def file_name(algorithm: str, environment: str) -> str:
    """Returns the name of a preset's file.

    Args:
        algorithm: str. Name of the algorithm.
        environment: str. Id of the environment.

    Returns:
        str.

    Example:

    >>> file_name("PPO", "ALE/Pong-v5")
    'ppo-ALE_Pong-v5.json'
    """
    # An id may have a namespace, `/`, and a module that registers it, `:`.
    name = str(environment).replace("/", "_").replace(":", "_")
    return f"{algorithm.lower()}-{name}.json"


def read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a file of JSON that holds an object.

    Args:
        path: str or path.

    Returns:
        dict of plain data.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it holds something else.
    """
    # Not `arguments.check_path`, which is not of the standard library.
    if not isinstance(path, str | os.PathLike):
        raise ValueError(
            f"Expected `path` to be a path. Received: path={path!r}"
        )
    data = read_json(path)
    if not isinstance(data, dict):
        raise ValueError(f"{path}: expected a JSON object")
    return data


def read(path: str | os.PathLike[str]) -> Preset:
    """Reads a preset from a file.

    Use files that you trust: an id of the form `module:id` imports a module
    when its environment is made.

    Args:
        path: str or path. A file of JSON, with the fields of `Preset`.

    Returns:
        `Preset`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no preset.

    Example:

    >>> import json
    >>> import pathlib
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> preset = find("PPO", "CartPole-v1")
    >>> text = json.dumps(preset.to_dict())
    >>> _ = (folder / "mine.json").write_text(text)
    >>> read(folder / "mine.json") == preset
    True
    """
    data = read_object(path)
    try:
        return Preset.from_dict(data)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: {error}") from error


def _no_preset(algorithm: str, environment: str) -> ValueError:
    """Makes the error for a preset that is not there."""
    presets = available()
    ids = [p.environment for p in presets if p.algorithm == algorithm]
    if not ids:
        names = {preset.algorithm for preset in presets}
        return unknown("an algorithm with presets", algorithm, names)
    expected = f"an environment with a preset of {algorithm}"
    others = [p.algorithm for p in presets if p.environment == environment]
    if others:
        expected += f" (for {environment} there are {', '.join(others)})"
    return unknown(expected, str(environment), ids)


_TOTAL_STEPS = 100_000
_UPDATES = 100_000


def default(algorithm: str, environment: str) -> Preset:
    """Returns a preset of the algorithm's own defaults.

    Args:
        algorithm: str. Its name, in upper or lower case.
        environment: str. Id of the environment.

    Returns:
        `Preset` of 100 000 steps.

    Raises:
        ValueError: If there is no such algorithm.

    Example:

    >>> default("sac", "Pusher-v5").optimizer
    {'name': 'Adam', 'learning_rate': 0.0003}
    """
    name = algorithm_name(algorithm)
    return Preset(
        name,
        environment,
        _TOTAL_STEPS,
        optimizer=dict(ALGORITHMS[name].optimizer),
        source="Defaults of the algorithm",
    )


def on_recorded_data(preset: Preset) -> Preset:
    """Returns a preset for recorded data, as near to another as can be.

    Networks, optimizer and the settings of both datasets stay. Schedules over
    the steps of a run go, as none are taken.

    Args:
        preset: `Preset`. A preset of an off-policy algorithm.

    Returns:
        `Preset` of 100 000 updates; the same where it was for recorded data.

    Raises:
        ValueError: If the algorithm is on-policy.

    Example:

    >>> preset = Preset("DQN", "CartPole-v1", 50_000,
    ...                 dataset={"batch_size": 64, "warm_up": 1000})
    >>> changed = on_recorded_data(preset)
    >>> changed.updates, changed.total_steps, changed.dataset
    (100000, 0, {'batch_size': 64})
    """
    if preset.updates:
        return preset
    known = settings_of(preset.algorithm, offline=True)
    changed = {
        "total_steps": 0,
        "updates": _UPDATES,
        "num_envs": 1,
        "agent": {
            name: value
            for name, value in preset.agent.items()
            if not is_schedule(value)
        },
        "dataset": {
            name: value
            for name, value in preset.dataset.items()
            if f"dataset.{name}" in known and value not in ("auto", None)
        },
    }
    return preset.with_settings(changed)
