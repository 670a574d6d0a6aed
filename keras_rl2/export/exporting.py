"""Export of a policy as a separate model."""

import contextlib
import dataclasses
import importlib.util
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from keras import ops

from keras_rl2.basics import arguments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.litert import for_environment
from keras_rl2.export import policy_file as formats
from keras_rl2.policies.policy import Policy
from keras_rl2.policies.policy_function import input_specs
from keras_rl2.saving.atomic_files import replacing
from keras_rl2.saving.saving import require_replaceable
from keras_rl2.spaces.space_configs import space_to_config
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.version import __version__

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
# Name of a policy's only output in a SavedModel.
_ONLY_OUTPUT = "output_0"
# Arguments of the formats that ignore unknown ones silently.
_TAKEN = {
    formats.SAVED_MODEL: ("input_signature", "verbose"),
    formats.ONNX: ("input_signature", "opset_version", "verbose"),
}
# Most representative observations that are used.
_MOST = 2048
# Descriptions of the inputs or outputs of a file.
_Entries = list[dict[str, Any]]


class ExportedPolicy(keras.Model):
    """Maps raw observations, and noise if any, to the environment's actions."""

    def __init__(self, policy: Policy, deterministic: bool) -> None:
        super().__init__(name=f"{policy.agent.name}_policy")
        # Its networks are tracked by name, the agent's optimizer is not.
        for index, network in enumerate(policy.agent.acting_networks):
            setattr(self, f"network_{index}", network)
        self._states = len(policy.initial_state(1))
        self._action = action_spec(policy.action_space)
        self._decide = policy.function(deterministic)
        self.built = True

    def call(self, *inputs: Tensor) -> Any:
        """Returns the environment's actions.

        For a Dict or Tuple it is a dict from the path of each array, for
        example `"arm_angle"` for a key within a key, since files have no trees.
        For a recurrent policy it is a dict, too, of `"action"` and the state
        after the step, `"next_state_0"` and so on: inputs of the next call
        together with its observation.
        """
        count = self._states
        values = [*inputs]
        if count:
            # An input for the begin of episodes is not needed: zeros are the
            # state then.
            begins = ops.zeros_like(inputs[-1][:, 0], "float32")
            values.insert(len(values) - count, begins)
        outputs = [*self._decide(*values)]
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


@dataclasses.dataclass(frozen=True)
class Export:
    """The export of a policy; `Agent.export` describes the arguments."""

    policy: Policy
    filepath: str | os.PathLike[str]
    format: str
    deterministic: bool
    quantize: str | None
    representative: Tree[npt.ArrayLike] | None
    batch_size: int | None

    def write(self, **kwargs: Any) -> None:
        """Writes the policy; see `Agent.export`.

        An existing file is replaced once the new one is complete.
        """
        require_replaceable(self.filepath, _SAVED_MODEL)
        self._check_arguments()
        if self.format in _TAKEN:
            arguments.refuse_unknown(
                f"`export` to {self.format}", kwargs, _TAKEN[self.format]
            )
        verbose = kwargs.get("verbose")
        arguments.check_choice(verbose=(verbose, (None, False, True)))
        arguments.check_positive(
            **arguments.present(batch_size=self.batch_size)
        )
        inputs = self._inputs()
        # Users who choose the operations know the runtimes that have them.
        is_run = "target_spec" not in kwargs
        signature = [
            keras.InputSpec(each["dtype"], each["shape"], name=each["name"])
            for each in inputs
        ]
        kwargs = {
            "verbose": False,
            "input_signature": signature,
            **self._quantization(),
            **kwargs,
        }
        exported = ExportedPolicy(self.policy, self.deterministic)
        with replacing(self.filepath) as unfinished:
            with self._explained(), warnings.catch_warnings():
                # TensorFlow calibrates by an interpreter that is deprecated.
                warnings.filterwarnings("ignore", ".*tf.lite.Interpreter.*")
                # Keras uses an alias of NumPy before it calls tf2onnx.
                warnings.filterwarnings("ignore", ".*np.object", FutureWarning)
                exported.export(str(unfinished), format=self.format, **kwargs)
                if self.format in formats.ENDINGS:
                    manifest = {
                        **self._description(inputs),
                        **self._in_file(unfinished, inputs, self._outputs()),
                    }
                    if is_run:
                        _run_once(unfinished, self.format, manifest["inputs"])
            if self.format in formats.ENDINGS:
                formats.write_manifest(unfinished, self.format, manifest)

    def _check_arguments(self) -> None:
        """Checks arguments against each other, before anything is written."""
        format, quantize, path = self.format, self.quantize, str(self.filepath)
        arguments.check_choice(
            format=(format, (*formats.ENDINGS, "openvino")),
            quantize=(quantize, (None, *formats.QUANTIZATIONS)),
        )
        for kind, ending in formats.ENDINGS.items():
            if ending and (format == kind) != path.endswith(ending):
                raise ValueError(
                    f'Expected `format="{kind}"` for a path that ends in '
                    f"'{ending}', and for no other. "
                    f"Received: filepath={path!r}, format={format!r}"
                )
        if quantize is not None and format != formats.LITERT:
            raise ValueError(
                'Expected `quantize` with `format="litert"` only. '
                f"Received: quantize={quantize!r}, format={format!r}"
            )
        if (quantize == formats.INT8) != (self.representative is not None):
            raise ValueError(
                "Expected `representative` observations with "
                '`quantize="int8"`, which determines ranges by them, and only '
                f"with it. Received: quantize={quantize!r}, "
                f"representative={self.representative!r:.60}"
            )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns an error of a converter or the disk into one line."""
        try:
            yield
        except tf.errors.OpError as error:
            raise OSError(
                f"{self.filepath}: could not be written: {error.message}"
            ) from error
        except (ImportError, MemoryError, OSError):
            raise
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            kind = type(self.policy.agent).__name__
            raise ValueError(
                f"Expected a policy that {self.format} supports, and arguments "
                "of its converter; nothing was written. Received: that of "
                f"{kind}, with the error: {lines[0]}"
            ) from error

    def _description(self, inputs: _Entries) -> dict[str, Any]:
        """Returns the part of a manifest without names in the file."""
        states = [each for each in inputs if each["role"] == "state"]
        begin = [state[0].tolist() for state in self.policy.initial_state(1)]
        policy = self.policy
        return {
            "kind": formats.KIND,
            "version": formats.NEWEST,
            "algorithm": type(self.policy.agent).__name__,
            "keras_rl2": __version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "deterministic": self.deterministic,
            "quantization": self.quantize,
            "observation_space": space_to_config(policy.observation_space),
            "action_space": space_to_config(policy.action_space),
            "states": [
                {**{k: each[k] for k in ("shape", "dtype")}, "initial": initial}
                for each, initial in zip(states, begin, strict=True)
            ],
            "noise": [] if self.deterministic else self.policy.noise.parts,
        }

    def _inputs(self) -> _Entries:
        """Returns the inputs: observations, noise, and the recurrent state."""
        specs = input_specs(self.policy.observation_spec)
        paths = [path for path, _ in named_leaves(self.policy.observation_spec)]
        inputs = [
            self._entry(str(spec.name), spec, "observation", path=path)
            for spec, path in zip(specs, paths, strict=True)
        ]
        if not self.deterministic:
            noise = tf.TensorSpec((None, self.policy.noise.size), tf.float32)
            inputs.append(self._entry("noise", noise, "noise"))
        return inputs + [
            self._entry(f"state_{k}", each, "state", index=k)
            for k, each in enumerate(self.policy.initial_state(1))
        ]

    def _outputs(self) -> _Entries:
        """Returns the outputs: actions, and the state after them."""
        function = self.policy.function(self.deterministic)
        traced = function.get_concrete_function()
        tensors = [*traced.structured_outputs]
        count = len(tensors) - len(self.policy.initial_state(1))
        spec = action_spec(self.policy.action_space)
        actions = leaves(for_environment(spec, tensors[:count]))
        paths = [path for path, _ in named_leaves(spec)]
        names = [path.replace(".", "_") or "action" for path in paths]
        return [
            self._entry(name, each, "action", path=path)
            for name, path, each in zip(names, paths, actions, strict=True)
        ] + [
            self._entry(f"next_state_{k}", each, "next_state", index=k)
            for k, each in enumerate(tensors[count:])
        ]

    def _entry(
        self, name: str, array: Any, role: str, **place: Any
    ) -> dict[str, Any]:
        """Describes an array, a tensor or a spec of any batch size."""
        return {
            "name": name,
            "shape": [self.batch_size, *array.shape[1:]],
            "dtype": array.dtype.name,
            "role": role,
            **place,
        }

    def _quantization(self) -> dict[str, Any]:
        """Returns the arguments of `tf.lite.TFLiteConverter`."""
        if self.quantize is None:
            return {}
        options: dict[str, Any] = {"optimizations": [tf.lite.Optimize.DEFAULT]}
        if self.quantize == formats.FLOAT16:
            options["target_spec"] = {"supported_types": [tf.float16]}
            return options
        assert self.representative is not None
        self._check_fits_8_bits()
        batch, single = self.policy.as_batch(self.representative)
        if single:
            raise ValueError(
                "Expected some hundreds of representative observations "
                "[N, ...]. Received: one observation"
            )
        specs = input_specs(self.policy.observation_spec)
        names = [str(spec.name) for spec in specs]
        arrays = dict(zip(names, leaves(batch), strict=True))
        count = len(arrays[names[0]])
        if not self.deterministic:
            generator = np.random.default_rng(0)
            arrays["noise"] = self.policy.noise.draw(generator, (count,))[0]
        options["representative_dataset"] = lambda: (
            {name: array[i : i + 1] for name, array in arrays.items()}
            for i in range(0, count, -(-count // _MOST))
        )
        return options

    def _check_fits_8_bits(self) -> None:
        """Raises an error for a policy that 8 bits cannot represent.

        The values of invalid actions, and the values that noise assigns to
        random actions, are far from all other numbers, so that the 256 steps
        between them would leave none for the others.
        """
        kinds = [part["kind"] for part in self.policy.noise.parts]
        forced = "epsilon_greedy" in kinds and not self.deterministic
        for found, kind in (
            (self.policy.is_masked, "a policy with action masks"),
            (forced, "epsilon-greedy exploration"),
            (self.policy.initial_state(1), "a recurrent policy"),
        ):
            if found:
                raise ValueError(
                    "Expected a policy that fits into the 256 steps of "
                    '`"int8"`; export with `quantize="float16"`. '
                    f"Received: {kind}, of {type(self.policy.agent).__name__}"
                )

    def _in_file(
        self,
        path: Path,
        inputs: list[dict[str, Any]],
        outputs: list[dict[str, Any]],
    ) -> dict[str, list[dict[str, Any]]]:
        """Returns the inputs and outputs that a file has, by their names there.

        Converters drop unused inputs, and choose the name of a single output.
        """
        if self.format == formats.SAVED_MODEL:
            # Reading it would make a second copy of all variables.
            input_names = [each["name"] for each in inputs]
            output_names = [each["name"] for each in outputs]
            output_names = (
                output_names if len(output_names) > 1 else [_ONLY_OUTPUT]
            )
        elif self.format == formats.LITERT:
            runner = formats.litert_runner(str(path))
            input_names = [*runner.get_input_details()]
            output_names = [*runner.get_output_details()]
        else:
            input_names, output_names = _names_in_onnx(path)
        by_name = {each["name"]: each for each in outputs}
        return {
            "inputs": [each for each in inputs if each["name"] in input_names],
            "outputs": [
                by_name.get(name, outputs[0]) | {"name": name}
                for name in output_names
            ],
        }


def _names_in_onnx(path: Path) -> tuple[list[str], list[str]]:
    """Returns names of inputs and outputs, of which the first axis is `batch`.

    The converter names axes of unknown length `unk__` and a number.
    """
    import onnx

    model = onnx.load(path)
    # The converter also writes operations that are not in ONNX.
    onnx.checker.check_model(model)
    inputs, outputs = model.graph.input, model.graph.output
    for each in (*inputs, *outputs):
        axes = each.type.tensor_type.shape.dim
        if axes and axes[0].dim_param:
            axes[0].dim_param = "batch"
    onnx.save(model, path)
    return [each.name for each in inputs], [each.name for each in outputs]


def _run_once(path: Path, format: str, inputs: list[dict[str, Any]]) -> None:
    """Runs an exported file on zeros, if its runtime is installed.

    Converters also write files that cannot be run: LiteRT files that need
    TensorFlow, and bfloat16 operations that ONNX Runtime does not have. A
    SavedModel is not run, since TensorFlow itself has written it.
    """
    if format == formats.SAVED_MODEL or (
        format == formats.ONNX
        and importlib.util.find_spec("onnxruntime") is None
    ):
        return
    zeros = {
        each["name"]: np.zeros(
            [each["shape"][0] or 1, *each["shape"][1:]], each["dtype"]
        )
        for each in inputs
    }
    formats.runtime_of(path, format)(zeros)
