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


def test_an_environment_is_enough(agent, rollouts):
    history = agent.fit(rollouts, validation_data="CartPole-v1", verbose=0)
    assert set(history.history) >= KEYS


@pytest.mark.parametrize(
    ("frequency", "expected"),
    [
        pytest.param(1, 5, marks=pytest.mark.slow),
        (2, 2),
        pytest.param(5, 1, marks=pytest.mark.slow),
    ],
)
def test_it_is_played_at_its_frequency(
    agent, rollouts, monkeypatch, frequency, expected
):
    episodes = rl.EvaluationDataset("CartPole-v1", 1, seed=0)
    played = []
    play = episodes.play
    monkeypatch.setattr(
        episodes, "play", lambda a: (played.append(a.env_steps), play(a))[1]
    )
    history = agent.fit(
        rollouts,
        epochs=5,
        validation_data=episodes,
        validation_freq=frequency,
        verbose=0,
    ).history
    assert played == history["env_steps"][frequency - 1 :: frequency]
    assert len(history["val_episode_return"]) == expected


def test_the_callback_alone_does_the_same(agent, rollouts, episodes):
    callback = Evaluation(episodes, frequency=2)
    history = agent.fit(
        rollouts, epochs=4, callbacks=[callback], verbose=0
    ).history
    assert len(history["val_episode_return"]) == 2


def test_training_is_the_same_with_and_without(reused, episodes):
    weights = []
    for validation_data in (None, episodes):
        rollouts = rl.RolloutDataset(
            "CartPole-v1", horizon=32, passes=1, batch_size=32, seed=0
        )
        agent = reused()
        agent.fit(
            rollouts, epochs=3, validation_data=validation_data, verbose=0
        )
        weights.append(agent.get_weights())
    for without, with_evaluation in zip(*weights, strict=True):
        assert (without == with_evaluation).all()


def test_a_frequency_below_one_is_refused(episodes):
    with pytest.raises(ValueError, match="Received: frequency=0"):
        Evaluation(episodes, frequency=0)
