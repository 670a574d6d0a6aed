"""Export of a policy as a separate model."""

import contextlib
import importlib.util
import os
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy.typing as npt
import tensorflow as tf
from keras import ops

from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import refuse_unknown
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.litert import for_environment
from keras_rl2.export import formats
from keras_rl2.export.export_manifest import manifest_of
from keras_rl2.export.export_manifest import name_batch_axes
from keras_rl2.export.export_manifest import names_in_file
from keras_rl2.export.export_manifest import policy_inputs
from keras_rl2.export.export_manifest import run_once
from keras_rl2.export.manifest import write_manifest
from keras_rl2.export.quantizing import check_bits
from keras_rl2.export.quantizing import converter_arguments
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.saving.atomic_files import replacing
from keras_rl2.saving.saving import require_replaceable
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import named_leaves

# The files of a SavedModel.
_SAVED_MODEL = frozenset(
    {
        "assets",
        "assets.extra",
        "fingerprint.pb",
        "saved_model.pb",
        "variables",
    }
)
# Arguments of the formats that ignore unknown ones silently.
_TAKEN = {
    formats.SAVED_MODEL: ("input_signature", "verbose"),
    formats.ONNX: ("input_signature", "opset_version", "verbose"),
}
# Arguments of `Agent.export` itself, suggested for a misspelt one.
_OWN = (
    "accept",
    "batch_size",
    "deterministic",
    "format",
    "quantize",
    "representative",
)
# TensorFlow's errors for a disk that is full, read-only or gone.
_DISK_ERRORS = (
    tf.errors.FailedPreconditionError,
    tf.errors.NotFoundError,
    tf.errors.OutOfRangeError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnavailableError,
    tf.errors.UnknownError,
)


class ExportedPolicy(keras.Model):
    """Maps raw observations, and optional noise, to the environment's actions.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        deterministic: bool. Whether there is no noise.
    """

    def __init__(self, agent: ModelPolicy, deterministic: bool) -> None:
        super().__init__(name=f"{agent.name}_policy")
        # Its networks are tracked by name, the agent's optimizer is not.
        for index, network in enumerate(agent.acting_networks):
            setattr(self, f"network_{index}", network)
        self._states = len(agent.initial_state(1))
        self._action = action_spec(agent.action_space)
        self._decide = agent.policy_function(deterministic)
        self.built = True

    def call(self, *inputs: Tensor) -> Any:
        """Returns the environment's actions.

        For a Dict or Tuple it is a dict from the path of each array, e.g.
        `"arm_angle"` for a key within a key, since files have no trees. For a
        recurrent policy it is a dict, too, of `"action"` and the state after
        the step, `"next_state_0"` and so on: inputs of the next call together
        with its observation.
        """
        count = self._states
        given = [*inputs]
        if count:
            # An input for the begin of episodes is not needed: zeros are the
            # state then.
            begins = ops.zeros_like(inputs[-1][:, 0], "float32")
            given.insert(len(given) - count, begins)
        outputs = [*self._decide(*given)]
        after = [outputs.pop() for _ in range(count)][::-1]
        action = for_environment(self._action, outputs)
        if is_leaf(action):
            if not count:
                return action
            action = {"action": action}
        named = {
            path.replace(".", "_"): array
            for path, array in named_leaves(action)
        }
        # Not the names of the inputs: names are unique in ONNX.
        states = {f"next_state_{k}": each for k, each in enumerate(after)}
        return {**named, **states}


def export(
    agent: ModelPolicy,
    filepath: str | os.PathLike[str],
    format: str,
    deterministic: bool,
    quantize: str | None = None,
    representative: Tree[npt.ArrayLike] | None = None,
    batch_size: int | None = None,
    accept: Callable[[Path], None] | None = None,
    **kwargs: Any,
) -> None:
    """Writes the policy in a format of `keras.Model.export`.

    An existing file is replaced once the new one is complete.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        filepath: str or path. The file or folder to write.
        format: str. A format of `keras.Model.export`.
        deterministic: bool. Whether the most probable action is taken; if not,
            noise is a second input.
        quantize: str or None. One of `formats.QUANTIZATIONS`. Defaults
            to `None`.
        representative: See `Agent.export`. Defaults to `None`.
        batch_size: int or None. See `Agent.export`. Defaults to `None`.
        accept: Callable or None. See `Agent.export`. Defaults to `None`.
        **kwargs: Further arguments of `keras.Model.export`.

    Raises:
        ImportError: If the converter of the format is not installed.
        OSError: If it cannot be written.
        TypeError: If the converter does not support an argument.
        ValueError: If the format does not support such a policy, or a folder
            with other files would be replaced.
    """
    require_replaceable(filepath, _SAVED_MODEL)
    check_arguments(filepath, format, quantize, representative)
    _check_of_writer(format, kwargs)
    if batch_size is not None:
        check_positive(batch_size=batch_size)
    check_bits(agent, deterministic, quantize)
    inputs = policy_inputs(agent, deterministic, batch_size)
    # Users who choose the operations know the runtimes that have them.
    asked = frozenset(kwargs)
    kwargs = {
        "verbose": False,
        "input_signature": inputs,
        **converter_arguments(agent, deterministic, quantize, representative),
        **kwargs,
    }
    policy = ExportedPolicy(agent, deterministic)
    with replacing(filepath) as unfinished:
        with _explained(agent, filepath, format), warnings.catch_warnings():
            # TensorFlow calibrates by an interpreter that is deprecated.
            warnings.filterwarnings("ignore", ".*tf.lite.Interpreter.*")
            # Keras uses an alias of NumPy before it calls tf2onnx.
            warnings.filterwarnings("ignore", ".*np.object", FutureWarning)
            policy.export(str(unfinished), format=format, **kwargs)
            if format == formats.ONNX:
                name_batch_axes(unfinished)
            if format in formats.ENDINGS:
                names = names_in_file(agent, unfinished, format, deterministic)
                described = manifest_of(
                    agent, names, deterministic, quantize, batch_size
                )
                if "target_spec" not in asked:
                    run_once(unfinished, format, described)
        if format in formats.ENDINGS:
            write_manifest(unfinished, format, described)
        if accept is not None:
            accept(unfinished)


def check_arguments(
    filepath: str | os.PathLike[str],
    format: str,
    quantize: str | None,
    representative: Tree[npt.ArrayLike] | None,
) -> None:
    """Checks the arguments of an export before anything is written.

    Args:
        filepath: str or path. The file or folder to write.
        format: str. See `Agent.export`.
        quantize: str or None. See `Agent.export`.
        representative: See `Agent.export`.

    Raises:
        ImportError: If the converter of the format is not installed.
        ValueError: If arguments do not fit each other.
    """
    known = [*formats.ENDINGS, "openvino"]
    if format not in known:
        raise ValueError(
            f"Expected `format` to be one of {known}. "
            f"Received: format={format!r}"
        )
    for kind, ending in formats.ENDINGS.items():
        if ending and format != kind and str(filepath).endswith(ending):
            raise ValueError(
                f'Expected `format="{kind}"` for a path that ends in '
                f"'{ending}'. Received: filepath={str(filepath)!r}, "
                f"format={format!r}"
            )
    if format == formats.LITERT and not str(filepath).endswith(".tflite"):
        raise ValueError(
            "Expected a path that ends in .tflite for LiteRT. "
            f"Received: {filepath}"
        )
    if format == formats.ONNX and importlib.util.find_spec("tf2onnx") is None:
        raise ImportError(
            "Expected tf2onnx, which writes ONNX: `pip install "
            "keras-rl2-fit[onnx]`. Received: a Python without it"
        )
    if quantize not in (None, *formats.QUANTIZATIONS):
        raise ValueError(
            "Expected `quantize` to be None or one of "
            f"{[*formats.QUANTIZATIONS]}. Received: quantize={quantize!r}"
        )
    if quantize is not None and format != formats.LITERT:
        raise ValueError(
            'Expected `quantize` with `format="litert"` only. '
            f"Received: quantize={quantize!r}, format={format!r}"
        )
    if (quantize == formats.INT8) != (representative is not None):
        raise ValueError(
            'Expected `representative` observations with `quantize="int8"`, '
            "which determines ranges by them, and only with it. Received: "
            f"quantize={quantize!r}, representative={representative!r:.60}"
        )


def _check_of_writer(format: str, given: Mapping[str, Any]) -> None:
    """Raises an error for arguments that the converter would ignore."""
    check_choice(verbose=(given.get("verbose"), (None, False, True)))
    if format in _TAKEN:
        allowed = {*_OWN, *_TAKEN[format]}
        refuse_unknown(f"`export` to {format}", given, allowed)


@contextlib.contextmanager
def _explained(
    agent: ModelPolicy, filepath: str | os.PathLike[str], format: str
) -> Iterator[None]:
    """Turns an error of a converter or the disk into one line."""
    try:
        yield
    except _DISK_ERRORS as error:
        raise OSError(
            f"{filepath}: could not be written: {error.message}"
        ) from error
    except (ImportError, MemoryError, OSError):
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(
            f"Expected a policy that {format} supports, and arguments of its "
            f"converter; nothing was written. Received: {type(agent).__name__}"
            f", with the error: {lines[0]}"
        ) from error
