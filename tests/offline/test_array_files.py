"""Recorded arrays in `.npz` files, and trees of them."""

import zipfile

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from support.episodes import record


def save_npz(path, arrays):
    np.savez(path / "data.npz", **arrays)
    return path / "data.npz"


def save_compressed(path, arrays):
    np.savez_compressed(path / "packed.npz", **arrays)
    return path / "packed.npz"


@pytest.mark.parametrize("save", [save_npz, save_compressed])
def test_a_file_of_arrays(tmp_path, save):
    offline = rl.OfflineDataset(str(save(tmp_path, record())))
    assert "5 episodes, 20 transitions" in repr(offline)


def test_trees_of_arrays():
    data = record()
    for key in ("observations", "next_observations"):
        array = data.pop(key)
        data[key] = {"x": array[:, :1], "pair": (array[:, 0], array[:, 1])}
    offline = rl.OfflineDataset(data)
    numbers = gymnasium.spaces.Box(-1e3, 1e3, (), np.float32)

    class Env(gymnasium.Env):
        observation_space = gymnasium.spaces.Dict(
            {
                "x": gymnasium.spaces.Box(-1e3, 1e3, (1,), np.float32),
                "pair": gymnasium.spaces.Tuple([numbers, numbers]),
            }
        )
        action_space = gymnasium.spaces.Discrete(2)

    offline.bind(rl.DQN.for_env(Env(), hidden=(4,), seed=0))
    batch = offline.sample(50)
    first, second = batch["observation"]["pair"]
    np.testing.assert_array_equal(batch["observation"]["x"][:, 0], first)
    np.testing.assert_array_equal(second, -first)


@pytest.mark.parametrize("save", [save_npz, save_compressed])
def test_objects_are_not_loaded(tmp_path, save):
    objects = np.array([{"a": 1}] * 20, dtype=object)
    path = save(tmp_path, record() | {"rewards": objects})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        rl.OfflineDataset(path)


def test_files_that_are_cut_off(tmp_path):
    path = save_npz(tmp_path, record())
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(zipfile.BadZipFile):
        rl.OfflineDataset(path)


def test_lists_of_different_lengths():
    ragged = {**record(), "observations": [[0.0], [0.0, 1.0]]}
    with pytest.raises(ValueError, match=r"Expected arrays of numbers in"):
        rl.OfflineDataset(ragged)


def test_next_observations_of_fewer_keys():
    data = record()
    seen, following = data["observations"], data["next_observations"]
    data["observations"] = {"a": seen, "b": seen}
    data["next_observations"] = {"a": following}
    with pytest.raises(ValueError, match="of the shapes of observations"):
        rl.OfflineDataset(data)
