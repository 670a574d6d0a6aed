import keras
import numpy as np
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


def test_validation_data_is_played_at_its_frequency(
    agent, rollouts, monkeypatch
):
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


HOOKS = "train_begin epoch_begin test_begin test_end epoch_end train_end"


def noting(called):
    """Returns a callback that notes which of its methods are called."""

    def note(name):
        return lambda *_, logs=None: called.append(name)

    methods = {f"on_{name}": note(name) for name in HOOKS.split()}
    return keras.callbacks.LambdaCallback(**methods)


@pytest.mark.parametrize("own", [False, True])
def test_callbacks_receive_evaluations_as_from_keras(
    own, agent, rollouts, episodes
):
    """The same holds of an `Evaluation` among the callbacks."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    ones, expected, called, results = np.ones((2, 1)), [], [], []
    model.fit(
        *(ones, ones),
        epochs=3,
        verbose=0,
        validation_data=(ones, ones),
        validation_freq=2,
        callbacks=[noting(expected)],
    )
    told = [
        keras.callbacks.LambdaCallback(on_test_end=results.append),
        noting(called),
    ]
    given = {"validation_data": episodes, "validation_freq": 2}
    if own:
        given = {}
        told.insert(0, Evaluation(episodes, frequency=2))
    history = agent.fit(
        rollouts, epochs=3, verbose=0, callbacks=told, **given
    ).history
    assert called == expected
    [result] = results
    assert history["val_episode_return"] == [result["episode_return"]]


def test_evaluate_calls_its_callbacks(agent, episodes):
    called = []
    agent.evaluate(episodes, callbacks=[noting(called)])
    assert called == ["test_begin", "test_end"]


def test_averaged_weights_are_evaluated(rollouts, monkeypatch):
    optimizer = keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.9)
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.compile(optimizer, run_eagerly=True)
    episodes = rl.EvaluationDataset("CartPole-v1", 1, seed=0)
    [kernel, *_] = agent.actor.trainable_variables
    index = [each is kernel for each in agent.trainable_variables].index(True)
    seen, play = [], episodes.play

    def noting_weights(*given):
        seen.append(kernel.numpy())
        return play(*given)

    monkeypatch.setattr(episodes, "play", noting_weights)
    before = []
    keep = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: before.append(
            [
                each.numpy()
                for each in (
                    kernel,
                    optimizer._model_variables_moving_average[index],
                )
            ]
        ),
        on_epoch_end=lambda epoch, logs: before.append([kernel.numpy()]),
    )
    agent.fit(
        rollouts,
        verbose=0,
        validation_data=episodes,
        callbacks=[keras.callbacks.SwapEMAWeights(), keep],
    )
    *_, (raw, average), (after,) = before
    assert np.abs(raw - average).max() > 1e-3
    np.testing.assert_allclose(seen, [average], atol=1e-6)
    np.testing.assert_allclose(after, raw, atol=1e-6)
