"""A file that somebody else made runs nothing, and costs next to nothing."""

import io
import json
import os
import stat
import struct
import sys
import warnings
import zipfile

import h5py
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.watching import watched

CONFIG, METADATA, WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
COMMAND = "touch canary"


def members_of(path):
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
    """Changes the config of members; `change` gets and may return it."""
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
        "registered_name": name if module != "builtins" else "function",
    }


def _as_agent(module, name):
    return lambda config: {
        "module": module,
        "class_name": name,
        "config": {},
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
    "popen": _as_agent("subprocess", "Popen"),
    "own_module": _as_layer("canary_module", "Canary"),
    **{
        f"function {name} of {module}": _in_layer(
            activation=_function(module, name)
        )
        for module, name in (
            *(("keras.utils", "get_file"), ("keras.saving", "load_model")),
            *(("keras.models", "clone_model"), ("keras.models", "load_model")),
            *(("keras.models", "save_model"), ("keras.layers", "deserialize")),
            *(("keras.models", "model_from_json"), ("keras", "device")),
            *(("keras.activations", "get"), ("keras.random", "uniform")),
            *(("keras.optimizers", "deserialize"), ("keras", "remat")),
            *(("keras.initializers", "get"), ("builtins", "get")),
            ("keras.activations", "deserialize"),
            ("keras.config", "enable_unsafe_deserialization"),
        )
    },
    "function_as_class": _as_layer("keras.models", "load_model", filepath="x"),
    **{
        f"layer {name}": _as_layer("keras.layers", name, **settings)
        for name, settings in {
            "TFSMLayer": {"filepath": "evil"},
            "TorchModuleWrapper": {"module": "AAAA"},
            "JaxLayer": {"call_fn": "f"},
            "StringLookup": {"vocabulary": "/etc/passwd"},
            "TextVectorization": {"vocabulary": "/etc/passwd"},
            "Embedding": {"input_dim": 10**9, "output_dim": 9},
        }.items()
    },
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
    "keras_hub": _as_layer("keras_hub.models", "Backbone"),
    "typespec": _in_layer(
        activation={**_function("os", "x"), "class_name": "__typespec__"}
    ),
    "unknown_agent": _as_agent("keras_rl2.agents", "keras_rl2>Evil"),
    "a_layer_is_no_agent": _as_agent("keras.layers", "Dense"),
    "units": _in_layer(units=10**8),
    "more_units": _in_layer(units=2**62),
    "units_of_a_product": lambda config: (
        [layer(config, each)["config"].update(units=30_000) for each in (1, 2)]
        and None
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
    "gamma_of_text": lambda config: config["config"].update(gamma="high"),
    "config_of_text": lambda config: config.update(config="text"),
    "class_of_list": lambda config: config.update(class_name=["PPO"]),
    "no_actor": lambda config: config["config"].update(actor=None),
    "optimizer": lambda config: config["compile_config"].update(
        optimizer=_as_agent("shutil", "rmtree")(config)
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
    """Makes the files, of that of a small PPO; yields names and paths."""
    members = members_of(honest)
    made = [
        *(
            (name, with_config(members, each), 0)
            for name, each in CONFIGS.items()
        ),
        *(
            (name, with_weights(members, each), 0)
            for name, each in NUMBERS.items()
        ),
        *_archives(members),
    ]
    for name, pairs, how in made:
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


REASONS = {
    "units": "asks for more weights than the [0-9]+ that are in the file",
    "lambda_layer": "keras.layers.Lambda, which no agent is made of",
    "own_module": "canary_module.Canary, which no agent is made of",
    "a_layer_is_no_agent": "keras.layers.Dense, which is no agent",
    "function clone_model of keras.models": "clone_model, which no agent is",
    "function deserialize of keras.activations": "deserialize, which no agent",
    "function get of builtins": "builtins.get, which no agent is made of",
    "nan": "32 of 32 numbers of .*kernel are not finite",
    "updates_below_zero": "iteration is below zero",
    "never_written": "0 of 8,589,934,592 bytes, of which 0 are in",
    "external_link": "an external link 0, which is not followed",
}
MEBIBYTES = 1024


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "agent.keras"
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.optimizer.build(agent.trainable_variables)
    agent.save(path)
    return path


def refusal(said=""):
    return pytest.raises(ValueError, match=f"Expected a saved agent.*{said}")


def test_all_are_refused(honest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "canary_module.py").write_text("open('canary', 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    files = dict(hostile(tmp_path, honest))
    # What the first one to be loaded imports is not the files' doing.
    rl.load(honest)
    before = {each.name for each in tmp_path.iterdir()}
    for name, path in files.items():
        with (
            watched(tmp_path) as watch,
            refusal(REASONS.get(name, "")) as error,
        ):
            rl.load(path)
        text = str(error.value)
        assert str(path) in text, name
        assert "root:" not in text
        assert len(text.splitlines()) == 1
        assert watch.done == [], name
        assert watch.mebibytes < MEBIBYTES, name
    assert len(files) >= 60
    assert REASONS.keys() <= files.keys()
    assert {each.name for each in tmp_path.iterdir()} == before
    assert "canary_module" not in sys.modules


def test_what_keras_itself_says_of_numbers(honest, tmp_path):
    path = tmp_path / "agent.keras"
    assert isinstance(keras.saving.load_model(honest), rl.PPO)
    write(path, with_weights(members_of(honest), NUMBERS["steps_below_zero"]))
    with pytest.raises(ValueError, match="env_steps=-5"):
        keras.saving.load_model(path)
    # It cannot be known there, where networks come after the agent.
    write(path, with_weights(members_of(honest), NUMBERS["nan"]))
    assert np.isnan(keras.saving.load_model(path).get_weights()[0]).any()


def test_what_is_no_agent_is_not_made(honest, tmp_path):
    made = []

    class Own(keras.layers.Layer):
        def __init__(self, **kwargs):
            made.append(kwargs)
            super().__init__(**kwargs)

    def own(config):
        return {"class_name": "Own", "registered_name": "Own", "config": {}}

    path = tmp_path / "agent.keras"
    write(path, with_config(members_of(honest), own))
    with refusal("which is no agent"):
        rl.load(path, custom_objects={"Own": Own})
    assert made == []


class TestSeal:
    @pytest.mark.parametrize(
        "count", [100, pytest.param(1000, marks=pytest.mark.slow)]
    )
    def test_no_bit_flips_and_no_byte_is_missing_in_silence(
        self, count, honest, tmp_path
    ):
        content = honest.read_bytes()
        path = tmp_path / "agent.keras"
        generator = np.random.default_rng(count)
        for bit in generator.choice(8 * len(content), count, replace=False):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << (bit % 8)
            for changed in (flipped, content[: bit // 8]):
                path.write_bytes(changed)
                with refusal():
                    rl.load(path)

    def test_files_without_one_load(self, honest, tmp_path):
        path = tmp_path / "agent.keras"
        write(path, members_of(honest))
        assert isinstance(rl.load(path), rl.PPO)

    def test_a_later_format_is_named(self, honest, tmp_path):
        path = tmp_path / "agent.keras"
        changed = honest.read_bytes().replace(b'"format": 1', b'"format": 2')
        path.write_bytes(changed)
        with pytest.raises(ValueError, match="seal is of format 2, not 1"):
            rl.load(path)


def test_an_agent_comes_back(tmp_path):
    path = tmp_path / "agent.keras"
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(8,), seed=0)
    agent.optimizer.build(agent.trainable_variables)
    agent.env_steps = 7
    agent.save(path)
    loaded = rl.load(path)
    assert loaded.env_steps == 7
    for ours, theirs in zip(agent.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def saved(path, *layers, **custom_objects):
    """Saves an agent of a network of some layers."""
    network = keras.Sequential([keras.Input((4,)), *layers])
    agent = rl.REINFORCE(network, seed=0)
    env = rl.envs.make_env("CartPole-v1")
    agent.bind(env.observation_space, env.action_space)
    with keras.saving.custom_object_scope(custom_objects):
        agent.save(path)


@pytest.mark.slow
def test_activations_of_keras_load(honest, tmp_path):
    path = tmp_path / "agent.keras"
    for module in ("builtins", "keras.activations"):
        mish = _in_layer(activation=_function(module, "mish"))
        write(path, with_config(members_of(honest), mish))
        assert isinstance(rl.load(path), rl.PPO)
    names = {
        name
        for name in dir(keras.activations)
        if not name.startswith("_")
        and name not in ("deserialize", "get", "serialize", "glu", "threshold")
    }
    assert {"relu", "gelu", "sparsemax", "log_softmax"} <= names
    saved(path, *(keras.layers.Dense(2, name) for name in sorted(names)))
    assert isinstance(rl.load(path), rl.REINFORCE)


def test_layers_of_the_user(tmp_path):
    class Mine(keras.layers.Dense):
        pass

    path = tmp_path / "agent.keras"
    saved(path, Mine(2), Mine=Mine)
    with pytest.raises(ValueError, match="Mine, which no agent is made of"):
        rl.load(path)
    assert isinstance(rl.load(path, {"Mine": Mine}), rl.REINFORCE)


def test_initializers_of_the_user_may_hold_tensors(tmp_path):
    class Table(keras.initializers.Initializer):
        numbers = keras.ops.ones((4, 2))

        def __call__(self, shape, dtype=None):
            return keras.ops.reshape(self.numbers, shape)

    path = tmp_path / "agent.keras"
    saved(path, keras.layers.Dense(2, kernel_initializer=Table()), Table=Table)
    assert isinstance(rl.load(path, {"Table": Table}), rl.REINFORCE)


def test_other_names(honest, tmp_path):
    for name in ("agent.zip", "agent.txt"):
        path = tmp_path / name
        path.write_bytes(honest.read_bytes())
        with pytest.raises(ValueError, match="whose name ends in"):
            rl.load(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        rl.load(tmp_path / "nowhere.keras")
