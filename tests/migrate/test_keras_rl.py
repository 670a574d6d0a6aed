"""Weights of keras-rl's DQN, as Keras 2 wrote them."""

import pathlib
import shutil

import gymnasium
import h5py
import keras
import numpy as np
import pytest

import keras_rl2 as rl

FOLDER = pathlib.Path(__file__).parent / "keras_rl"
PICTURES = gymnasium.spaces.Box(-5.0, 5.0, (2, 12, 10))


def expected(name):
    with np.load(FOLDER / "expected.npz") as arrays:
        return arrays[f"{name}/observation"], arrays[f"{name}/q_values"]


def mlp(units=2, hidden=(8, 7)):
    return rl.networks.mlp((4,), units, hidden=hidden, activation="relu")


def cnn():
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Permute((2, 3, 1)),
            layers.Conv2D(3, 4, strides=2, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(3),
        ]
    )


def assert_equal_weights(weights, others):
    for one, other in zip(weights, others, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "units", "dueling"),
    [("mlp.h5", 2, False), ("mlp.h5f", 2, False), ("dueling.h5", 3, True)],
)
def test_values_are_those_of_the_saved_network(name, units, dueling):
    observation, q_values = expected(name)
    agent = rl.migrate.from_keras_rl(
        FOLDER / name, mlp(units), "CartPole-v1", dueling=dueling, gamma=0.9
    )
    # Without the window of keras-rl.
    [observation] = np.moveaxis(observation, 1, 0)
    np.testing.assert_allclose(agent(observation), q_values, atol=1e-5)
    assert agent.gamma == 0.9
    for target, network in agent.target_pairs:
        assert_equal_weights(target.get_weights(), network.get_weights())


def test_a_network_that_an_env_builds_with_moving_statistics():
    observation, q_values = expected("cnn.h5f")
    agent = rl.migrate.from_keras_rl(
        FOLDER / "cnn.h5f",
        cnn(),
        observation_space=PICTURES,
        action_space=gymnasium.spaces.Discrete(3),
    )
    np.testing.assert_allclose(agent(observation), q_values, atol=1e-4)


def test_an_agent_without_spaces_has_the_weights_when_it_is_bound():
    observation, q_values = expected("mlp.h5")
    agent = rl.migrate.from_keras_rl(FOLDER / "mlp.h5", mlp())
    agent.bind(
        gymnasium.spaces.Box(-5.0, 5.0, (4,)), gymnasium.spaces.Discrete(2)
    )
    values = agent(observation[:, 0])
    np.testing.assert_allclose(values, q_values, atol=1e-5)
    np.testing.assert_allclose(
        agent.target_network(observation[:, 0]), q_values, atol=1e-5
    )


def changed(tmp_path, change):
    """Returns a copy of a file in which something was changed."""
    path = tmp_path / "changed.h5"
    shutil.copy(FOLDER / "mlp.h5", path)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def kernel(file):
    return file["dense"]["dense"]["kernel:0"]


def _external(file):
    del file["dense"]["dense"]["kernel:0"]
    file["dense"]["dense"]["kernel:0"] = h5py.ExternalLink("other.h5", "/x")


def _huge(file):
    del file["dense"]["dense"]["kernel:0"]
    file["dense"]["dense"].create_dataset(
        "kernel:0", (2**20, 2**20), "float32", chunks=(2**10, 2**10)
    )


def _not_a_number(file):
    kernel(file)[0, 0] = np.nan


def _no_names(file):
    del file.attrs["layer_names"]


def _other_names(file):
    file["dense"].attrs["weight_names"] = [b"../../x", b"y"]


def test_hostile_files_are_refused(tmp_path):
    for change, reason in [
        (_external, "an external link"),
        (_huge, "bytes, of which"),
        (_not_a_number, "not finite"),
        (_no_names, "layer_names is missing"),
        (_other_names, "no .."),
    ]:
        path, network = changed(tmp_path, change), mlp()
        before = network.get_weights()
        with pytest.raises(ValueError, match=reason) as refused:
            rl.migrate.from_keras_rl(path, network, "CartPole-v1")
        assert len(str(refused.value).splitlines()) == 1
        assert_equal_weights(network.get_weights(), before)


def test_networks_that_do_not_fit_keep_their_weights():
    for name in ("mlp.h5", "mlp.h5f"):
        for hidden, reason in [
            ((8, 6), r"of shape \(8, 7\), where the network has"),
            ((8,), "3 layers with weights, where the network has 2"),
        ]:
            network = mlp(hidden=hidden)
            before = network.get_weights()
            with pytest.raises(ValueError, match=reason):
                rl.migrate.from_keras_rl(FOLDER / name, network, "CartPole-v1")
            assert_equal_weights(network.get_weights(), before)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        rl.migrate.from_keras_rl(tmp_path / "none.h5", mlp(), "CartPole-v1")
    path = tmp_path / "text.h5"
    path.write_text("weights")
    with pytest.raises(ValueError, match="neither an HDF5 file nor"):
        rl.migrate.from_keras_rl(path, mlp(), "CartPole-v1")
    unbuilt = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="a network that is built"):
        rl.migrate.from_keras_rl(FOLDER / "mlp.h5", unbuilt)
