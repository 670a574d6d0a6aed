"""Recorded data of somebody else: nothing run, nothing large, one error."""

import io
import json
import os
import shutil
import zipfile

import h5py
import numpy as np
import pytest

import keras_rl2 as rl
from support.full_disks import content
from support.full_disks import room_for
from support.full_disks import sizes
from support.watching import watched

_MEBIBYTES = 1024
_KEYS = ("observations", "actions", "rewards", "terminations", "truncations")


class _Evil:
    def __reduce__(self):
        return os.system, ("touch canary",)


def npy(array, **header):
    memory = io.BytesIO()
    np.save(memory, array, allow_pickle=True)
    text = memory.getvalue()
    for old, new in header.items():
        text = text.replace(old.encode(), new.encode())
    return text


def npz(path, how=zipfile.ZIP_STORED, **changes):
    arrays = {
        "observations": npy(np.zeros((8, 4), np.float32)),
        "actions": npy(np.zeros(8, np.int64)),
        **{key: npy(np.zeros(8, np.float32)) for key in _KEYS[2:]},
        **changes,
    }
    with zipfile.ZipFile(path, "w", how) as archive:
        for key, text in arrays.items():
            archive.writestr(f"{key}.npy", text)


def pickled(path):
    npz(path, rewards=npy(np.array([_Evil()] * 8, object)))


def shape_bomb(path):
    header = npy(np.zeros(8, np.float32)).replace(b"(8,), ", b"(8000000000,), ")
    npz(path, rewards=header)


def zip_bomb(path):
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("rewards.npy", "w") as file,
    ):
        for _ in range(4):
            file.write(bytes(2**24))


def a_device(path):
    path.symlink_to("/dev/zero")


def assert_refused(path, folder):
    """It is refused, and neither runs, reads nor fills anything else."""
    with (
        watched(folder) as watch,
        pytest.raises(ValueError, match="Expected") as refused,
    ):
        rl.OfflineDataset(str(path))
    assert str(path) in str(refused.value)
    assert watch.done == []
    assert watch.mebibytes < _MEBIBYTES


def test_npz(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for make in (
        pickled,
        shape_bomb,
        zip_bomb,
        a_device,
    ):
        path = tmp_path / f"{make.__name__}.npz"
        make(path)
        assert_refused(path, tmp_path)
        assert not (tmp_path / "canary").exists()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "cart-v0"
    rl.record("random", "CartPole-v1", 60, path, seed=0)
    return path


def metadata_device(folder):
    (folder / "data" / "metadata.json").unlink()
    (folder / "data" / "metadata.json").symlink_to("/dev/zero")


def metadata_deep(folder):
    text = '{"observation_space": ' + "[" * 10**5
    (folder / "data" / "metadata.json").write_text(text)


def space_deep(folder):
    path = folder / "data" / "metadata.json"
    metadata = json.loads(path.read_text())
    tuples = '{"type": "Tuple", "subspaces": [' * 10**5
    path.write_text(json.dumps({**metadata, "observation_space": tuples}))


def changed(change):
    def make(folder):
        with h5py.File(folder / "data" / "main_data.hdf5", "r+") as file:
            del file["episode_0"]["rewards"]
            change(file["episode_0"])

    return make


def hdf5_bomb(group):
    for key in ("terminations", "truncations"):
        del group[key]
    for key in ("rewards", "terminations", "truncations"):
        group.create_dataset(key, (2**32,), "f4", chunks=(2**20,))


def test_minari(folder, tmp_path):
    for name, change in {
        "metadata_device": metadata_device,
        "metadata_deep": metadata_deep,
        "space_deep": space_deep,
        "hdf5_bomb": changed(hdf5_bomb),
    }.items():
        path = tmp_path / name
        shutil.copytree(folder, path)
        change(path)
        assert_refused(path, tmp_path)


def test_a_full_disk_leaves_nothing_half_written(folder, tmp_path):
    data = content(folder)
    path = tmp_path / "another-v0"
    whole = max(map(len, data.values()))
    for size in sizes(whole, 10):
        with room_for(size), pytest.raises(OSError, match="too large"):
            rl.record("random", "CartPole-v1", 60, path, seed=0)
        assert [each.name for each in tmp_path.iterdir()] == ["cart-v0"]
    rl.record("random", "CartPole-v1", 60, path, seed=0)
    assert "60 transitions" in rl.OfflineDataset(path).in_words
    assert path.stat().st_mode & 0o755 == 0o755
