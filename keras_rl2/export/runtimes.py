"""Runtimes of exported policies: functions of named arrays."""

import os
from collections.abc import Callable
from typing import Any
from typing import TypeAlias

import numpy as np

from keras_rl2.export import formats

#: From all inputs of a file to all of its outputs, by their names.
Runtime: TypeAlias = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
# The signature of exported policies.
_SIGNATURE = "serving_default"


def runtime_of(path: str | os.PathLike[str], format: str) -> Runtime:
    """Returns the runtime of a file.

    Args:
        path: str or path. The file or folder.
        format: str. One of `formats.ENDINGS`.

    Returns:
        `Runtime`.

    Raises:
        ImportError: If the package that runs the format is not installed.
        ValueError: If the file cannot be run.
    """
    try:
        return _RUNTIMES[format](str(path))
    except ImportError:
        raise
    except Exception as error:
        raise formats.no_policy(path, error) from error


def litert_runner(path: str) -> Any:
    """Returns what runs a `.tflite` file, for batches of any size."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(model_path=path).get_signature_runner(_SIGNATURE)


def onnx_session(path: str) -> Any:
    """Returns what runs an `.onnx` file."""
    import onnxruntime

    return onnxruntime.InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )


def _litert(path: str) -> Runtime:
    """Returns the runtime of a `.tflite` file."""
    runner = litert_runner(path)
    return lambda given: runner(**given)


def _onnx(path: str) -> Runtime:
    """Returns the runtime of an `.onnx` file."""
    session = onnx_session(path)
    names = [each.name for each in session.get_outputs()]
    return lambda given: dict(
        zip(names, session.run(names, given), strict=True)
    )


def _saved_model(path: str) -> Runtime:
    """Returns the runtime of the folder of a SavedModel."""
    import tensorflow as tf

    model: Any = tf.saved_model.load(path)

    def run(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        tensors = {key: tf.constant(each) for key, each in given.items()}
        # A signature alone does not keep the variables alive.
        found = model.signatures[_SIGNATURE](**tensors)
        return {key: each.numpy() for key, each in found.items()}

    return run


_RUNTIMES: dict[str, Callable[[str], Runtime]] = {
    formats.LITERT: _litert,
    formats.ONNX: _onnx,
    formats.SAVED_MODEL: _saved_model,
}
