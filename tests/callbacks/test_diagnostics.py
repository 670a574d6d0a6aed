import math
import warnings

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import Diagnostics
from keras_rl2.callbacks import TrainingWarning
from support.agents import KINDS
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import make_env
from support.trainings import fit_plain_critic

SHARES = {
    f"{each}_share"
    for each in ("environment", "acting", "preparing", "update", "rest")
}


def fit(agent, rollouts, *callbacks, epochs=2, **kwargs):
    return agent.fit(
        rollouts, epochs=epochs, callbacks=list(callbacks), verbose=0, **kwargs
    ).history


# What is measured.


@pytest.mark.usefixtures("eagerly")
def test_diagnostics_add_their_values_to_the_logs(agent, rollouts):
    seen = []
    before = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(set(logs))
    )
    history = fit(agent, rollouts, before, Diagnostics())
    keys = SHARES | {"update_norm"}
    assert keys < set(history)
    # Wherever it stands among the callbacks.
    assert keys < seen[0]
    for key in keys:
        assert len(history[key]) == 2
        assert all(0.0 <= value <= 1.0 for value in history[key])
    for values in zip(*(history[key] for key in SHARES), strict=True):
        assert sum(values) == pytest.approx(1.0)
        assert min(values) > 0.0


def test_the_update_norm_is_that_of_the_epoch(agent, rollouts):
    before = np.concatenate([w.ravel() for w in agent.get_weights()])
    history = fit(agent, rollouts, Diagnostics(), epochs=1)
    after = np.concatenate([w.ravel() for w in agent.get_weights()])
    norm = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert history["update_norm"] == [pytest.approx(norm, rel=1e-5)]


# What it leaves alone.


@pytest.mark.parametrize(
    "name",
    ["DQN"]
    + [pytest.param(k, marks=pytest.mark.slow) for k in ("PPO", "SAC", "TD3")],
)
def test_training_is_the_same_with_and_without(name):
    case = KINDS[name]
    weights = []
    episodes = rl.EvaluationDataset(make_env(case.pair), 1, seed=0)
    for callbacks in (
        [],
        [Diagnostics(), rl.callbacks.Evaluation(episodes)],
    ):
        env = make_env(case.pair)
        agent = make_eager_agent(case, env)
        history = fit(agent, case.make_dataset(env), *callbacks, epochs=4)
        weights.append(agent.get_weights())
    assert len(history["update_norm"]) == 4
    assert_equal_weights(*weights)


class Interrupt(keras.callbacks.Callback):
    """Stops a `fit` as Ctrl-C does, in the midst of a round."""

    def on_train_batch_end(self, batch, logs=None):
        raise KeyboardInterrupt


def test_an_interrupted_fit_is_cleaned_up_by_the_next(agent, rollouts):
    diagnostics = Diagnostics()
    with pytest.raises(KeyboardInterrupt):
        fit(agent, rollouts, Interrupt(), diagnostics)
    history = fit(agent, rollouts, diagnostics)
    assert sum(history[key][0] for key in SHARES) == pytest.approx(1.0)
    assert rollouts.stopwatch is None


def test_a_plain_keras_model_logs_norms_of_updates(agent, rollouts):
    diagnostics = Diagnostics()
    fit_plain_critic(agent, rollouts, diagnostics)
    history = diagnostics.model.history.history
    assert all(0.0 < value < 1.0 for value in history["update_norm"])
    assert all(0.0 < value < 1.0 for value in history["update_share"])


# What it warns of.


class Says(keras.callbacks.Callback):
    """Puts values into the logs, one for each epoch."""

    adds_logs = True

    def __init__(self, **values):
        super().__init__()
        self.values = values

    def on_epoch_end(self, epoch, logs=None):
        logs.update({key: each[epoch] for key, each in self.values.items()})


def messages(agent, rollouts, epochs=3, warn=True, **values):
    """Returns the warnings of a `fit` with such logs."""
    callbacks = Says(**values), Diagnostics(warn=warn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(agent, rollouts, *callbacks, epochs=epochs)
    return [
        str(warning.message)
        for warning in caught
        if issubclass(warning.category, TrainingWarning)
    ]


def test_a_warning_shows_the_line_of_the_program(agent, rollouts):
    callbacks = [Says(approx_kl=[0.2]), Diagnostics()]
    with pytest.warns(TrainingWarning) as caught:
        agent.fit(rollouts, epochs=1, callbacks=callbacks, verbose=0)
    assert {each.filename for each in caught} == {__file__}


def test_each_fault_is_warned_of_once(agent, rollouts):
    for values, expected in (
        ({"approx_kl": [0.0, 0.2, 0.3]}, "approx_kl=0.2 "),
        ({"entropy": [0.7, 0.001, 0.001]}, "entropy=0.001 "),
        ({"gradient_norm": [1.0, 1.0, math.nan]}, "gradient_norm=nan"),
    ):
        (message,) = messages(agent, rollouts, **values)
        assert expected in message
    # Once more in another training, and not if nothing is to be said.
    assert len(messages(agent, rollouts, **values)) == 1
    assert messages(agent, rollouts, warn=False, **values) == []
    # Nor of a training that goes well.
    assert messages(agent, rollouts) == []
    values = {"explained_variance": [-1.0] * 12}
    (message,) = messages(agent, rollouts, epochs=12, **values)
    assert "for 10 epochs" in message


def test_rules_that_make_no_sense_are_left_out(rollouts):
    # Entropy of numbers may fall, and float16 overflow.
    of_numbers = rl.RolloutDataset(
        "Pendulum-v1", horizon=32, passes=1, batch_size=32, seed=0
    )
    adam = keras.optimizers.Adam(1e-3)
    for env, data, optimizer, values in (
        ("Pendulum-v1", of_numbers, adam, {"entropy": [1.4, 0.0, -2.0]}),
        (
            "CartPole-v1",
            rollouts,
            keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-3)),
            {"gradient_norm": [math.inf] * 3},
        ),
    ):
        agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
        agent.compile(optimizer, run_eagerly=True)
        assert messages(agent, data, **values) == []
