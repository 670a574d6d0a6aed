"""Loading an agent that somebody has saved."""

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
# What numbers stand for that only grow.
_COUNTERS = ("int32", "int64")
_LONGEST_REASON = 300


def load(
    path: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
) -> Agent:
    """Loads a saved agent, from a file that anybody may have made.

    `keras.saving.load_model` loads the same files. This function refuses, in
    a moment and before anything large is made: what is damaged (by the seal
    that `Agent.save` writes; files of earlier versions have none and load
    without), an archive, an array or a layer that would take more memory than
    the file has numbers for, classes that hold code or read other files, and
    functions that compute no activations or losses. And then: weights that
    are not finite, counts below zero.

    Layers of your own are to be registered with
    `keras.saving.register_keras_serializable`, or given in `custom_objects`,
    as with Keras. They are your code, and run.

    Of the directory of a `keras_rl2.callbacks.Checkpoint` it loads the agent
    alone, from the newest checkpoint that is whole: to act, to be exported, or
    to be trained otherwise. (To go on with the run, run its program again.)
    Of a directory less is looked at: load your own only.

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
        # Of any type: it depends on what is wrong with the file.
        raise ValueError(
            f"Expected a saved agent of keras_rl2. Received: {path}: "
            f"{_reason(error)}"
        ) from error
    return agent


def _model_of(path: str, objects: dict[str, Any]) -> object:
    """Returns what a file holds, once it has been looked at."""
    with Archive(path) as archive:
        config.check(archive.config(), objects)
        elements = weights.check(archive.weights())
    with no_more_weights_than(elements):
        return keras.saving.load_model(
            path, custom_objects=objects, safe_mode=True
        )


def _refuse_path(path: str) -> None:
    """Says what is wrong with a path."""
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
    """Refuses what is no agent."""
    if not isinstance(model, Agent):
        raise ValueError(f"a {type(model).__name__}, which is no agent")
    return model


def _check_numbers(agent: Agent) -> None:
    """Refuses numbers that no agent was left with."""
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
