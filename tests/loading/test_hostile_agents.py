"""A file that somebody else made runs nothing, and costs next to nothing."""

import sys

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.hostile_agents import CONFIGS
from support.hostile_agents import NUMBERS
from support.hostile_agents import hostile
from support.hostile_agents import layer
from support.hostile_agents import members_of
from support.hostile_agents import with_config
from support.hostile_agents import with_weights
from support.hostile_agents import write
from support.watching import watched

_MEBIBYTES = 1024


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "agent.keras"
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.optimizer.build(agent.trainable_variables)
    agent.save(path)
    return path


def refusal():
    return pytest.raises(ValueError, match="Expected a saved agent")


def test_all_are_refused(honest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "canary_module.py").write_text("open('canary', 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    files = dict(hostile(tmp_path, honest))
    # What the first one to be loaded imports is not the files' doing.
    rl.load(honest)
    before = {each.name for each in tmp_path.iterdir()}
    for name, path in files.items():
        with watched(tmp_path) as watch, refusal() as refused:
            rl.load(path)
        text = str(refused.value)
        assert str(path) in text, name
        assert "root:" not in text
        assert len(text.splitlines()) == 1
        assert watch.done == [], name
        assert watch.mebibytes < _MEBIBYTES, name
    assert len(files) >= 60
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


def test_refusals_say_why(honest, tmp_path):
    path = tmp_path / "agent.keras"
    members = members_of(honest)
    for name, said in {
        "units": "asks for more weights than the [0-9]+ that are in the file",
        "lambda_layer": "keras.layers.Lambda, which no agent is made of",
        "own_module": "canary_module.Canary, which no agent is made of",
        "a_layer_is_no_agent": "keras.layers.Dense, which is no agent",
    }.items():
        write(path, with_config(members, CONFIGS[name]))
        with pytest.raises(ValueError, match=said):
            rl.load(path)
    for name, said in {
        "nan": "32 of 32 numbers of .*kernel are not finite",
        "updates_below_zero": "iteration is below zero",
        "never_written": "0 of 8,589,934,592 bytes, of which 0 are in",
        "external_link": "an external link 0, which is not followed",
    }.items():
        write(path, with_weights(members, NUMBERS[name]))
        with pytest.raises(ValueError, match=said):
            rl.load(path)


def test_functions_are_those_of_a_list(honest, tmp_path):
    path = tmp_path / "agent.keras"
    members = members_of(honest)

    def of(module, name):
        return lambda config: layer(config)["config"].update(
            activation={
                "module": module,
                "class_name": "function",
                "config": name,
                "registered_name": name if module != "builtins" else "function",
            }
        )

    for module, name in (
        ("keras.models", "clone_model"),
        ("keras.activations", "deserialize"),
        ("builtins", "get"),
    ):
        write(path, with_config(members, of(module, name)))
        with pytest.raises(ValueError, match=f"{module}.{name}, which no agen"):
            rl.load(path)
    for module in ("builtins", "keras.activations"):
        write(path, with_config(members, of(module, "mish")))
        assert isinstance(rl.load(path), rl.PPO)


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
    with pytest.raises(ValueError, match="which is no agent"):
        rl.load(path, custom_objects={"Own": Own})
    assert made == []


@pytest.mark.slow
def test_all_activations_of_keras_load(tmp_path):
    names = {
        name
        for name in dir(keras.activations)
        if not name.startswith("_")
        and name not in ("deserialize", "get", "serialize", "glu", "threshold")
    }
    assert {"relu", "gelu", "sparsemax", "log_softmax"} <= names
    inputs = keras.Input((4,))
    x = inputs
    for name in sorted(names):
        x = keras.layers.Dense(2, getattr(keras.activations, name))(x)
    agent = rl.REINFORCE(keras.Model(inputs, x), seed=0)
    agent.bind(*spaces_of("CartPole-v1"))
    agent.save(tmp_path / "agent.keras")
    assert isinstance(rl.load(tmp_path / "agent.keras"), rl.REINFORCE)


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


def test_layers_of_the_user(tmp_path):
    class Mine(keras.layers.Dense):
        pass

    inputs = keras.Input((4,))
    network = keras.Model(inputs, Mine(2)(inputs))
    agent = rl.REINFORCE(network, seed=0)
    path = tmp_path / "agent.keras"
    agent.bind(*spaces_of("CartPole-v1"))
    with keras.saving.custom_object_scope({"Mine": Mine}):
        agent.save(path)
    with pytest.raises(ValueError, match="Mine, which no agent is made of"):
        rl.load(path)
    assert isinstance(rl.load(path, {"Mine": Mine}), rl.REINFORCE)


def test_initializers_of_the_user_may_hold_tensors(tmp_path):
    class Table(keras.initializers.Initializer):
        numbers = keras.ops.ones((4, 2))

        def __call__(self, shape, dtype=None):
            return keras.ops.reshape(self.numbers, shape)

    inputs = keras.Input((4,))
    layer = keras.layers.Dense(2, kernel_initializer=Table())
    agent = rl.REINFORCE(keras.Model(inputs, layer(inputs)), seed=0)
    path = tmp_path / "agent.keras"
    agent.bind(*spaces_of("CartPole-v1"))
    with keras.saving.custom_object_scope({"Table": Table}):
        agent.save(path)
    assert isinstance(rl.load(path, {"Table": Table}), rl.REINFORCE)


def spaces_of(env_id):
    env = rl.envs.make_env(env_id)
    return env.observation_space, env.action_space


def test_other_names(honest, tmp_path):
    for name in ("agent.zip", "agent.txt"):
        path = tmp_path / name
        path.write_bytes(honest.read_bytes())
        with pytest.raises(ValueError, match="whose name ends in"):
            rl.load(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        rl.load(tmp_path / "nowhere.keras")
