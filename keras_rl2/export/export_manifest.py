"""What an exported policy is told to say of itself."""

import importlib.util
import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.collecting.litert import for_environment
from keras_rl2.export import formats
from keras_rl2.export import manifest as manifests
from keras_rl2.export.runtimes import runtime_of
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.policies.policy_function import input_specs
from keras_rl2.spaces.space_configs import space_to_config
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.version import __version__

#: What a policy's only action is called where nothing else is given.
_ONLY_OUTPUT = "output_0"


def policy_inputs(
    agent: ModelPolicy, deterministic: bool, batch_size: int | None = None
) -> list[keras.InputSpec]:
    """Returns what a policy takes: observations, noise, and its state.

    Args:
        agent: `ModelPolicy`. Whose policy it is.
        deterministic: bool. Whether there is no noise.
        batch_size: int or None. Observations of each call, B; None for any
            number. Defaults to `None`.

    Returns:
        list of `keras.InputSpec`.
    """
    inputs = [
        keras.InputSpec(
            shape=tuple(spec.shape), dtype=spec.dtype.name, name=spec.name
        )
        for spec in input_specs(agent.observation_spec, batch_size)
    ]
    if not deterministic:
        shape = (batch_size, *agent.noise_shape)
        inputs.append(
            keras.InputSpec(shape=shape, dtype="float32", name="noise")
        )
    inputs += [
        keras.InputSpec(
            shape=(batch_size, *each.shape[1:]),
            dtype=each.dtype.name,
            name=f"state_{index}",
        )
        for index, each in enumerate(agent.initial_state(1))
    ]
    return inputs


def names_in_file(
    agent: ModelPolicy,
    path: str | os.PathLike[str],
    format: str,
    deterministic: bool,
) -> tuple[list[str], list[str]]:
    """Returns the names of inputs and outputs that a written policy has.

    Args:
        agent: `ModelPolicy`. Whose policy it is.
        path: str or path. Where it was written.
        format: str. One of `formats.ENDINGS`.
        deterministic: bool. Whether there is no noise.

    Returns:
        tuple of two lists: converters drop inputs that a policy does not look
        at, and call a single output as they like.

    Raises:
        Exception: If nothing runs the file, for operations that its format
            does not have.
    """
    if format == formats.SAVED_MODEL:
        # Reading it would make all of its variables once more.
        names = [str(each.name) for each in policy_inputs(agent, deterministic)]
        outputs = [*_described_outputs(agent, deterministic)]
        return names, outputs if len(outputs) > 1 else [_ONLY_OUTPUT]
    if format == formats.LITERT:
        runtime = runtime_of(path, format)
        return runtime.inputs, runtime.outputs
    import onnx

    model = onnx.load(path)
    # The converter writes down operations that ONNX does not know.
    onnx.checker.check_model(model)
    return (
        [each.name for each in model.graph.input],
        [each.name for each in model.graph.output],
    )


def name_batch_axes(path: str | os.PathLike[str]) -> None:
    """Calls the first axis of all that goes in and out of ONNX `batch`.

    The converter calls axes of unknown length `unk__` and a number.

    Args:
        path: str or path. Where the policy was written.
    """
    import onnx

    model = onnx.load(path)
    for each in (*model.graph.input, *model.graph.output):
        axes = each.type.tensor_type.shape.dim
        if axes and axes[0].dim_param:
            axes[0].dim_param = "batch"
    onnx.save(model, path)


def run_once(
    path: str | os.PathLike[str], format: str, manifest: dict[str, Any]
) -> None:
    """Runs a written policy on zeros, where what runs it is installed.

    Converters write down what nothing runs: LiteRT files that need TensorFlow
    too, and numbers of bfloat16 that ONNX Runtime does not compute with. A
    SavedModel is TensorFlow's own.

    Args:
        path: str or path. Where it was written.
        format: str. One of `formats.ENDINGS`.
        manifest: dict. As of `manifest_of`.

    Raises:
        Exception: If it does not run.
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
        for each in manifest["inputs"]
    }
    runtime_of(path, format)(zeros)


def manifest_of(
    agent: ModelPolicy,
    names: tuple[Sequence[str], Sequence[str]],
    deterministic: bool,
    quantization: str | None = None,
    batch_size: int | None = None,
) -> dict[str, Any]:
    """Describes a policy.

    Args:
        agent: `ModelPolicy`. Whose policy it is.
        names: tuple of two sequences of str. Of the inputs and outputs that
            there are.
        deterministic: bool. Whether there is no noise.
        quantization: str or None. How its weights were made smaller. Defaults
            to `None`.
        batch_size: int or None. As of `policy_inputs`. Defaults to `None`.

    Returns:
        dict of plain data: as of `keras_rl2.read_manifest`.
    """
    taken, given = names
    roles = _roles_of_inputs(agent)
    described = _described_outputs(agent, deterministic, batch_size)
    # A single action is called differently by each format.
    only = next(iter(described.values()))
    return {
        "kind": manifests.KIND,
        "version": manifests.NEWEST,
        "algorithm": type(agent).__name__,
        "keras_rl2": __version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "deterministic": deterministic,
        "quantization": quantization,
        "observation_space": space_to_config(agent.observation_space),
        "action_space": space_to_config(agent.action_space),
        "inputs": [
            {
                "name": spec.name,
                "shape": [*spec.shape],
                "dtype": str(spec.dtype),
                **roles[str(spec.name)],
            }
            for spec in policy_inputs(agent, deterministic, batch_size)
            if spec.name in taken
        ],
        "outputs": [
            {"name": name, **described.get(name, only)} for name in given
        ],
        "states": [
            {"shape": [batch_size, *each.shape[1:]], "dtype": each.dtype.name}
            for each in agent.initial_state(1)
        ],
        "noise": [] if deterministic else agent.noise_parts,
    }


def _roles_of_inputs(agent: ModelPolicy) -> dict[str, dict[str, Any]]:
    """Returns what each input is for, by its name."""
    roles: dict[str, dict[str, Any]] = {"noise": {"role": "noise"}}
    seen = input_specs(agent.observation_spec)
    paths = [path for path, _ in named_leaves(agent.observation_spec)]
    for spec, path in zip(seen, paths, strict=True):
        roles[str(spec.name)] = {"role": "observation", "path": path}
    for index, _ in enumerate(agent.initial_state(1)):
        roles[f"state_{index}"] = {"role": "state", "index": index}
    return roles


def _described_outputs(
    agent: ModelPolicy, deterministic: bool, batch_size: int | None = None
) -> dict[str, dict[str, Any]]:
    """Returns what each output is, by its name; first the actions."""
    function = agent.policy_function(deterministic).get_concrete_function()
    tensors = [*function.structured_outputs]
    states = agent.initial_state(1)
    count = len(tensors) - len(states)
    spec = action_spec(agent.action_space)
    actions = leaves(for_environment(spec, tensors[:count]))
    described = {
        path.replace(".", "_") or "action": _described(each, batch_size)
        | {"role": "action", "path": path}
        for (path, _), each in zip(named_leaves(spec), actions, strict=True)
    }
    for index, each in enumerate(tensors[count:]):
        described[f"next_state_{index}"] = _described(each, batch_size) | {
            "role": "next_state",
            "index": index,
        }
    return described


def _described(tensor: Any, batch_size: int | None) -> dict[str, Any]:
    """Returns shape and dtype of a tensor that was traced for any batch."""
    shape = [batch_size, *tensor.shape[1:]]
    return {"shape": shape, "dtype": tensor.dtype.name}
