"""Replay that workers fill while updates run: how much, and in which order."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import assert_equal_weights

ENV = "Acrobot-v1"
SETTINGS = {
    "num_envs": 4,
    "capacity": 4000,
    "batch_size": 16,
    "steps_per_round": 32,
    "updates_per_round": 2,
    "warm_up": 64,
    "seed": 0,
}


def made(workers=None, **kwargs):
    replay = rl.ReplayDataset(ENV, workers=workers, **{**SETTINGS, **kwargs})
    agent = rl.DQN.for_env(replay.env, hidden=(8,), seed=0)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return agent, replay


def test_updates_and_steps_keep_their_ratio():
    agent, replay = made(rl.LocalWorkers(2), rounds_per_epoch=1)
    seen = []
    agent.observers.add(lambda trajectory: seen.append(trajectory.reward.size))
    history = agent.fit(replay, epochs=5, verbose=0).history
    assert history["lag"] == [0, 2, 2, 2, 2]
    # The warm-up, and a round for each 2 updates; what is ahead is not yet in.
    assert history["env_steps"] == [64 + 32 * n for n in range(1, 6)]
    assert sum(seen) == replay.buffer.steps == agent.env_steps
    assert int(agent.updates) == 10
    history = agent.fit(replay, epochs=2, verbose=0).history
    assert history["env_steps"] == [256, 288]
    assert int(agent.updates) == 14
    replay.close()


@pytest.mark.slow
def test_runs_repeat_bit_for_bit():
    agents = []
    for count in (1, 2):
        agent, replay = made(rl.LocalWorkers(count), rounds_ahead=2)
        agent.fit(replay, total_steps=256, verbose=0)
        replay.close()
        agents.append(agent)
    assert_equal_weights(*agents)


def test_a_restored_state_continues_the_rounds_under_way():
    one, replay = made(rl.LocalWorkers(1), rounds_per_epoch=1)
    one.fit(replay, epochs=3, verbose=0)
    state = replay.get_state()
    assert len(state["collector"]["under_way"]) == 1
    values = [np.array(variable) for variable in one.variables]
    slots = [np.array(variable) for variable in one.optimizer.variables]
    one.fit(replay, epochs=3, verbose=0)
    replay.close()

    other, replay = made(rl.LocalWorkers(1), rounds_per_epoch=1)
    replay.bind(other)
    other.optimizer.build(other.trainable_variables)
    for variable, value in zip(other.variables, values, strict=True):
        variable.assign(value)
    for variable, value in zip(other.optimizer.variables, slots, strict=True):
        variable.assign(value)
    other.env_steps = 64 + 3 * 32
    replay.set_state(state)
    history = other.fit(replay, epochs=3, verbose=0).history
    replay.close()
    assert history["lag"] == [2, 2, 2]
    assert_equal_weights(one, other)


def test_a_negative_rounds_ahead_is_refused():
    with pytest.raises(ValueError, match="Expected `rounds_ahead`"):
        made(rl.LocalWorkers(2), rounds_ahead=-1)
