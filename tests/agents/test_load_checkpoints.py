"""`load` gives the agent of a checkpoint, without the run."""

import shutil

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.saving.checkpoint_folder import CheckpointFolder
from support.agents import assert_equal_agents
from support.checkpointed import CASES


def train(directory, agent, data, epochs=1):
    agent.compile(run_eagerly=True)
    checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1)
    agent.fit(data, epochs=epochs, callbacks=[checkpoint], verbose=0)
    return agent


def a2c(**settings):
    agent = rl.A2C.for_env("CartPole-v1", **{"hidden": (4,), **settings})
    return agent, rl.RolloutDataset("CartPole-v1", horizon=8, seed=0)


def same(one, other):
    mine, its = one.get_state(), other.get_state()
    # Keras counts models of a process in their names.
    del mine["paths"], its["paths"]
    count = min(len(mine["variables"]), len(its["variables"]))
    for state in (mine, its):
        state["variables"] = state["variables"][:count]
    np.testing.assert_equal(mine, its)


@pytest.fixture(scope="module")
def a_run(tmp_path_factory):
    """An agent, and the folder of its three checkpoints."""
    folder = tmp_path_factory.mktemp("run")
    return train(folder, *a2c(seed=0), epochs=3), folder


@pytest.fixture
def run(a_run, tmp_path):
    """An agent, and a copy of its folder that may be changed."""
    trained, folder = a_run
    return trained, shutil.copytree(folder, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["PPO", "RecurrentPPO", "DQN", "SAC"])
def test_the_agent_of_every_kind(case, tmp_path):
    trained = train(tmp_path, *CASES[case]())
    same(rl.load(tmp_path), trained)


def test_the_loaded_agent_equals_the_trained_one_and_trains_on(run, tmp_path):
    trained, folder = run
    loaded = rl.load(folder)
    assert type(loaded) is type(trained)
    same(loaded, trained)
    assert_equal_agents(loaded, trained)
    observation = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(
        loaded.act(observation, deterministic=True),
        trained.act(observation, deterministic=True),
    )
    loaded.save(tmp_path / "agent.keras")
    again = rl.load(tmp_path / "agent.keras")
    np.testing.assert_equal(again.get_weights(), trained.get_weights())
    loaded.fit(a2c()[1], epochs=1, verbose=0)
    assert loaded.env_steps > trained.env_steps


def test_the_newest_that_is_whole_or_one_of_them(run):
    trained, folder = run
    first, middle, last = CheckpointFolder(folder).paths()
    assert rl.load(first).env_steps == 8
    # Copied to elsewhere, without what lies beside.
    copy = shutil.copy(first, folder / "copy.npz")
    assert rl.load(copy).env_steps == 8
    last.write_bytes(b"")
    with pytest.warns(UserWarning, match="is skipped"):
        loaded = rl.load(folder)
    assert loaded.env_steps == rl.load(middle).env_steps < trained.env_steps


@pytest.mark.slow
def test_a_lost_replay_buffer_is_not_needed(tmp_path):
    train(tmp_path, *CASES["DQN"]())
    shutil.rmtree(tmp_path / "segments")
    assert rl.load(tmp_path).env_steps > 0


class Scaled(keras.layers.Layer):
    def call(self, inputs):
        return 2.0 * inputs


def test_layers_of_the_user(tmp_path):
    actor = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(2), Scaled()]
    )
    critic = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    trained = train(tmp_path, rl.A2C(actor, critic, seed=0), a2c()[1])
    with pytest.raises(ValueError, match="Could not locate class 'Scaled'"):
        rl.load(tmp_path)
    same(rl.load(tmp_path, custom_objects={"Scaled": Scaled}), trained)


class TestRefused:
    def refusal(self, words):
        return pytest.raises(ValueError, match=f"a saved agent.*{words}")

    def test_a_folder_without_a_checkpoint_is_refused(self, tmp_path):
        with self.refusal("a folder without a checkpoint"):
            rl.load(tmp_path)

    def test_a_network_without_a_config(self, tmp_path):
        CheckpointFolder(tmp_path).write({"agent": {}, "model": None})
        with self.refusal("has no config of its agent"):
            rl.load(tmp_path)

    def test_a_checkpoint_of_another_class_is_refused(self, tmp_path):
        made_from = '{"class_name": "Dense", "module": "keras.layers"}'
        state = {"model": made_from, "agent": {"variables": []}}
        CheckpointFolder(tmp_path).write(state)
        with self.refusal("which is no agent"):
            rl.load(tmp_path)

    def test_a_checkpoint_with_other_shapes_is_refused(self, run, tmp_path):
        train(tmp_path / "other", *a2c(seed=0, hidden=(5,)))
        other = CheckpointFolder(tmp_path / "other").newest().state
        one = CheckpointFolder(run[1])
        one.write({**one.newest().state, "agent": other["agent"]})
        with self.refusal("variables of the same shapes"):
            rl.load(run[1])
