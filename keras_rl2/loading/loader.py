"""Loading a saved agent of unknown origin."""

import os
import textwrap
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_rl2.agents import Agent
from keras_rl2.basics.arguments import check_path
from keras_rl2.loading import checkpoint
from keras_rl2.loading import config
from keras_rl2.loading import weights
from keras_rl2.loading.archive import Archive
from keras_rl2.loading.budget import no_more_weights_than

_ENDING = ".keras"
# Types of counters, which never fall below zero.
_COUNTERS = ("int32", "int64")
_LONGEST_REASON = 300


def load(
    path: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
) -> Agent:
    """Loads a saved agent, from a file of unknown origin.

    `keras.saving.load_model` loads the same files. This function raises an
    error, in a moment and before anything large is made, for a damaged file
    (by the seal that `Agent.save` writes; files of earlier versions have none
    and load without), for an archive, an array or a layer that would take more
    memory than the file has numbers for, for classes that hold code or read
    other files, and for functions that compute no activations or losses; and
    afterwards for weights that are not finite and for counts below zero.

    Your own layers must be registered with
    `keras.saving.register_keras_serializable`, or passed in `custom_objects`,
    as with Keras. They are your code, and run.

    From the directory of a `keras_rl2.callbacks.Checkpoint` it loads the agent
    of the newest undamaged checkpoint: to act, to be exported, or to be
    trained otherwise. (To resume the run, run its program again.) A directory
    is checked less thoroughly: load only your own.

    Args:
        path: str or path. A `.keras` file on this machine; or a directory of
            checkpoints, or one of its folders `checkpoint-...`.
        custom_objects: Mapping or None. Classes and functions by the names
            that the file has for them. Defaults to `None`.

    Returns:
        `keras_rl2.Agent`, compiled as it was.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it holds no agent, or is refused.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> path = os.path.join(tempfile.mkdtemp(), "agent.keras")
    >>> rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0).save(path)
    >>> type(rl.load(path)).__name__
    'PPO'
    """
    check_path(path=path)
    if not isinstance(custom_objects, Mapping | None):
        raise ValueError(
            "Expected `custom_objects` to be a dict of classes and functions "
            f"by their names. Received: custom_objects={custom_objects!r}"
        )
    path = os.fspath(path)
    is_folder = os.path.isdir(path)
    if not is_folder and not (path.endswith(_ENDING) and os.path.exists(path)):
        _refuse_path(path)
    objects = dict(custom_objects or {})
    try:
        if is_folder:
            agent = _agent(checkpoint.load(Path(path), objects))
        else:
            agent = _agent(_model_of(path, objects))
        _check_numbers(agent)
    except Exception as error:
        # Its type depends on the fault of the file.
        raise ValueError(
            f"Expected a saved agent of keras_rl2. Received: {path}: "
            f"{_reason(error)}"
        ) from error
    return agent


def _model_of(path: str, objects: dict[str, Any]) -> object:
    """Returns the content of a file, after the checks."""
    with Archive(path) as archive:
        config.check(archive.config(), objects)
        elements = weights.check(archive.weights())
    with no_more_weights_than(elements):
        return keras.saving.load_model(
            path, custom_objects=objects, safe_mode=True
        )


def _refuse_path(path: str) -> None:
    """Raises an error for a path that is no saved agent."""
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file", path)
    if zipfile.is_zipfile(path):
        raise ValueError(
            f"Expected a file whose name ends in {_ENDING}. Received: {path}"
        )
    raise ValueError(
        f"Expected a saved agent of keras_rl2. Received: {path}: not a "
        f"{_ENDING} file"
    )


def _agent(model: object) -> Agent:
    """Raises an error for an object that is no agent."""
    if not isinstance(model, Agent):
        raise ValueError(f"a {type(model).__name__}, which is no agent")
    return model


def _check_numbers(agent: Agent) -> None:
    """Raises an error for numbers that no agent has."""
    optimizer = agent.optimizer.variables if agent.compiled else []
    for variable in [*agent.variables, *optimizer]:
        numbers = np.asarray(keras.ops.convert_to_numpy(variable.value))
        if numbers.dtype.name in _COUNTERS:
            if (numbers < 0).any():
                raise ValueError(f"{variable.path} is below zero")
        elif "float" in numbers.dtype.name:
            count = int(np.count_nonzero(~np.isfinite(numbers)))
            if count:
                raise ValueError(
                    f"{count} of {numbers.size} numbers of {variable.path} "
                    "are not finite"
                )


def _reason(error: Exception) -> str:
    """Returns the message of an error, in one line that is not too long."""
    text = str(error) or type(error).__name__
    return textwrap.shorten(text, _LONGEST_REASON, placeholder=" ...")
