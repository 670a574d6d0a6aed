import keras
import numpy as np

import keras_rl2 as rl
from support.agents import assert_equal_weights
from support.trainings import eager_dqn


def test_an_agent_calls_its_observers_for_every_trajectory(tmp_path):
    agent, replay = eager_dqn("CartPole-v1", 32)
    steps, heard = [], []
    agent.observers.add(heard.append)
    agent.observers.add(lambda t: steps.append(np.count_nonzero(t.valid)))
    agent.fit(replay, epochs=1, verbose=0)
    # Two of the warm-up and two of the epoch.
    assert len(heard) == 4
    assert all(isinstance(t, rl.data.Trajectory) for t in heard)
    assert sum(steps) == agent.env_steps
    # It is saved without them.
    agent.save(tmp_path / "agent.keras")
    agent.export(tmp_path / "policy")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    assert (len(agent.observers), len(loaded.observers)) == (2, 0)
