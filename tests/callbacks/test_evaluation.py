import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import Evaluation

KEYS = {"val_episode_return", "val_episode_return_std", "val_episode_length"}


def test_validation_data_adds_its_keys(agent, rollouts, episodes):
    history = agent.fit(rollouts, validation_data=episodes, verbose=0).history
    assert set(history) >= KEYS
    # Deterministic and seeded: it can be played again.
    expected = agent.evaluate(episodes)
    assert history["val_episode_return"] == [expected["episode_return"]]
    assert history["val_episode_length"] == [expected["episode_length"]]


def test_it_is_played_at_its_frequency(agent, rollouts, monkeypatch):
    # An environment is enough.
    history = agent.fit(
        rollouts,
        epochs=5,
        validation_data="CartPole-v1",
        validation_freq=2,
        verbose=0,
    ).history
    assert set(history) >= KEYS
    assert len(history["val_episode_return"]) == 2
    # The callback alone does the same.
    episodes = rl.EvaluationDataset("CartPole-v1", 1, seed=0)
    played, play = [], episodes.play
    monkeypatch.setattr(
        episodes, "play", lambda a: (played.append(a.env_steps), play(a))[1]
    )
    callback = Evaluation(episodes, frequency=2)
    history = agent.fit(
        rollouts, epochs=4, callbacks=[callback], verbose=0
    ).history
    assert played == history["env_steps"][1::2]
    assert len(history["val_episode_return"]) == 2
    with pytest.raises(ValueError, match="Received: frequency=0"):
        Evaluation(episodes, frequency=0)
