import keras
import numpy as np

import keras_rl2 as rl
from keras_rl2.updates.observing import Observers
from support.agents import assert_equal_weights
from support.trainings import eager_dqn


class Listener:
    def __init__(self):
        self.heard = []

    def hear(self, news):
        self.heard.append(news)


def test_each_is_told_once_until_it_is_removed():
    observers, first, second = Observers(), Listener(), Listener()
    for listener in (first, first, second):
        observers.add(listener.hear)
    observers(1)
    observers.remove(second.hear)
    observers(2)
    observers.remove(first.hear)
    observers.remove(first.hear)
    observers(3)
    assert (first.heard, second.heard) == ([1, 2], [1])
    assert len(observers) == 0


def test_methods_are_forgotten_with_their_object():
    observers, listener, heard = Observers(), Listener(), []
    observers.add(listener.hear)
    # A function is not: nobody else may hold it.
    observers.add(lambda news: heard.append(news))
    assert len(observers) == 2
    del listener
    assert len(observers) == 1
    observers(1)
    assert heard == [1]


def test_an_agent_tells_of_every_trajectory(tmp_path):
    agent, replay = eager_dqn("CartPole-v1", 32)
    steps, listener = [], Listener()
    agent.observers.add(listener.hear)
    agent.observers.add(lambda t: steps.append(np.count_nonzero(t.valid)))
    agent.fit(replay, epochs=1, verbose=0)
    # Two of the warm-up and two of the epoch.
    assert len(listener.heard) == 4
    assert all(isinstance(t, rl.data.Trajectory) for t in listener.heard)
    assert sum(steps) == agent.env_steps
    # It is saved without them.
    agent.save(tmp_path / "agent.keras")
    agent.export(tmp_path / "policy")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    assert (len(agent.observers), len(loaded.observers)) == (2, 0)
