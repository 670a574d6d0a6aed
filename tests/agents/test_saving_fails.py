"""A failure while a new file is written leaves the old file unchanged."""

import os

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import slow
from support.full_disks import content
from support.full_disks import largest
from support.full_disks import room_for
from support.full_disks import sizes


@pytest.fixture(scope="module")
def agent():
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.optimizer.build(agent.trainable_variables)
    return agent


def exported(name):
    return lambda agent, path: agent.export(path, format=name)


WAYS = [
    (rl.PPO.save, "a.keras"),
    (rl.PPO.save_weights, "a.weights.h5"),
    *slow(
        (exported("tf_saved_model"), "policy"),
        (exported("onnx"), "policy.onnx"),
        (exported("litert"), "policy.tflite"),
    ),
]


@pytest.mark.parametrize(("write", "name"), WAYS)
def test_a_full_disk(write, name, agent, tmp_path):
    if name.endswith(".onnx"):
        pytest.importorskip("tf2onnx")
    path = tmp_path / name
    write(agent, path)
    before = content(path)
    for size in sizes(largest(path), 5):
        with room_for(size), pytest.raises(OSError, match=r"large|written"):
            write(agent, path)
        assert content(path) == before
        assert [each.name for each in tmp_path.iterdir()] == [name]
    # With room enough it is written.
    write(agent, path)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails_later(step, agent, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    for write, name in WAYS[:2]:
        path = tmp_path / name
        write(agent, path)
        before = content(path)
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises(OSError, match="Input/output"):
                write(agent, path)
        assert content(path) == before
        path.unlink()
        assert not [*tmp_path.iterdir()]


def test_checkpoints_of_keras(agent, tmp_path):
    path = tmp_path / "best.keras"
    checkpoint = keras.callbacks.ModelCheckpoint(path)
    checkpoint.set_model(agent)
    checkpoint.on_epoch_end(0, {})
    before = content(path)
    with room_for(len(before) // 2), pytest.raises(OSError, match="too large"):
        checkpoint.on_epoch_end(1, {})
    assert content(path) == before


def test_an_agent_as_a_folder(agent, tmp_path):
    path = tmp_path / "agent"
    agent.save(path, zipped=False)
    agent.save(path, zipped=False)
    loaded = keras.saving.load_model(path)
    np.testing.assert_array_equal(
        loaded.get_weights()[0], agent.get_weights()[0]
    )
    (path / "notes.txt").write_text("not ours")
    with pytest.raises(ValueError, match=r"which holds notes\.txt"):
        agent.save(path, zipped=False)
    assert (path / "notes.txt").read_text() == "not ours"


def test_an_export_replaces_no_folder_of_others(agent, tmp_path):
    (tmp_path / "notes.txt").write_text("not ours")
    for name in ("tf_saved_model", "onnx", "litert"):
        with pytest.raises(ValueError, match=r"which holds notes\.txt"):
            agent.export(tmp_path, format=name)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_errors_of_keras_name_the_file(agent, tmp_path):
    with pytest.raises(ValueError, match=r"filepath=.*/agent\.zip"):
        agent.save(tmp_path / "agent.zip")
    with pytest.raises(ValueError, match=r"filepath=.*/agent\.h5"):
        agent.save_weights(tmp_path / "agent.h5")
    nowhere = tmp_path / "nowhere" / "agent.keras"
    with pytest.raises(FileNotFoundError) as refused:
        agent.save(nowhere)
    assert refused.value.filename == str(nowhere)


def test_keras_asks_before_it_writes_over(agent, tmp_path, monkeypatch):
    path = tmp_path / "agent.keras"
    path.write_text("old")
    monkeypatch.setattr("builtins.input", lambda *_: "n")
    agent.save(path, overwrite=False)
    assert path.read_text() == "old"


def test_weights_in_several_files(agent, tmp_path):
    path = tmp_path / "agent.weights.json"
    agent.save_weights(path, max_shard_size=0.01)
    other = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=1)
    other.load_weights(path)
    np.testing.assert_array_equal(
        other.get_weights()[0], agent.get_weights()[0]
    )
