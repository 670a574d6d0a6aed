"""Files that are called agents, and are made to do harm."""

import io
import json
import os
import stat
import struct
import warnings
import zipfile

import h5py
import numpy as np

CONFIG, METADATA, WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
COMMAND = "touch canary"


def members_of(path):
    """Returns what an archive holds, bytes by names."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, how=zipfile.ZIP_STORED):
    """Writes an archive of pairs or a dict; no seal is on it."""
    pairs = members.items() if isinstance(members, dict) else members
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", how) as archive:
        # Of names that are there already.
        warnings.simplefilter("ignore")
        for name, content in pairs:
            archive.writestr(name, content)


def with_config(members, change):
    """Returns members with another config; `change` gets and may return it."""
    config = json.loads(members[CONFIG])
    changed = change(config)
    text = json.dumps(config if changed is None else changed)
    return {**members, CONFIG: text.encode()}


def with_weights(members, change):
    """Returns members with other weights; `change` gets the open file."""
    memory = io.BytesIO(members[WEIGHTS])
    with h5py.File(memory, "r+") as file:
        change(file)
    return {**members, WEIGHTS: memory.getvalue()}


def layer(config, index=1):
    """Returns a layer of the actor within an agent's config."""
    return config["config"]["actor"]["config"]["layers"][index]


def _in_layer(**settings):
    def change(config):
        layer(config)["config"].update(settings)

    return change


def _as_layer(module, name, /, **settings):
    def change(config):
        one = layer(config)
        one.update(module=module, class_name=name, registered_name=None)
        one["config"] = {"name": one["name"], **settings}

    return change


def _function(module, name):
    return {
        "module": module,
        "class_name": "function",
        "config": name,
        "registered_name": name,
    }


def _as_agent(module, name, inner=None):
    return lambda config: {
        "module": module,
        "class_name": name,
        "config": inner or {},
        "registered_name": name,
    }


def _space(**settings):
    def change(config):
        config["config"]["observation_space"].update(settings)

    return change


def _operation(config):
    """Puts an operation into the actor that needs no input to be done."""
    config["config"]["actor"]["config"]["layers"].append(
        {
            "module": "keras.src.ops.numpy",
            "class_name": "Full",
            "config": {"name": "full", "shape": [10**10]},
            "registered_name": None,
            "name": "full",
            "inbound_nodes": [{"args": [1.0], "kwargs": {}}],
        }
    )


#: What is asked for that runs code, or reads what it should not.
CONFIGS = {
    "os_system": _as_layer("os", "system", command=COMMAND),
    "posix_system_as_agent": _as_agent("posix", "system"),
    "eval": _in_layer(activation=_function("builtins", "eval")),
    "popen": _as_agent("subprocess", "Popen", {"args": COMMAND}),
    "own_module": _as_layer("canary_module", "Canary"),
    "get_file": _in_layer(activation=_function("keras.utils", "get_file")),
    "load_model": _in_layer(activation=_function("keras.saving", "load_model")),
    **{
        f"function_{module}_{name}": _in_layer(
            activation=_function(f"keras.{module}".rstrip("."), name)
        )
        for module, name in (
            *(("models", "clone_model"), ("models", "load_model")),
            *(("models", "save_model"), ("models", "model_from_json")),
            *(("layers", "deserialize"), ("activations", "get")),
            *(("random", "uniform"), ("optimizers", "deserialize")),
            *(("initializers", "get"), ("", "device"), ("", "remat")),
        )
    },
    "function_of_no_module": _in_layer(activation=_function("builtins", "get")),
    "function_as_class": _as_layer("keras.models", "load_model", filepath="x"),
    "unsafe": _in_layer(
        activation=_function("keras.config", "enable_unsafe_deserialization")
    ),
    "lambda_layer": _as_layer(
        "keras.layers",
        "Lambda",
        function={
            "class_name": "__lambda__",
            "config": {"code": "4wAAAA==", "defaults": None, "closure": None},
        },
    ),
    "lambda_by_dots": _as_layer("keras", "layers.Lambda", function="relu"),
    "lambda_as_activation": _in_layer(
        activation={"class_name": "__lambda__", "config": {"value": "4wAAAA=="}}
    ),
    "saved_model": _as_layer("keras.layers", "TFSMLayer", filepath="evil"),
    "torch": _as_layer("keras.layers", "TorchModuleWrapper", module="AAAA"),
    "jax": _as_layer("keras.layers", "JaxLayer", call_fn="f"),
    "vocabulary": _as_layer(
        "keras.layers", "StringLookup", vocabulary="/etc/passwd"
    ),
    "text": _as_layer(
        "keras.layers", "TextVectorization", vocabulary="/etc/passwd"
    ),
    "keras_hub": _as_layer("keras_hub.models", "Backbone"),
    "typespec": _in_layer(
        activation={
            "class_name": "__typespec__",
            "config": [],
            "spec_name": "x",
            "module": "os",
            "registered_name": "x",
        }
    ),
    "unknown_agent": _as_agent("keras_rl2.agents", "keras_rl2>Evil"),
    "a_layer_is_no_agent": _as_agent("keras.layers", "Dense", {"units": 3}),
    "units": _in_layer(units=10**8),
    "more_units": _in_layer(units=2**62),
    "units_of_a_product": lambda config: (
        [layer(config, each)["config"].update(units=30_000) for each in (1, 2)]
        and None
    ),
    "embedding": _as_layer(
        "keras.layers", "Embedding", input_dim=10**9, output_dim=9
    ),
    "build_config": lambda config: layer(config).update(
        build_config={"input_shape": [None, 10**9]}
    ),
    "operation": _operation,
    "observation_space": _space(shape=[10**6, 10**6], low=0.0, high=1.0),
    "shape_of_input": lambda config: layer(config, 0)["config"].update(
        batch_shape=[10**9, 10**9]
    ),
    "list": lambda config: [config],
    "number": lambda config: 7,
    "gamma_of_text": lambda config: config["config"].update(gamma="high"),
    "config_of_text": lambda config: config.update(config="text"),
    "class_of_list": lambda config: config.update(class_name=["PPO"]),
    "layers_of_numbers": lambda config: config["config"]["actor"][
        "config"
    ].update(layers=[1, 2, 3]),
    "no_actor": lambda config: config["config"].update(actor=None),
    "optimizer": lambda config: config["compile_config"].update(
        optimizer={
            "module": "shutil",
            "class_name": "rmtree",
            "config": {"path": "."},
            "registered_name": "rmtree",
        }
    ),
}

KERNEL = "acting_networks/functional/layers/dense/vars/0"


def _replace(key, make):
    def change(file):
        old = file[key][()]
        del file[key]
        make(file, key, old)

    return change


def _write(value):
    return lambda file, key, old: file.create_dataset(
        key, data=np.full_like(old, value)
    )


def _external_storage(file, key, old):
    file.create_dataset(
        key, old.shape, old.dtype, external=[("/etc/passwd", 0, old.nbytes)]
    )


def _link(link):
    def make(file, key, old):
        file[key] = link

    return make


def _shape_bomb(file, key, old):
    file.create_dataset(
        key, (2**17, 2**17), "f4", chunks=(2**10, 2**10), compression="gzip"
    )


def _unallocated(file, key, old):
    file.create_dataset(key, (2**16, 2**15), "f4")


def _virtual(file, key, old):
    layout = h5py.VirtualLayout(old.shape, old.dtype)
    layout[...] = h5py.VirtualSource("/etc/passwd", "x", old.shape)
    file.create_virtual_dataset(key, layout)


def _cycle(file, key, old):
    group = file.create_group(key)
    group["a"], group["b"] = file["/"], group


#: What is in the file of weights.
NUMBERS = {
    "external_link": _replace(KERNEL, _link(h5py.ExternalLink("o.h5", "/x"))),
    "soft_link": _replace(KERNEL, _link(h5py.SoftLink("/optimizer/vars/1"))),
    "external_storage": _replace(KERNEL, _external_storage),
    "virtual": _replace(KERNEL, _virtual),
    "shape_bomb": _replace(KERNEL, _shape_bomb),
    "never_written": _replace(KERNEL, _unallocated),
    "cycle": _replace(KERNEL, _cycle),
    "objects": _replace(
        KERNEL,
        lambda file, key, old: file.create_dataset(key, data=["os", "system"]),
    ),
    "another_shape": _replace(
        KERNEL, lambda file, key, old: file.create_dataset(key, data=old.T)
    ),
    "nan": _replace(KERNEL, _write(np.nan)),
    "infinity_in_a_slot": _replace("optimizer/vars/2", _write(np.inf)),
    "steps_below_zero": _replace("vars/env_steps", _write(-5)),
    "updates_below_zero": _replace("optimizer/vars/0", _write(-1)),
    "steps_of_a_list": _replace(
        "vars/env_steps",
        lambda file, key, old: file.create_dataset(key, data=np.arange(9)),
    ),
    "nothing": lambda file: [file.__delitem__(key) for key in list(file)],
}


def _link_member(name, target):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target


def _declared(path, name, size):
    """Changes how large a member is said to be."""
    content = bytearray(path.read_bytes())
    at = content.rindex(name.encode()) - 46
    struct.pack_into("<I", content, at + 24, size)
    path.write_bytes(content)


def _archives(members):
    zeros = bytes(2**24)
    pairs = list(members.items())
    yield "extra_member", [*pairs, ("../../canary", b"")], 0
    yield "absolute_member", [*pairs, ("/canary", b"")], 0
    yield "asset", [*pairs, ("assets/x", b"")], 0
    yield "twice", [*pairs, (CONFIG, members[CONFIG])], 0
    yield "link", [_link_member(CONFIG, "/etc/passwd"), *pairs[::2]], 0
    yield "missing", pairs[:2], 0
    yield "bomb_config", {**members, CONFIG: zeros}, 8
    yield "bomb_weights", {**members, WEIGHTS: zeros}, 8
    yield "bomb_metadata", {**members, METADATA: zeros}, 8
    yield "deep", {**members, CONFIG: b"[" * 10**5 + b"]" * 10**5}, 0
    yield "deep_object", {**members, CONFIG: b'{"a":' * 10**5}, 0
    yield "no_json", {**members, CONFIG: b"\xff\xfe"}, 0
    yield "no_hdf5", {**members, WEIGHTS: b"no numbers"}, 0
    yield "long_number", {**members, CONFIG: b"9" * 10**5}, 0


def hostile(folder, honest):
    """Makes the files.

    Args:
        folder: Path. Where to.
        honest: Path. The file of a small PPO.

    Yields:
        Names and paths.
    """
    members = members_of(honest)
    for name, change in CONFIGS.items():
        path = folder / f"{name}.keras"
        write(path, with_config(members, change))
        yield name, path
    for name, change in NUMBERS.items():
        path = folder / f"{name}.keras"
        write(path, with_weights(members, change))
        yield name, path
    for name, pairs, how in _archives(members):
        path = folder / f"{name}.keras"
        write(path, pairs, how)
        yield name, path
    yield from _broken(folder, honest, members)


def _broken(folder, honest, members):
    whole = honest.read_bytes()
    for name, content in {
        "empty": b"",
        "words": b"no agent",
        "half": whole[: len(whole) // 2],
        "without_its_last_byte": whole[:-1],
        "without_a_seal_that_it_had": whole[: whole.rindex(b'{"library"')],
    }.items():
        path = folder / f"{name}.keras"
        path.write_bytes(content)
        yield name, path
    path = folder / "lies.keras"
    write(path, members)
    _declared(path, WEIGHTS, 2**31)
    yield "lies", path
    path = folder / "folder.keras"
    path.mkdir()
    yield "folder", path
    path = folder / "zero.keras"
    path.symlink_to("/dev/zero")
    yield "zero", path
    path = folder / "pipe.keras"
    os.mkfifo(path)
    yield "pipe", path
