"""Rounds take no more memory than their arrays."""

import weakref

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.data import round_dataset
from support.agents import assert_equal_weights
from support.any_space_env import AnySpaceEnv

IMAGE = gymnasium.spaces.Box(0, 255, (36, 36, 1), np.uint8)


def pictures():
    return AnySpaceEnv(IMAGE, gymnasium.spaces.Discrete(2))


# Rollouts are prepared in batches of rows.


@pytest.mark.parametrize("name", ["PPO", "APPO", "PQN"])
@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_samples_do_not_depend_on_the_rows_of_a_call(name, mode):
    env = gymnasium.make_vec(
        "CartPole-v1",
        num_envs=3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode[mode]},
    )
    agent = getattr(rl, name).for_env(env, hidden=(8,), seed=0)
    rollouts = rl.RolloutDataset(env, 40, 1, 24, seed=0)
    rollouts.bind(agent)
    trajectory = rollouts.collect()
    at_once, statistics = agent.prepare(trajectory)
    for eager in (False, True):
        agent.compile(run_eagerly=eager)
        samples, others = agent.prepare(trajectory, batch_size=50)
        assert samples.keys() == at_once.keys()
        for key, expected in at_once.items():
            np.testing.assert_allclose(samples[key], expected, atol=2e-5)
        assert others == pytest.approx(statistics, abs=1e-4)


def test_large_observations_are_prepared_in_several_calls(monkeypatch):
    rows = []
    agent = rl.PPO.for_env(pictures(), hidden=(8,), seed=0)
    agent.compile(run_eagerly=True)
    evaluate = agent.policy_and_value

    def counted(observation, *others):
        rows.append(len(observation))
        return evaluate(observation, *others)

    monkeypatch.setattr(agent, "policy_and_value", counted)
    monkeypatch.setattr(
        "keras_rl2.updates.rollout_samples._BYTES", 10 * 36 * 36 * 4
    )
    rollouts = rl.RolloutDataset(pictures, 16, 1, 16, num_envs=2, seed=0)
    rollouts.bind(agent)
    trajectory = rollouts.collect()
    agent.prepare(trajectory)
    further = 2 + len(trajectory.final_index)
    assert rows == [10, 10, 10, 2, further]


def test_a_rollout_is_released_before_the_next_one():
    held = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            held.append([each() is not None for each in trajectories])

    trajectories = []
    rollouts = rl.RolloutDataset(pictures, 8, 1, 8, seed=0)
    collect = rollouts.collect

    def collected():
        trajectory = collect()
        trajectories.append(weakref.ref(trajectory.observation.base))
        return trajectory

    rollouts.collect = collected
    agent = rl.PPO.for_env(pictures(), hidden=(8,), seed=0)
    agent.fit(rollouts, epochs=3, callbacks=[Watch()], verbose=0)
    assert [each() is not None for each in trajectories] == [False, False, True]


# Minibatches are drawn for one call at a time.


def replay(**settings):
    return rl.ReplayDataset(
        pictures,
        200,
        4,
        steps_per_round=24,
        updates_per_round=12,
        warm_up=24,
        seed=0,
        **settings,
    )


@pytest.fixture
def of_five(monkeypatch):
    """Lets the minibatches of five updates fit into a call."""
    one = 4 * (2 * 36 * 36 + 4 + 3 * 4 + 4)
    monkeypatch.setattr(round_dataset, "MOST_BYTES", 5 * one + 1)


def fitted(dataset, **settings):
    agent = rl.DQN.for_env(pictures(), hidden=(8,), seed=0)
    agent.compile(keras.optimizers.SGD(1e-3), **settings)
    history = agent.fit(dataset, epochs=2, verbose=0).history
    return agent, history


@pytest.mark.usefixtures("of_five")
@pytest.mark.parametrize("prioritized", [False, True])
def test_a_round_takes_as_many_calls_as_its_minibatches_need(prioritized):
    calls = []
    dataset = replay(prioritized=prioritized, rounds_per_epoch=2)
    draw = dataset._draw

    def drawn():
        calls.append(int(agent.updates))
        return draw()

    dataset._draw = drawn
    known = []
    update = dataset.update_priorities

    def updated(index, td_error):
        known.append(len(index))
        update(index, td_error)

    dataset.update_priorities = updated
    agent = rl.DQN.for_env(pictures(), hidden=(8,), seed=0)
    agent.fit(dataset, epochs=2, verbose=0)
    # Of four updates each, the largest divisor of twelve.
    assert dataset.updates_per_call == 4
    assert calls == list(range(0, 48, 4))
    assert int(agent.updates) == 48
    # The TD errors of each call are read before the next one.
    dataset.get_state()
    assert known == (12 * [4 * 4] if prioritized else [])


@pytest.mark.usefixtures("of_five")
def test_all_loops_make_the_same_updates_of_parts():
    expected, history = fitted(replay())
    for settings in ({"steps_per_execution": 2}, {"run_eagerly": True}):
        agent, other = fitted(replay(), **settings)
        for one, each in zip(expected.weights, agent.weights, strict=True):
            np.testing.assert_allclose(one, each, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            other["q_value"], history["q_value"], rtol=1e-3
        )
    whole, _ = fitted(replay(), steps_per_execution=12)
    assert_equal_weights(expected.get_weights(), whole.get_weights())
    with pytest.raises(ValueError, match="round, 4 "):
        fitted(replay(), steps_per_execution=6)


@pytest.mark.usefixtures("of_five")
def test_mixed_rounds_take_several_calls_too():
    source = replay()
    fitted(source)
    mixed = rl.MixedDataset(rl.OfflineDataset(source), replay())
    agent, _ = fitted(mixed)
    assert mixed.updates_per_call == 4
    assert int(agent.updates) == mixed.rounds_per_epoch * 12 * 2


def test_a_round_left_off_is_not_continued(monkeypatch):
    monkeypatch.setattr(round_dataset, "MOST_BYTES", 1)
    dataset = replay()
    agent = rl.DQN.for_env(pictures(), hidden=(8,), seed=0)
    batches = dataset.as_dataset(agent)
    dataset.refresh()
    assert len(list(batches.take(5))) == 5
    dataset.begin()
    with pytest.raises(tf.errors.UnknownError, match="was refreshed"):
        next(iter(batches))
