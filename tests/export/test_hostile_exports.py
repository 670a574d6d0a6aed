"""Exported files of strangers run nothing, and are refused in one line."""

import json
import os
import shutil
import struct
import sys

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

import keras_rl2 as rl
from support.agents import AnySpaceEnv
from support.stock_layers import LAYERS
from support.stock_layers import OBSERVATIONS
from support.stock_layers import network
from support.watching import watched

_MEBIBYTES = 1024
OBSERVATION = np.zeros((2, 4), np.float32)
MANIFEST = "assets.extra/keras_rl2.json"
SERVE = "serving_default"
DATA = "variables/variables.data-00000-of-00001"


@pytest.fixture(scope="module")
def agent():
    return rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0)


@pytest.fixture(scope="module")
def saved_model(agent, tmp_path_factory):
    """An honest SavedModel; what opening it imports is not others' doing."""
    path = tmp_path_factory.mktemp("honest") / "policy"
    agent.export(path)
    assert rl.PolicyFile(path).act(OBSERVATION).shape == (2,)
    return path


@pytest.fixture(scope="module")
def litert(agent, tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "policy.tflite"
    agent.export(path, format="litert")
    assert rl.PolicyFile(path).act(OBSERVATION).shape == (2,)
    return path


@pytest.fixture(scope="module")
def onnx(agent, tmp_path_factory):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    path = tmp_path_factory.mktemp("honest") / "policy.onnx"
    agent.export(path, format="onnx")
    assert rl.PolicyFile(path).act(OBSERVATION).shape == (2,)
    return path


def assert_refused(path, match="Expected"):
    """Opening a file is refused, and neither runs nor reads anything else."""
    with (
        watched(path.parent) as watch,
        pytest.raises(ValueError, match=match) as refused,
    ):
        rl.PolicyFile(path).act(OBSERVATION)
    text = str(refused.value)
    assert "Received" in text or path.name in text, path.name
    assert len(text.splitlines()) == 1, path.name
    assert watch.done == [], path.name
    assert watch.mebibytes < _MEBIBYTES, path.name


def write_saved_model(path, honest, canary, operation, add=None):
    """Writes a SavedModel that does something as it is called or loaded.

    Args:
        path: Where to.
        honest: The SavedModel whose manifest it gets.
        canary: Path of a file that it would write.
        operation: Function from the canary and the observation to a tensor or
            an operation.
        add: Function of the module and the canary.
    """
    module = tf.Module()
    module.weight = tf.Variable(tf.ones((4,)))

    def serve(observation):
        done = operation(str(canary), observation)
        with tf.control_dependencies([] if done is None else [done]):
            total = tf.reduce_sum(observation * module.weight, axis=-1)
            return {"output_0": tf.cast(total > 0, tf.int32)}

    spec = tf.TensorSpec((None, 4), tf.float32, name="observation")
    signature = tf.function(serve).get_concrete_function(spec)
    if add is not None:
        add(module, str(canary))
    tf.saved_model.save(module, str(path), {SERVE: signature})
    os.makedirs(path / "assets.extra")
    shutil.copy(honest / MANIFEST, path / MANIFEST)


def _write(name, observation):
    return tf.io.write_file(name, "x")


def _nothing(name, observation):
    return None


def _table(module, name):
    with open(f"{name}.txt", "w", encoding="utf-8") as file:
        file.write("a\n")
    module.table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(
            file.name, *(tf.string, 0), *(tf.int64, -1)
        ),
        1,
    )
    module.look = tf.function(
        lambda x: module.table.lookup(x),
        input_signature=[tf.TensorSpec((None,), tf.string)],
    )


def test_saved_models_that_would_do_something(saved_model, tmp_path):
    canary = tmp_path / "canaries" / "canary"
    canary.parent.mkdir()
    for name, operation, add in [
        ("writes", _write, None),
        ("table", _nothing, _table),
    ]:
        path = tmp_path / "policies" / name
        write_saved_model(path, saved_model, canary, operation, add)
        assert_refused(path)
        assert not canary.exists(), name
    # TensorFlow alone runs what they hold.
    model = tf.saved_model.load(tmp_path / "policies" / "writes")
    model.signatures[SERVE](tf.zeros((2, 4)))
    assert canary.read_text() == "x"


def _function(graph):
    """Returns the function that computes the policy."""
    return next(
        each
        for each in graph.graph_def.library.function
        if any(n in each.signature.name for n in ("signature_wrapper", "serve"))
    )


def _call(graph, name):
    """Has the policy call a function."""
    node = _function(graph).node_def.add()
    node.name, node.op = "calls", "StatefulPartitionedCall"
    node.attr["f"].func.name = name


def _save_function(graph):
    return next(
        each.signature.name
        for each in graph.graph_def.library.function
        if "traced_save" in each.signature.name
    )


def _saver_as_object(graph):
    for each in graph.object_graph_def.nodes:
        if each.WhichOneof("kind") == "bare_concrete_function":
            each.bare_concrete_function.concrete_function_name = _save_function(
                graph
            )


def _saver_takes_a_place(graph):
    for each in graph.graph_def.library.function:
        each.attr["api_implements"].s = b"same"


def _doubles(graph):
    """Functions that call the next one twice: 2^60 operations."""
    for level in range(60):
        one = graph.graph_def.library.function.add()
        one.signature.name = f"double_{level}"
        for index in range(2 if level < 59 else 0):
            node = one.node_def.add()
            node.name, node.op = f"n{index}", "StatefulPartitionedCall"
            node.attr["f"].func.name = f"double_{level + 1}"
    _call(graph, "double_0")


def _large_constant(graph):
    node = _function(graph).node_def.add()
    node.name, node.op = "large", "Const"
    node.attr["dtype"].type = tf.float32.as_datatype_enum
    tensor = node.attr["value"].tensor
    tensor.dtype = tf.float32.as_datatype_enum
    for _ in range(3):
        tensor.tensor_shape.dim.add().size = 10**4
    tensor.float_val.append(1.0)


def test_saved_models_with_a_changed_graph(saved_model, tmp_path):
    content = (saved_model / "saved_model.pb").read_bytes()
    for change in (
        _saver_as_object,
        _saver_takes_a_place,
        _doubles,
        _large_constant,
    ):
        path = tmp_path / change.__name__
        shutil.copytree(saved_model, path)
        model = SavedModel.FromString(content)
        change(model.meta_graphs[0])
        (path / "saved_model.pb").write_bytes(model.SerializeToString())
        if change is _saver_as_object:
            operation = "the operation '[A-Za-z0-9]+', which no policy"
            assert_refused(path, operation)
        else:
            assert_refused(path)


def _half(name):
    def change(path):
        content = (path / name).read_bytes()
        (path / name).write_bytes(content[: len(content) // 2])

    return change


def _slice_of_much(path):
    """Says that what is saved is a slice of 10^12 rows."""
    tf.raw_ops.SaveV2(
        prefix=str(path / "variables" / "variables"),
        tensor_names=["kernel"],
        shape_and_slices=[f"{10**12} 4 0,4:0,4"],
        tensors=[tf.zeros((4, 4))],
    )


def _endless(path):
    (path / DATA).unlink()
    (path / DATA).symlink_to("/dev/zero")


def _pipe(path):
    (path / "fingerprint.pb").unlink(missing_ok=True)
    os.mkfifo(path / "fingerprint.pb")


def _manifest(change):
    def changed(path):
        manifest = json.loads((path / MANIFEST).read_text())
        change(manifest)
        (path / MANIFEST).write_text(json.dumps(manifest))

    return changed


@pytest.mark.skipif(sys.platform == "win32", reason="has no pipes")
def test_saved_models_with_changed_files(saved_model, tmp_path):
    for name, change in {
        "half_a_graph": _half("saved_model.pb"),
        "half_the_variables": _half(DATA),
        "slice_of_much": _slice_of_much,
        "endless": _endless,
        "pipe": _pipe,
        "another_path": _manifest(
            lambda manifest: manifest["inputs"][0].update(path="x.y")
        ),
    }.items():
        path = tmp_path / name
        shutil.copytree(saved_model, path)
        change(path)
        if change is _slice_of_much:
            assert_refused(path, "its weights would be [0-9,]+ bytes")
        else:
            assert_refused(path)


def test_litert_files(litert, tmp_path):
    content = litert.read_bytes()
    at, local = content.rindex(b"PK\x01\x02"), content.index(b"PK\x03\x04")
    model, archive = content[:local], content[local:]

    def with_flag(flag, method):
        changed = bytearray(content)
        struct.pack_into("<HH", changed, at + 8, flag, method)
        struct.pack_into("<HH", changed, local + 6, flag, method)
        return bytes(changed)

    for name, made in {
        "half_a_model": model[: len(model) // 2] + archive,
        "no_manifest": model,
        "with_a_password": with_flag(1, 8),
        "of_damaged_data": with_flag(0, 14),
        "another_signature": content.replace(SERVE.encode(), b"s" * 15),
        "another_input": content.replace(b"observation", b"observatiom", 1),
    }.items():
        path = tmp_path / f"{name}.tflite"
        path.write_bytes(made)
        assert_refused(path)
    path = tmp_path / "folder.tflite"
    path.mkdir()
    shutil.copy(litert, path / "policy.tflite")
    assert_refused(path)


def _external(tensor, location):
    """Has a tensor of ONNX be read from another file."""
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location


def _weights(location):
    def change(model):
        for tensor in model.graph.initializer:
            _external(tensor, location)

    return change


def _weights_of_an_attribute(model):
    node = model.graph.node.add(op_type="Constant", output=["odd"])
    tensor = node.attribute.add(name="value", type="TENSOR").t
    tensor.CopyFrom(model.graph.initializer[0])
    _external(tensor, "/etc/passwd")


def _weights_of_a_branch(model):
    node = model.graph.node.add(op_type="If", output=["odd"])
    branch = node.attribute.add(name="then_branch", type="GRAPH").g
    tensor = branch.initializer.add()
    tensor.CopyFrom(model.graph.initializer[0])
    _external(tensor, "/etc/passwd")


EXTERNAL_WEIGHTS = {
    "above": _weights("../../../../etc/passwd"),
    "attribute": _weights_of_an_attribute,
    "branch": _weights_of_a_branch,
}


def _operation(model):
    model.graph.node.add(op_type="Evil", domain="x", output=["y"])


def _large(model):
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([10**6, 10**6])


def _input_name(model):
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name == "observation":
                node.input[index] = "other"
    model.graph.input[0].name = "other"


def changed_onnx(honest, change):
    """Returns the bytes of an ONNX file after a change of its model."""
    from onnx import load

    model = load(honest)
    change(model)
    return model.SerializeToString()


def test_onnx_files(onnx, tmp_path):
    content = onnx.read_bytes()
    changes = (_weights("/etc/passwd"), _operation, _large, _input_name)
    for index, made in enumerate(
        [
            *(changed_onnx(onnx, change) for change in changes),
            content[: len(content) // 2],
            content + b"\x08\x01" * 2**20,
            b"\x08\x01",
        ]
    ):
        path = tmp_path / f"{index}.onnx"
        path.write_bytes(made)
        assert_refused(path)


def test_weights_in_other_files_are_not_asked_for(onnx, tmp_path, monkeypatch):
    import onnxruntime

    opened = []
    monkeypatch.setattr(
        onnxruntime,
        "InferenceSession",
        lambda content, *args, **kwargs: opened.append(content),
    )
    for name, change in EXTERNAL_WEIGHTS.items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(changed_onnx(onnx, change))
        assert_refused(path)
        assert opened == [], name


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_policies_of_all_layers_of_keras_are_opened(name, tmp_path):
    """Their operations are in the list, loops over sequences too."""
    space = OBSERVATIONS[LAYERS[name][0]]
    env = AnySpaceEnv(space, gymnasium.spaces.Discrete(2))
    agent = rl.PPO(network(name, 2), network(name, 1), seed=0)
    agent.bind(env.observation_space, env.action_space)
    agent.export(tmp_path / "policy")
    observation = space.sample()
    assert rl.PolicyFile(tmp_path / "policy").act(observation) == agent.act(
        observation, deterministic=True
    )
