"""`load` gives the agent of a checkpoint, without the run."""

import shutil

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.files.checkpoint_folder import CheckpointFolder
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


@pytest.mark.parametrize(
    "case",
    [
        "A2C",
        *(
            pytest.param(case, marks=pytest.mark.slow)
            for case in ("PPO", "RecurrentPPO", "DQN", "SAC")
        ),
    ],
)
def test_the_agent_alone(case, tmp_path):
    trained = train(
        tmp_path, *(a2c(seed=0) if case == "A2C" else CASES[case]())
    )
    loaded = rl.load(tmp_path)
    assert type(loaded) is type(trained)
    assert loaded.env_steps == trained.env_steps
    same(loaded, trained)
    for one, other in zip(
        loaded.optimizer.variables, trained.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_it_acts_is_saved_and_trains_on(tmp_path):
    trained = train(tmp_path / "run", *a2c(seed=0))
    loaded = rl.load(tmp_path / "run")
    observation = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(
        loaded.act(observation, deterministic=True),
        trained.act(observation, deterministic=True),
    )
    loaded.save(tmp_path / "agent.keras")
    again = rl.load(tmp_path / "agent.keras")
    np.testing.assert_equal(again.get_weights(), trained.get_weights())
    before = loaded.env_steps
    loaded.fit(a2c()[1], epochs=1, verbose=0)
    assert loaded.env_steps > before


def test_the_newest_that_is_whole_or_one_of_them(tmp_path):
    trained = train(tmp_path, *a2c(seed=0), epochs=3)
    first, middle, last = CheckpointFolder(tmp_path).paths()
    assert rl.load(tmp_path).env_steps == trained.env_steps
    assert rl.load(first).env_steps == 8
    # Copied to elsewhere, without what lies beside.
    copy = tmp_path / "copy" / first.name
    shutil.copytree(first, copy)
    assert rl.load(copy).env_steps == 8
    (last / "arrays.npz").write_bytes(b"")
    with pytest.warns(UserWarning, match="is skipped"):
        loaded = rl.load(tmp_path)
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
    with pytest.raises(ValueError, match="is to be registered"):
        rl.load(tmp_path)
    same(rl.load(tmp_path, custom_objects={"Scaled": Scaled}), trained)


class TestRefused:
    def refusal(self, words):
        return pytest.raises(ValueError, match=f"a saved agent.*{words}")

    def test_no_checkpoint(self, tmp_path):
        with self.refusal("a folder without a checkpoint"):
            rl.load(tmp_path)

    def test_an_earlier_release(self, tmp_path):
        CheckpointFolder(tmp_path).write({"agent": {}})
        with self.refusal("has no config of its agent"):
            rl.load(tmp_path)

    def test_what_is_no_agent(self, tmp_path):
        made_from = '{"class_name": "Dense", "module": "keras.layers"}'
        state = {"model": made_from, "agent": {"variables": []}}
        CheckpointFolder(tmp_path).write(state)
        with self.refusal("which is no agent"):
            rl.load(tmp_path)

    def test_what_no_agent_is_made_of(self, tmp_path):
        train(tmp_path, *a2c(seed=0))
        state = CheckpointFolder(tmp_path).newest().state
        model = state["model"].replace(
            '"class_name": "Dense"', '"class_name": "Lambda"'
        )
        assert model != state["model"]
        CheckpointFolder(tmp_path).write({**state, "model": model})
        with self.refusal("Lambda, which no agent is made of"):
            rl.load(tmp_path)

    def test_more_weights_than_it_holds(self, tmp_path):
        train(tmp_path, *a2c(seed=0))
        state = CheckpointFolder(tmp_path).newest().state
        model = state["model"].replace('"units": 2', '"units": 10000000')
        assert model != state["model"]
        CheckpointFolder(tmp_path).write({**state, "model": model})
        with self.refusal("asks for more weights than the"):
            rl.load(tmp_path)

    def test_another_agent_than_it_says(self, tmp_path):
        train(tmp_path / "one", *a2c(seed=0))
        train(tmp_path / "other", *a2c(seed=0, hidden=(5,)))
        one, other = (
            CheckpointFolder(tmp_path / name).newest().state
            for name in ("one", "other")
        )
        mixed = CheckpointFolder(tmp_path / "mixed")
        mixed.write({**one, "agent": other["agent"]})
        with self.refusal("variables of the same shapes"):
            rl.load(tmp_path / "mixed")
