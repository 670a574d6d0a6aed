"""SavedModels of strangers, made to do harm when they are opened."""

import json
import os
import shutil

import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

MANIFEST = "assets.extra/keras_rl2.json"
SERVE = "serving_default"


def _as_policy(path, whole):
    """Gives a SavedModel the manifest of another."""
    os.makedirs(path / "assets.extra")
    shutil.copy(whole / MANIFEST, path / MANIFEST)


def _does(canary, make, action=None):
    """Returns a function that writes a SavedModel which does something."""

    def write(path, whole):
        module = tf.Module()
        module.weight = tf.Variable(tf.ones((4,)))
        name = str(canary)

        def serve(observation):
            done = make(name, observation)
            with tf.control_dependencies([done] if done is not None else []):
                total = tf.reduce_sum(observation * module.weight, axis=-1)
                return {"output_0": tf.cast(total > 0, tf.int32)}

        spec = tf.TensorSpec((None, 4), tf.float32, name="observation")
        signature = tf.function(serve).get_concrete_function(spec)
        if action is not None:
            action(module, name)
        tf.saved_model.save(module, str(path), {SERVE: signature})
        _as_policy(path, whole)

    return write


def _in_function(name, observation):
    @tf.function
    def inner(observation):
        tf.io.write_file(name, "x")
        return tf.reduce_sum(observation)

    return inner(observation)


def _in_loop(name, observation):
    def body(i):
        tf.io.write_file(name, "x")
        return i + 1

    return tf.while_loop(lambda i: i < 1, body, [0])[0]


def _in_branch(name, observation):
    def branch():
        tf.io.write_file(name, "x")
        return 1

    return tf.cond(tf.reduce_sum(observation) > -1e9, branch, lambda: 0)


def _saved(name, observation):
    return tf.raw_ops.SaveV2(
        prefix=name,
        tensor_names=["x"],
        shape_and_slices=[""],
        tensors=[observation],
    )


def _numpy(name, observation):
    return tf.numpy_function(lambda x: x, [observation], tf.float32)


def _table(module, name):
    path = f"{name}.txt"
    with open(path, "w", encoding="utf-8") as file:
        file.write("a\n")
    module.table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(
            path, tf.string, 0, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        ),
        1,
    )
    module.look = tf.function(
        lambda x: module.table.lookup(x),
        input_signature=[tf.TensorSpec((None,), tf.string)],
    )


def _numbers(module, name):
    """A table that is filled as it is loaded, of no file."""
    module.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), 0
    )


def _asset(module, name):
    path = f"{name}.asset"
    with open(path, "w", encoding="utf-8") as file:
        file.write("a")
    module.asset = tf.saved_model.Asset(path)


def _another_signature(module, name):
    """Something that nobody calls is no better."""

    @tf.function(input_signature=[])
    def other():
        tf.io.write_file(name, "x")
        return 0

    module.other = other


def _nothing(name, observation):
    return None


#: What the graph does: written by TensorFlow itself.
GRAPHS = {
    "writes": lambda name, _: tf.io.write_file(name, "x"),
    "writes_in_a_function": _in_function,
    "writes_in_a_loop": _in_loop,
    "writes_in_a_branch": _in_branch,
    "reads": lambda name, _: tf.io.read_file("/etc/passwd"),
    "lists": lambda name, _: tf.io.matching_files("/*"),
    "prints": lambda name, _: tf.print("x", output_stream=f"file://{name}"),
    "saves": _saved,
    "runs_python": _numpy,
    "restores": lambda name, _: tf.raw_ops.RestoreV2(
        prefix=name,
        tensor_names=["x"],
        shape_and_slices=[""],
        dtypes=[tf.float32],
    )[0],
    "summarises": lambda name, _: tf.raw_ops.CreateSummaryFileWriter(
        writer=tf.raw_ops.SummaryWriter(),
        logdir=name,
        max_queue=1,
        flush_millis=1,
        filename_suffix="x",
    ),
    "decodes": lambda name, _: tf.io.decode_raw("abcd", tf.float32),
    "datasets": lambda name, _: tf.raw_ops.TextLineDataset(
        filenames=["/etc/passwd"], compression_type="", buffer_size=0
    ),
}
#: What else is in the SavedModel.
OBJECTS = {
    "table": _table,
    "table_of_numbers": _numbers,
    "asset": _asset,
    "another_signature": _another_signature,
}


def _function(graph, *names):
    """Returns the function that computes the policy."""
    names = names or ("signature_wrapper", "serve")
    return next(
        each
        for each in graph.graph_def.library.function
        if any(name in each.signature.name for name in names)
    )


def _save_function(graph):
    return next(
        each.signature.name
        for each in graph.graph_def.library.function
        if "traced_save" in each.signature.name
    )


def _saver_as_object(model):
    graph = model.meta_graphs[0]
    for each in graph.object_graph_def.nodes:
        if each.WhichOneof("kind") == "bare_concrete_function":
            each.bare_concrete_function.concrete_function_name = _save_function(
                graph
            )


def _saver_as_function(model):
    graph = model.meta_graphs[0]
    node = _function(graph).node_def.add()
    node.name, node.op = "saves", "StatefulPartitionedCall"
    node.attr["f"].func.name = _save_function(graph)


def _saver_by_name(model):
    graph = model.meta_graphs[0]
    node = _function(graph).node_def.add()
    node.name, node.op = "saves", _save_function(graph)


def _saver_takes_a_place(model):
    graph = model.meta_graphs[0]
    for each in graph.graph_def.library.function:
        each.attr["api_implements"].s = b"same"


def _calls_itself(model):
    one = _function(model.meta_graphs[0])
    node = one.node_def.add()
    node.name, node.op = "again", "StatefulPartitionedCall"
    node.attr["f"].func.name = one.signature.name


def _doubles(model):
    """Functions that call the next one twice: 2^60 operations."""
    graph = model.meta_graphs[0]
    library = graph.graph_def.library
    for level in range(60):
        one = library.function.add()
        one.signature.name = f"double_{level}"
        for index in range(2 if level < 59 else 0):
            node = one.node_def.add()
            node.name, node.op = f"n{index}", "StatefulPartitionedCall"
            node.attr["f"].func.name = f"double_{level + 1}"
    node = _function(graph).node_def.add()
    node.name, node.op = "first", "StatefulPartitionedCall"
    node.attr["f"].func.name = "double_0"


def _constant(model):
    node = _function(model.meta_graphs[0]).node_def.add()
    node.name, node.op = "large", "Const"
    node.attr["dtype"].type = tf.float32.as_datatype_enum
    tensor = node.attr["value"].tensor
    tensor.dtype = tf.float32.as_datatype_enum
    for _ in range(3):
        tensor.tensor_shape.dim.add().size = 10**4
    tensor.float_val.append(1.0)


def _operations(model):
    one = _function(model.meta_graphs[0])
    for index in range(2**17 + 1):
        node = one.node_def.add()
        node.name, node.op = f"n{index}", "NoOp"


def _unknown_operation(model):
    node = _function(model.meta_graphs[0]).node_def.add()
    node.name, node.op = "odd", "NobodyKnowsIt"


def _missing_function(model):
    node = _function(model.meta_graphs[0]).node_def.add()
    node.name, node.op = "odd", "PartitionedCall"
    node.attr["f"].func.name = "nowhere"


def _registered(model):
    model.meta_graphs[0].object_graph_def.nodes[0].registered_name = "x.Evil"


def _identifier(model):
    node = model.meta_graphs[0].object_graph_def.nodes[0]
    node.user_object.identifier = "optimizer"


def _saveable(model):
    node = model.meta_graphs[0].object_graph_def.nodes[0]
    node.saveable_objects["x"].save_function = 1


def _no_signature(model):
    del model.meta_graphs[0].signature_def[SERVE]


def _no_signature_object(model):
    for each in model.meta_graphs[0].object_graph_def.nodes:
        for child in each.children:
            if child.local_name == SERVE:
                child.local_name = "another"


def _of_version_1(model):
    model.meta_graphs[0].ClearField("object_graph_def")


def _no_graph(model):
    del model.meta_graphs[:]


def _two_graphs(model):
    model.meta_graphs.add().CopyFrom(model.meta_graphs[0])


def _cycle(model):
    """An object that is its own dependency."""
    node = model.meta_graphs[0].object_graph_def.nodes[1]
    reference = node.dependencies.add()
    reference.local_name, reference.node_id = "x", 1


def _no_object(model):
    child = model.meta_graphs[0].object_graph_def.nodes[0].children.add()
    child.local_name, child.node_id = "x", 10**6


def _wide_variable(model):
    for each in model.meta_graphs[0].object_graph_def.nodes:
        if each.WhichOneof("kind") == "variable":
            each.variable.shape.dim[0].size = 10**12


#: What is changed in `saved_model.pb`.
MODELS = {
    name.removeprefix("_"): change
    for name, change in {
        each.__name__: each
        for each in (
            *(_saver_as_object, _saver_as_function, _saver_by_name),
            *(_saver_takes_a_place, _calls_itself, _doubles, _constant),
            *(_operations, _unknown_operation, _missing_function),
            *(_registered, _identifier, _saveable, _no_signature),
            *(_no_signature_object, _of_version_1, _no_graph, _two_graphs),
            *(_cycle, _no_object, _wide_variable),
        )
    }.items()
}


def _replaced(name, content):
    def change(path):
        (path / name).write_bytes(content)

    return change


def _cut(name):
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


def _linked(name, target):
    def change(path):
        (path / name).unlink()
        (path / name).symlink_to(target)

    return change


def _pipe(name):
    def change(path):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).unlink(missing_ok=True)
        os.mkfifo(path / name)

    return change


def _manifest(change):
    def changed(path):
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        change(manifest)
        (path / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")

    return changed


_DATA = "variables/variables.data-00000-of-00001"
#: What is changed in the folder of a SavedModel.
FOLDERS = {
    "no_protobuf": _replaced("saved_model.pb", b"no graph"),
    "no_content": _replaced("saved_model.pb", b""),
    "long_graph": _replaced("saved_model.pb", bytes(2**24 + 1)),
    "half_a_graph": _cut("saved_model.pb"),
    "half_the_variables": _cut(_DATA),
    "slice_of_much": _slice_of_much,
    "half_the_index": _cut("variables/variables.index"),
    "zeros": _linked(_DATA, "/dev/zero"),
    "pipe_of_variables": _pipe("variables/variables.index"),
    "pipe_of_a_fingerprint": _pipe("fingerprint.pb"),
    "pipe_of_notes": _pipe("debug/saved_model_debug_info.pb"),
    "pipe_of_a_manifest": _pipe(MANIFEST),
    "no_variables": lambda path: shutil.rmtree(path / "variables"),
    "another_name": _manifest(
        lambda manifest: manifest["inputs"][0].update(name="other")
    ),
    "another_output": _manifest(
        lambda manifest: manifest["outputs"][0].update(name="other")
    ),
    "another_path": _manifest(
        lambda manifest: manifest["inputs"][0].update(path="x.y")
    ),
    "no_outputs": _manifest(lambda manifest: manifest.update(outputs=[])),
    "noise": _manifest(
        lambda manifest: manifest["inputs"].append(
            {"name": "n", "shape": [None, 1], "dtype": "float32"}
            | {"role": "noise"}
        )
    ),
    "space": _manifest(
        lambda manifest: manifest.update(observation_space={"type": "Odd"})
    ),
}


def saved_models(folder, whole, canary, names=None):
    """Makes folders in which TensorFlow finds something to run, or nothing.

    Args:
        folder: Path. Where to.
        whole: Path. The honest one.
        canary: Path. A file that some of them would write.
        names: Which of them; all by default.

    Yields:
        Names and paths.
    """

    def asked(made):
        return [
            (name, how) for name, how in made if names is None or name in names
        ]

    kinds = [(name, _does(canary, make)) for name, make in GRAPHS.items()] + [
        (name, _does(canary, _nothing, action))
        for name, action in OBJECTS.items()
    ]
    for name, write in asked(kinds):
        path = folder / name
        write(path, whole)
        yield name, path
    for name, change in asked(MODELS.items()):
        path = folder / name
        shutil.copytree(whole, path)
        content = (path / "saved_model.pb").read_bytes()
        model = SavedModel.FromString(content)
        change(model)
        (path / "saved_model.pb").write_bytes(model.SerializeToString())
        yield name, path
    for name, change in asked(FOLDERS.items()):
        path = folder / name
        shutil.copytree(whole, path)
        change(path)
        yield name, path
