import gymnasium
import keras
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import RolloutRefresh


class Recorder(keras.callbacks.Callback):
    """Keeps a copy of the logs of each epoch."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append(dict(logs))


def rounds_of(rollouts, monkeypatch):
    """Returns a list of the updates made before each round."""
    counts, collect = [], rollouts.collect

    def counted():
        counts.append(int(rollouts.agent.optimizer.iterations.numpy()))
        return collect()

    monkeypatch.setattr(rollouts, "collect", counted)
    return counts


def test_logs_of_the_round_reach_every_callback(agent, rollouts):
    recorder = Recorder()
    history = agent.fit(rollouts, epochs=2, callbacks=recorder, verbose=0)
    for epoch, logs in enumerate(recorder.seen):
        for key in (
            "episode_return",
            "episode_length",
            "env_steps",
            "steps_per_second",
            "explained_variance",
            "learning_rate",
            "loss",
        ):
            assert logs[key] == history.history[key][epoch], key
    assert [logs["env_steps"] for logs in recorder.seen] == [64, 128]


def test_fit_collects_once_beside_a_rollout_refresh(
    agent, rollouts, monkeypatch
):
    rounds = rounds_of(rollouts, monkeypatch)
    recorder = Recorder()
    callbacks = [recorder, RolloutRefresh(rollouts)]
    agent.fit(rollouts, callbacks=callbacks, verbose=0)
    assert recorder.seen[0]["env_steps"] == 64
    assert rounds == [0]


def test_one_of_other_rollouts_is_refused(agent, rollouts):
    other = rl.RolloutDataset("CartPole-v1", horizon=64, batch_size=32)
    with pytest.raises(ValueError, match="of the same rollouts as `fit`"):
        agent.fit(rollouts, callbacks=[RolloutRefresh(other)], verbose=0)
    assert agent.env_steps == 0


@pytest.mark.parametrize(
    "steps_per_execution", ["auto", pytest.param(1, marks=pytest.mark.slow)]
)
def test_once_per_round(new_agent, monkeypatch, steps_per_execution):
    agent = new_agent
    env = gymnasium.make("CartPole-v1")
    rollouts = rl.RolloutDataset(
        env, horizon=16, passes=3, batch_size=8, rounds_per_epoch=4
    )
    calls = rounds_of(rollouts, monkeypatch)
    agent.compile(steps_per_execution=steps_per_execution)
    history = agent.fit(rollouts, epochs=2, verbose=0).history
    assert calls == [6 * i for i in range(8)]
    assert history["env_steps"] == [64, 128]


def test_two_optimizers_log_two_rates(two_optimizers, rollouts):
    history = two_optimizers.fit(rollouts, verbose=0).history
    assert history["learning_rate_actor"] == [pytest.approx(1e-3)]
    assert history["learning_rate_critic"] == [pytest.approx(2e-3)]


def test_a_scheduled_rate_is_logged(new_agent, rollouts):
    agent = new_agent
    decay = keras.optimizers.schedules.PolynomialDecay(1e-3, 10, 0.0)
    agent.compile(keras.optimizers.Adam(decay), run_eagerly=True)
    history = agent.fit(rollouts, epochs=2, verbose=0).history
    assert history["learning_rate"] == pytest.approx([8e-4, 6e-4])
