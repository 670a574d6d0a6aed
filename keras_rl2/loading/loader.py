"""Loading a saved agent of unknown origin."""

import contextlib
import io
import math
import os
import textwrap
import zipfile
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import Self

import h5py
import keras
import numpy as np
import tensorflow as tf

from keras_rl2.agents import Agent
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.files import hdf5_arrays
from keras_rl2.files.checkpoint_folder import CheckpointFolder
from keras_rl2.files.checkpoint_folder import Saved
from keras_rl2.files.plain_files import check_members
from keras_rl2.files.plain_files import parse_json
from keras_rl2.files.plain_files import require_file
from keras_rl2.files.sealing import is_sealed
from keras_rl2.loading import config
from keras_rl2.saving import agent_state

_ENDING = ".keras"
_CHECKPOINT = ".npz"
# Types of counters, which never fall below zero.
_COUNTERS = ("int32", "int64")
_LONGEST_REASON = 300


@refusing_unknown
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
            checkpoints, or one of its files `checkpoint-....npz`.
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
    is_file = path.endswith((_ENDING, _CHECKPOINT)) and os.path.exists(path)
    if not is_folder and not is_file:
        _refuse_path(path)
    objects = dict(custom_objects or {})
    try:
        if is_folder or path.endswith(_CHECKPOINT):
            agent = _agent(load_checkpoint(Path(path), objects))
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
        elements = check_weights(archive.weights())
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


_CONFIG = "config.json"
_METADATA = "metadata.json"
_WEIGHTS = "model.weights.h5"
# A network of a thousand layers.
_MOST_CONFIG_BYTES = 2**22
_MOST_METADATA_BYTES = 2**16


class Archive:
    """The members of a `.keras` file, of no other names and of sane sizes.

    Args:
        path: str. The file.

    Raises:
        ValueError: If it is no such archive.
        zipfile.BadZipFile: If it is none at all.
    """

    def __init__(self, path: str) -> None:
        size = require_file(path)
        self._file = open(path, "rb")  # noqa: SIM115
        try:
            is_sealed(self._file)
            self._zip = zipfile.ZipFile(self._file)
            _check_members(self._zip.infolist(), size)
        except zipfile.BadZipFile as error:
            self._file.close()
            raise ValueError(
                f"not a .keras file, or not all of one ({error})"
            ) from error
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def config(self) -> Any:
        """Returns the config of the agent, as plain data."""
        return parse_json(self._zip.read(_CONFIG), _CONFIG)

    def weights(self) -> bytes:
        """Returns the file of weights."""
        return self._zip.read(_WEIGHTS)


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Raises an error for members that Keras does not write."""
    names = sorted(member.filename for member in members)
    expected = sorted((_CONFIG, _METADATA, _WEIGHTS))
    if names != expected:
        shown = ", ".join(map(repr, names[:5]))
        raise ValueError(
            f"an archive with {len(names)} members, {shown}, in the place of "
            f"{', '.join(expected)}"
        )
    most = {_CONFIG: _MOST_CONFIG_BYTES, _METADATA: _MOST_METADATA_BYTES}
    check_members(members, size, most)


# The slots of an optimizer that had made no update are not in the file.
_TIMES = 8
# Variables of small networks beside weights: counts, seeds, statistics.
_MORE = 2**16


@contextlib.contextmanager
def no_more_weights_than(elements: int) -> Iterator[None]:
    """Raises an error for variables that a file has no numbers for.

    A config of a few bytes can ask for a layer of any size; the file has the
    weights of all layers. Each variable is first traced, which yields its
    shape and takes no memory.

    Args:
        elements: int. Numbers in the file.

    Yields:
        None. Within, and in this thread, a variable too many is a ValueError.

    Raises:
        ValueError: If variables are larger than the numbers of the file.
    """
    left = _TIMES * elements + _MORE

    def made(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        nonlocal left
        count = _elements(kwargs["initial_value"])
        if count is None or count > left:
            raise ValueError(
                f"its config asks for more weights than the {elements:,} that "
                "are in the file"
            )
        left -= count
        return next_creator(**kwargs)

    with tf.variable_creator_scope(made):
        yield


def _elements(
    initial_value: TensorLike | Callable[[], TensorLike],
) -> int | None:
    """Returns how many elements a variable will have; None if unknown."""
    shape = _traced_shape(initial_value)
    sizes = tf.TensorShape(shape).as_list()
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def _traced_shape(initial_value: Any) -> Any:
    """Returns the shape of a value, or of a function's result."""
    if not callable(initial_value):
        return tf.convert_to_tensor(initial_value).shape
    try:
        # Half the time of a `tf.function`, for each of many variables.
        with tf.Graph().as_default():
            return tf.convert_to_tensor(initial_value()).shape
    except RuntimeError:
        # A user's own, with tensors: only functions can take them in.
        function = tf.function(initial_value, autograph=False)
        return function.get_concrete_function().output_shapes


# The least bytes of the file for a group or an array.
_LEAST_BYTES = 16
_MOST_LEVELS = 100


def check_weights(content: bytes) -> int:
    """Raises an error for a file of weights with more than its numbers.

    Args:
        content: bytes. The HDF5 file.

    Returns:
        int: how many numbers it has.

    Raises:
        ValueError: If it is none, refers to other files, holds objects, or
            declares more numbers than it has.
    """
    most = len(content) // _LEAST_BYTES
    with h5py.File(io.BytesIO(content), "r") as file:
        sizes = [
            (math.prod(array.shape), array.dtype.itemsize)
            for array in _arrays(file.id, most)
        ]
    declared = sum(count * width for count, width in sizes)
    if declared > len(content):
        raise ValueError(
            f"its weights would be {declared:,} bytes, of {len(content):,} "
            "in the file"
        )
    return sum(count for count, _ in sizes)


def _arrays(file: h5py.h5f.FileID, most: int) -> list[Any]:
    """Returns all arrays of a file, none of which is anywhere else.

    A group may hold itself: its content has no end then.
    """
    found = []
    count = 0
    here = [h5py.h5g.open(file, b"/")]
    for _ in range(_MOST_LEVELS):
        inner = []
        for group in here:
            for name in hdf5_arrays.names(group):
                count += 1
                if count > most:
                    raise ValueError("weights that hold themselves")
                member = hdf5_arrays.open_member(group, name)
                if isinstance(member, h5py.h5d.DatasetID):
                    found.append(member)
                else:
                    inner.append(member)
        here = inner
        if not here:
            return found
    raise ValueError(f"weights more than {_MOST_LEVELS} levels deep")


# State of an unfinished epoch: it comes last, and is not made by then.
_STATE = ("variables", "paths")


def load_checkpoint(path: Path, custom_objects: Mapping[str, Any]) -> object:
    """Makes the agent of a checkpoint, as it was.

    Args:
        path: Path. The directory of a `Checkpoint`, for its newest undamaged
            one; or one of its files.
        custom_objects: Mapping. See `keras_rl2.load`.

    Returns:
        `keras_rl2.Agent`, compiled; or another object of the checkpoint.

    Raises:
        ValueError: If there is no checkpoint, or it has no config of its
            agent.
    """
    # The rows of a replay buffer may be damaged, or left behind.
    saved: Saved | None
    if path.is_file():
        saved = CheckpointFolder(path.parent).read(path, with_rows=False)
    else:
        saved = CheckpointFolder(path).newest(with_rows=False)
    if saved is None:
        raise ValueError("a folder without a checkpoint")
    if saved.state["model"] is None:
        raise ValueError(
            f"{saved.path.name}, which has no config of its agent: a network "
            "has no `get_config`. The program that trains it resumes it"
        )
    made_from = parse_json(saved.state["model"].encode(), saved.path.name)
    state = saved.state["agent"]
    config.check(made_from, custom_objects)
    elements = sum(array.size for array in state["variables"])
    with no_more_weights_than(elements):
        agent = keras.saving.deserialize_keras_object(
            made_from, custom_objects=dict(custom_objects), safe_mode=True
        )
    if isinstance(agent, Agent):
        count = len(agent_state.variables_of(agent))
        agent.set_state(state | {name: state[name][:count] for name in _STATE})
    return agent
