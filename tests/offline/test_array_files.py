"""Recorded arrays in `.npz` files and folders of `.npy` files."""

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from support.episodes import record


def flat(data):
    """Returns the arrays of `record` with a tree of observations."""
    trees = {}
    for key in ("observations", "next_observations"):
        array = data.pop(key)
        trees[f"{key}.x"] = array[:, :1]
        trees[f"{key}.pair.0"] = array[:, 0]
        trees[f"{key}.pair.1"] = array[:, 1]
    return data | trees


def save_npz(path, arrays):
    np.savez(path / "data.npz", **arrays)
    return path / "data.npz"


def save_compressed(path, arrays):
    np.savez_compressed(path / "packed.npz", **arrays)
    return path / "packed.npz"


def save_npy(path, arrays):
    for key, array in arrays.items():
        np.save(path / f"{key}.npy", array)
    return path


@pytest.mark.parametrize(
    ("save", "memory_limit"),
    [(save_npz, 2**29), (save_compressed, 1500), (save_npy, 1500)],
)
def test_trees_are_read_from_files(tmp_path, save, memory_limit):
    path = save(tmp_path, flat(record()))
    offline = rl.OfflineDataset(str(path), memory_limit=memory_limit)
    assert offline.streams == (memory_limit == 1500)
    assert "5 episodes, 20 transitions" in repr(offline)
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


def test_a_memory_map_is_read_from_its_file(tmp_path):
    data = record()
    np.save(tmp_path / "o.npy", data["observations"])
    mapped = np.load(tmp_path / "o.npy", mmap_mode="r")
    whole = rl.OfflineDataset(data).describe()
    assert (
        rl.OfflineDataset(data | {"observations": mapped}).describe() == whole
    )


def test_objects_are_not_loaded(tmp_path):
    objects = np.array([{"a": 1}] * 20, dtype=object)
    for save in (save_npz, save_compressed, save_npy):
        path = save(tmp_path, record() | {"rewards": objects})
        with pytest.raises(ValueError, match=r"Expected .*Received"):
            rl.OfflineDataset(path)


def test_files_that_are_cut_off(tmp_path):
    path = save_npz(tmp_path, record())
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"Expected arrays of numbers in"):
        rl.OfflineDataset(path)
    folder = save_npy(tmp_path, record())
    file = folder / "rewards.npy"
    for content in (file.read_bytes()[:-9], b"no array"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"Expected .*rewards.npy"):
            rl.OfflineDataset(folder)
