import math
import warnings

import gymnasium
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
from support.errors import raises
from support.events import read
from support.trainings import eager_dqn
from support.trainings import fit_plain_critic

SHARES = {
    f"{each}_share"
    for each in ("environment", "acting", "preparing", "update", "rest")
}


def fit(agent, rollouts, *callbacks, epochs=2, **kwargs):
    return agent.fit(
        rollouts, epochs=epochs, callbacks=list(callbacks), verbose=0, **kwargs
    ).history


def curves(log_dir):
    events = read(log_dir)
    return {
        tag: {event.step: event.value for event in events.Scalars(tag)}
        for tag in events.Tags()["scalars"]
    }


# What is measured.


@pytest.mark.usefixtures("eagerly")
def test_it_adds_to_the_logs(relu_agent, rollouts):
    history = fit(relu_agent, rollouts, Diagnostics())
    keys = SHARES | {"update_norm", "dead_units"}
    assert keys < set(history)
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
    # There is no ReLU.
    assert "dead_units" not in history
    history = fit(agent, rollouts, Diagnostics(every=2), epochs=5)
    assert len(history["update_norm"]) == len(history["rest_share"]) == 2
    assert len(history["loss"]) == 5
    for every in (0, 1.5):
        with raises("`every`", f"every={every}"):
            Diagnostics(every=every)


def test_tensorboard_shows_it_over_environment_steps(
    relu_agent, rollouts, tmp_path
):
    agent, diagnostics = relu_agent, Diagnostics(tmp_path)
    keys = [*SHARES, "gradient_norm", "update_norm", "dead_units"]
    for _ in range(2):
        history = fit(agent, rollouts, diagnostics)
    found = curves(tmp_path)
    assert set(found) == {f"diagnostics/{key}" for key in keys}
    for key in keys:
        values = found[f"diagnostics/{key}"]
        assert list(values) == [64, 128, 192, 256]
        last = [values[192], values[256]]
        np.testing.assert_allclose(last, history[key], rtol=1e-6)


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
        agent = make_eager_agent(case, env, activation="relu")
        history = fit(agent, case.make_dataset(env), *callbacks, epochs=4)
        weights.append(agent.get_weights())
    assert len(history["update_norm"]) == 4
    # 16 steps an epoch: the first three have not enough observations.
    assert len(history["dead_units"]) == 1
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
    assert len(agent.observers) == 0
    assert rollouts.stopwatch is None


def test_a_plain_keras_model_has_what_it_can_have(agent, rollouts):
    diagnostics = Diagnostics()
    fit_plain_critic(agent, rollouts, diagnostics)
    history = diagnostics.model.history.history
    assert all(0.0 < value < 1.0 for value in history["update_norm"])
    assert all(0.0 < value < 1.0 for value in history["update_share"])


# What it warns of.


class Says(keras.callbacks.Callback):
    """Puts values into the logs, one for each epoch."""

    def __init__(self, **values):
        super().__init__()
        self.values = values

    def on_epoch_end(self, epoch, logs=None):
        logs.update({key: each[epoch] for key, each in self.values.items()})


def messages(agent, rollouts, epochs=3, warn=True, **values):
    """Returns what a `fit` with such logs is warned of."""
    callbacks = Says(**values), Diagnostics(warn=warn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(agent, rollouts, *callbacks, epochs=epochs)
    return [
        str(warning.message)
        for warning in caught
        if issubclass(warning.category, TrainingWarning)
    ]


def test_each_fault_is_warned_of_once(agent, rollouts):
    for values, expected in (
        ({"approx_kl": [0.0, 0.2, 0.3]}, "approx_kl=0.2 "),
        ({"entropy": [0.7, 0.001, 0.001]}, "entropy=0.001 "),
        ({"gradient_norm": [1.0, 1.0, math.nan]}, "gradient_norm=nan"),
        # CartPole's reward is 1, and gamma is 0.99: 150 is the most.
        ({"q_value": [149.0, 151.0, 152.0]}, "q_value=151 "),
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


def test_dead_units_are_warned_of(relu_agent, rollouts):
    agent = relu_agent
    for network in (agent.actor, agent.critic):
        network.get_layer("hidden_0").bias.assign([-1e3] * 5 + [1e3] * 3)
    (message,) = messages(agent, rollouts)
    # 10 of 16.
    assert "62% of the hidden" in message


def test_values_are_judged_by_rewards_of_the_warm_up_too():
    class Once(gymnasium.Wrapper):
        """Gives a large reward at the very first step."""

        given = False

        def step(self, action):
            observation, _, *rest = self.env.step(action)
            reward, self.given = float(not self.given) * 50.0, True
            return observation, reward, *rest

    env = Once(gymnasium.make("CartPole-v1"))
    agent, replay = eager_dqn(env, 32, rounds_per_epoch=1, gamma=0.9)
    # 1.5 x 50 / (1 - 0.9) = 750.
    values = {"q_value": [700.0, 740.0, 760.0]}
    (message,) = messages(agent, replay, **values)
    assert "q_value=760 " in message
