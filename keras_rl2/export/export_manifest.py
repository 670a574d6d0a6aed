"""The manifest of an exported policy, made from its agent."""

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
from keras_rl2.export.runtimes import litert_runner
from keras_rl2.export.runtimes import runtime_of
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.policies.policy_function import input_specs
from keras_rl2.spaces.space_configs import space_to_config
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.version import __version__

#: Name of a policy's only output in a SavedModel.
_ONLY_OUTPUT = "output_0"


def policy_inputs(
    agent: ModelPolicy, deterministic: bool, batch_size: int | None = None
) -> list[keras.InputSpec]:
    """Returns the inputs of a policy: observations, noise, and its state.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
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
    """Returns the names of inputs and outputs in an exported file.

    They differ from the policy's names: converters drop unused inputs, and
    choose the name of a single output.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        path: str or path. The file or folder.
        format: str. One of `formats.ENDINGS`.
        deterministic: bool. Whether there is no noise.

    Returns:
        tuple of two lists of str.

    Raises:
        Exception: If the file cannot be run, because of operations that its
            format does not have.
    """
    if format == formats.SAVED_MODEL:
        # Reading it would make a second copy of all variables.
        names = [str(each.name) for each in policy_inputs(agent, deterministic)]
        outputs = [*_described_outputs(agent, deterministic)]
        return names, outputs if len(outputs) > 1 else [_ONLY_OUTPUT]
    if format == formats.LITERT:
        runner = litert_runner(str(path))
        return [*runner.get_input_details()], [*runner.get_output_details()]
    import onnx

    model = onnx.load(path)
    # The converter also writes operations that are not in ONNX.
    onnx.checker.check_model(model)
    return (
        [each.name for each in model.graph.input],
        [each.name for each in model.graph.output],
    )


def name_batch_axes(path: str | os.PathLike[str]) -> None:
    """Names the first axis of all inputs and outputs of an ONNX file `batch`.

    The converter names axes of unknown length `unk__` and a number.

    Args:
        path: str or path. The file.
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
    """Runs an exported file on zeros, if its runtime is installed.

    Converters also write files that cannot be run: LiteRT files that need
    TensorFlow, and bfloat16 operations that ONNX Runtime does not have. A
    SavedModel is not run, since TensorFlow itself has written it.

    Args:
        path: str or path. The file or folder.
        format: str. One of `formats.ENDINGS`.
        manifest: dict. See `manifest_of`.

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
    """Returns the manifest of a policy.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        names: tuple of two sequences of str. Names of the inputs and outputs
            in the file.
        deterministic: bool. Whether there is no noise.
        quantization: str or None. Quantization of its weights. Defaults to
            `None`.
        batch_size: int or None. See `policy_inputs`. Defaults to `None`.

    Returns:
        dict of plain data; see `keras_rl2.read_manifest`.
    """
    taken, given = names
    roles = _roles_of_inputs(agent)
    described = _described_outputs(agent, deterministic, batch_size)
    # Each format has another name for a single action.
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
    """Returns the role of each input, by its name."""
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
    """Returns the role of each output, by its name; first the actions."""
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
    """Returns shape and dtype of a tensor with any batch size."""
    shape = [batch_size, *tensor.shape[1:]]
    return {"shape": shape, "dtype": tensor.dtype.name}
