"""TensorBoard of what learns from replay; and each number under one tag."""

import numpy as np
import pytest

from keras_rl2.callbacks import TensorBoard
from support.agents import OFF_POLICY
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.events import read


@pytest.fixture
def agent():
    return make_eager_agent(OFF_POLICY["DQN"], make_env())


@pytest.fixture
def replay():
    return make_replay(make_env())


class Actions:
    """The actions that an agent was given, by the epoch."""

    def __init__(self, agent):
        self.epochs = []
        agent.observers.add(self.take)

    def take(self, trajectory):
        self.epochs.append(trajectory.action[trajectory.valid])


def test_actions_and_what_critics_think_of_them(
    agent, replay, tmp_path, monkeypatch
):
    actions = Actions(agent)
    valued = []
    values_of_taken = agent.values_of_taken

    def watched(observation, action, training=False):
        values = values_of_taken(observation, action, training=training)
        if not training:
            valued.append(np.stack([np.array(each) for each in values]))
        return values

    monkeypatch.setattr(agent, "values_of_taken", watched)
    board = TensorBoard(tmp_path, histogram_freq=2)
    epochs = 3
    agent.fit(replay, epochs=epochs, callbacks=[board], verbose=0)
    events = read(tmp_path)
    found = events.Histograms("rollout/action")
    assert len(found) == 2
    given = np.concatenate([actions.epochs[0], actions.epochs[1]])
    last = actions.epochs[-1]
    for histogram, expected in ((found[0], given), (found[1], last)):
        value = histogram.histogram_value
        # The warm-up is part of the first epoch.
        assert value.num in (expected.size, len(actions.epochs[0]))
        assert value.min >= -1
    assert found[1].histogram_value.num == last.size
    assert found[1].histogram_value.sum == pytest.approx(last.sum())
    q_values = events.Histograms("rollout/q_value")
    assert [each.step for each in q_values] == [each.step for each in found]
    assert q_values[1].histogram_value.num == valued[-1].size
    assert q_values[1].histogram_value.max == pytest.approx(valued[-1].max())
    assert len(valued[-1]) == 1
    assert not [t for t in events.Tags()["histograms"] if "updates" in t]
    # Nobody is told any more.
    assert board._watched is None


def test_each_number_has_its_curve(agent, replay, tmp_path):
    callback = TensorBoard(tmp_path)
    values = []
    for _ in range(2):
        history = agent.fit(
            replay, epochs=2, callbacks=[callback], verbose=0
        ).history
        values.append(history)
    events = read(tmp_path)
    for key in (*agent.statistics_names, *agent.exploration_logs()):
        # That of Stable-Baselines3.
        is_epsilon = key == "epsilon"
        tag = "rollout/exploration_rate" if is_epsilon else f"train/{key}"
        assert [e.step for e in events.Scalars(tag)] == [16, 32, 48, 64], tag
        expected = [value for history in values for value in history[key]]
        np.testing.assert_allclose(
            [e.value for e in events.Scalars(tag)], expected, rtol=1e-6
        )
    histograms = [t for t in events.Tags()["histograms"] if "weights/" in t]
    # But for those that count something.
    numbers = [w for w in agent.weights if "float" in w.dtype]
    assert len(histograms) == len(numbers)
    assert any("/target_" in tag for tag in histograms)
    (event,) = events.Tensors("hyper_parameters")
    lines = event.tensor_proto.string_val[0].decode().splitlines()
    for line in (
        "| agent.gamma | 0.99 |",
        "| dataset.capacity | 256 |",
        "| dataset.steps_per_round | 16 |",
        "| dataset.updates_per_round | 2 |",
        "| dataset.prioritized | false |",
        "| dataset.num_envs | 2 |",
    ):
        assert line in lines
    assert events.Tags()["graph"]
