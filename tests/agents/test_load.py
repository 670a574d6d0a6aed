"""`load` gives the agent of a file, or says in one line why not."""

import contextlib
import zipfile

import keras
import numpy as np
import pytest

import keras_rl2 as rl


def refusal(words=""):
    return pytest.raises(ValueError, match=f"a saved agent.*{words}")


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "agent.keras"
    rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0).save(path)
    return path


def test_a_loaded_agent_has_the_saved_weights_and_steps(tmp_path):
    path = tmp_path / "agent.keras"
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(8,), seed=0)
    agent.optimizer.build(agent.trainable_variables)
    agent.env_steps = 7
    agent.save(path)
    loaded = rl.load(path)
    assert loaded.env_steps == 7
    same_weights(agent, loaded)


def same_weights(one, other):
    for ours, theirs in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "count", [20, pytest.param(1000, marks=pytest.mark.slow)]
)
def test_flipped_bits_and_missing_bytes_never_load_other_weights(
    count, honest, tmp_path
):
    content = honest.read_bytes()
    path = tmp_path / "agent.keras"
    generator = np.random.default_rng(count)
    for bit in generator.choice(8 * len(content), count, replace=False):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(flipped)
        # Bits of the archive's index may mean nothing.
        with contextlib.suppress(ValueError):
            same_weights(rl.load(path), rl.load(honest))
        path.write_bytes(content[: bit // 8])
        with refusal():
            rl.load(path)


def rewritten(honest, path, old=b"", new=b""):
    """Writes the members of a file, changed."""
    with zipfile.ZipFile(honest) as given, zipfile.ZipFile(path, "w") as file:
        for name in given.namelist():
            file.writestr(name, given.read(name).replace(old, new))


def test_code_is_not_run(tmp_path):
    """Keras' safe mode refuses the code of a `Lambda` layer."""
    path = tmp_path / "model.keras"
    double = keras.layers.Lambda(lambda x: 2.0 * x)
    keras.Sequential([keras.Input((4,)), double]).save(path)
    with refusal("`Lambda` layer"):
        rl.load(path)


def saved(path, *layers, **custom_objects):
    """Saves an agent of a network of some layers."""
    network = keras.Sequential([keras.Input((4,)), *layers])
    agent = rl.REINFORCE(network, seed=0)
    env = rl.envs.make_env("CartPole-v1")
    agent.bind(env.observation_space, env.action_space)
    with keras.saving.custom_object_scope(custom_objects):
        agent.save(path)


def test_layers_of_the_user(tmp_path):
    class Mine(keras.layers.Dense):
        pass

    path = tmp_path / "agent.keras"
    saved(path, Mine(2), Mine=Mine)
    with refusal("Could not locate class 'Mine'"):
        rl.load(path)
    assert isinstance(rl.load(path, {"Mine": Mine}), rl.REINFORCE)


def test_files_without_an_agent_are_refused(tmp_path):
    path = tmp_path / "model.keras"
    keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]).save(path)
    with refusal("a Sequential, which is no agent"):
        rl.load(path)
    path.write_text("something else")
    with refusal():
        rl.load(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        rl.load(tmp_path / "nowhere.keras")
