"""Runtimes of exported policies, which map named arrays to named arrays."""

import os
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import Protocol

import numpy as np

from keras_rl2.export import formats
from keras_rl2.export import saved_model
from keras_rl2.export.onnx_model import OnnxModel
from keras_rl2.export.saved_model import SIGNATURE

Arrays = Mapping[str, np.ndarray]


class Runtime(Protocol):
    """Runs a file.

    Attributes:
        inputs: list of str. Names of its inputs.
        outputs: list of str. Names of its outputs.
    """

    inputs: list[str]
    outputs: list[str]

    def __call__(self, given: Arrays) -> dict[str, np.ndarray]:
        """Returns the outputs by name; all inputs are needed."""


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
    return _RUNTIMES[format](str(path))


class _LiteRT:
    """Runs a `.tflite` file by `ai-edge-litert`."""

    def __init__(self, path: str) -> None:
        from ai_edge_litert.interpreter import Interpreter

        try:
            interpreter = Interpreter(model_path=path)
            self._runner = interpreter.get_signature_runner(SIGNATURE)
            self.inputs = sorted(self._runner.get_input_details())
            self.outputs = sorted(self._runner.get_output_details())
        except Exception as error:
            raise formats.no_policy(path, error) from error

    def __call__(self, given: Arrays) -> dict[str, np.ndarray]:
        """Runs the interpreter, for a batch of any size."""
        found: dict[str, np.ndarray] = self._runner(**given)
        return found


class _ONNX:
    """Runs an `.onnx` file by `onnxruntime`."""

    def __init__(self, path: str) -> None:
        import onnxruntime

        # The checked bytes are run: the file may have changed since.
        content = OnnxModel(Path(path)).content
        try:
            session = onnxruntime.InferenceSession(
                content, providers=["CPUExecutionProvider"]
            )
            self.inputs = [each.name for each in session.get_inputs()]
            self.outputs = [each.name for each in session.get_outputs()]
        except Exception as error:
            raise formats.no_policy(path, error) from error
        self._session = session

    def __call__(self, given: Arrays) -> dict[str, np.ndarray]:
        """Runs the session."""
        found = self._session.run(None, dict(given))
        return dict(zip(self.outputs, found, strict=True))


class _SavedModel:
    """Runs the folder of a SavedModel by TensorFlow."""

    def __init__(self, path: str) -> None:
        import tensorflow as tf

        try:
            saved_model.check(Path(path))
            # Kept, since the signature does not keep the variables alive.
            self._model: Any = tf.saved_model.load(path)
            self._serve = self._model.signatures[SIGNATURE]
            self.inputs = sorted(self._serve.structured_input_signature[1])
            self.outputs = sorted(self._serve.structured_outputs)
        except Exception as error:
            raise formats.no_policy(path, error) from error
        self._constant = tf.constant

    def __call__(self, given: Arrays) -> dict[str, np.ndarray]:
        """Calls the signature."""
        tensors = {key: self._constant(each) for key, each in given.items()}
        found = self._serve(**tensors)
        return {key: each.numpy() for key, each in found.items()}


_RUNTIMES: dict[str, Callable[[str], Runtime]] = {
    formats.LITERT: _LiteRT,
    formats.ONNX: _ONNX,
    formats.SAVED_MODEL: _SavedModel,
}
