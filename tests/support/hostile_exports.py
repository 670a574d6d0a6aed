"""Exported files of strangers, made to do harm when they are opened."""

import shutil
import struct
import zipfile

import keras_rl2 as rl
from support.hostile_saved_models import SERVE

#: ONNX files of which weights are said to be in other files.
ELSEWHERE = (
    *("etc", "above", "zero", "beside", "in_an_attribute", "in_a_branch"),
    *("in_a_function", "in_a_sparse_tensor"),
)


def honest(folder):
    """Exports one agent in each format that can be written here."""
    agent = rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0)
    paths = {"saved_model": folder / "policy", "litert": folder / "p.tflite"}
    agent.export(paths["saved_model"])
    agent.export(paths["litert"], format="litert")
    return paths


def honest_onnx(folder):
    """Exports one agent as ONNX."""
    agent = rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0)
    path = folder / "policy.onnx"
    agent.export(path, format="onnx")
    return path


def litert_files(folder, whole):
    """Yields names and paths of LiteRT files, and of folders."""
    content = whole.read_bytes()
    at, local = content.rindex(b"PK\x01\x02"), content.index(b"PK\x03\x04")
    model, archive = content[:local], content[local:]

    def with_flag(flag, method):
        changed = bytearray(content)
        struct.pack_into("<HH", changed, at + 8, flag, method)
        struct.pack_into("<HH", changed, local + 6, flag, method)
        return bytes(changed)

    for name, made in {
        "no_model": b"\x1c\0\0\0TFL3" + archive,
        "half_a_model": model[: len(model) // 2] + archive,
        "no_manifest": model,
        "with_a_password": with_flag(1, 8),
        "of_another_compression": with_flag(0, 99),
        "of_damaged_data": with_flag(0, 14),
        "another_signature": content.replace(SERVE.encode(), b"s" * 15),
        "another_input": content.replace(b"observation", b"observatiom", 1),
    }.items():
        path = folder / f"{name}.tflite"
        path.write_bytes(made)
        yield f"litert_{name}", path
    path = folder / "bomb.tflite"
    path.write_bytes(model)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("keras_rl2.json", bytes(2**24))
    yield "litert_bomb", path
    path = folder / "folder.tflite"
    path.mkdir()
    shutil.copy(whole, path / "policy.tflite")
    yield "litert_folder", path
    path = folder / "zero.tflite"
    path.symlink_to("/dev/zero")
    yield "litert_zero", path


def onnx_files(folder, whole):
    """Yields names and paths of ONNX files, whose weights are elsewhere."""
    import onnx

    def external(tensor, location, raw=b""):
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location

    def weights(location):
        def change(model):
            for tensor in model.graph.initializer:
                external(tensor, location)

        return change

    def weights_of_an_attribute(model):
        node = model.graph.node.add(op_type="Constant", output=["odd"])
        attribute = node.attribute.add(name="value")
        attribute.type = onnx.AttributeProto.TENSOR
        attribute.t.CopyFrom(model.graph.initializer[0])
        external(attribute.t, "/etc/passwd")

    def weights_of_a_branch(model):
        node = model.graph.node.add(op_type="If", output=["odd"])
        attribute = node.attribute.add(name="then_branch")
        attribute.type = onnx.AttributeProto.GRAPH
        tensor = attribute.g.initializer.add()
        tensor.CopyFrom(model.graph.initializer[0])
        external(tensor, "/etc/passwd")

    def weights_of_a_function(model):
        node = model.functions.add(name="f", domain="x").node.add(op_type="C")
        external(node.attribute.add(name="v").t, "/etc/passwd")

    def weights_of_a_sparse(model):
        sparse = model.graph.sparse_initializer.add()
        external(sparse.values, "/etc/passwd")

    def deep(model):
        graph = model.graph
        for _ in range(70):
            node = graph.node.add(op_type="If", output=["x"])
            graph = node.attribute.add(name="then_branch").g

    def operation(model):
        model.graph.node.add(op_type="Evil", domain="x", output=["y"])

    def large(model):
        del model.graph.initializer[0].dims[:]
        model.graph.initializer[0].dims.extend([10**6, 10**6])

    def input_name(model):
        for node in model.graph.node:
            for index, name in enumerate(node.input):
                if name == "observation":
                    node.input[index] = "other"
        model.graph.input[0].name = "other"

    for name, change in {
        "etc": weights("/etc/passwd"),
        "above": weights("../../../../etc/passwd"),
        "zero": weights("/dev/zero"),
        "beside": weights("weights.bin"),
        "in_an_attribute": weights_of_an_attribute,
        "in_a_branch": weights_of_a_branch,
        "in_a_function": weights_of_a_function,
        "in_a_sparse_tensor": weights_of_a_sparse,
        "deep": deep,
        "operation": operation,
        "large": large,
        "input_name": input_name,
    }.items():
        model = onnx.load(whole)
        change(model)
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        yield f"onnx_{name}", path
    (folder / "weights.bin").write_bytes(bytes(2**12))
    content = whole.read_bytes()
    for name, made in {
        "empty": b"",
        "words": b"no model",
        "half": content[: len(content) // 2],
        "fields": content + b"\x08\x01" * 2**20,
        "no_graph": b"\x08\x01",
    }.items():
        path = folder / f"{name}.onnx"
        path.write_bytes(made)
        yield f"onnx_{name}", path
