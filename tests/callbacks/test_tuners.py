"""Searches for hyperparameters: Optuna's pruning, and KerasTuner."""

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import OptunaPruning
from support.episodes import record
from support.trainings import Trial
from support.trainings import eager_dqn

optuna = pytest.importorskip("optuna")


def test_evaluations_are_reported_over_environment_steps(
    agent, rollouts, episodes
):
    trial = Trial()
    history = agent.fit(
        rollouts,
        epochs=4,
        validation_data=episodes,
        validation_freq=2,
        callbacks=[OptunaPruning(trial)],
        verbose=0,
    ).history
    scores = history["val_episode_return"]
    assert trial.reports == [(128, scores[0]), (256, scores[1])]


def test_pruning_counts_the_maximum_steps_of_whole_episodes():
    agent = rl.REINFORCE.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.compile(run_eagerly=True)
    rollouts = rl.RolloutDataset("CartPole-v1", 100, passes=1, seed=0)
    trial = Trial()
    pruning = OptunaPruning(trial, monitor="loss")
    agent.fit(rollouts, epochs=2, callbacks=[pruning], verbose=0)
    assert agent.env_steps < 200
    assert [step for step, _ in trial.reports] == [100, 200]


def test_the_warm_up_of_a_replay_counts():
    env = gymnasium.make("CartPole-v1")
    agent, replay = eager_dqn(env, warm_up=30)
    trial = Trial()
    pruning = OptunaPruning(trial, monitor="loss")
    env_steps = []
    for _ in range(2):
        history = agent.fit(
            replay, epochs=2, callbacks=[pruning], verbose=0
        ).history
        env_steps += history["env_steps"]
    assert env_steps == [step for step, _ in trial.reports]
    assert env_steps == [64, 96, 128, 160]


def test_updates_on_recorded_data_count():
    agent = rl.DQN(
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]),
        observation_space=gymnasium.spaces.Box(-1e3, 1e3, (2,)),
        action_space=gymnasium.spaces.Discrete(2),
    )
    agent.compile(run_eagerly=True)
    offline = rl.OfflineDataset(record(), 8, updates_per_epoch=2)
    trial = Trial()
    pruning = OptunaPruning(trial, monitor="loss")
    agent.fit(offline, epochs=3, callbacks=[pruning], verbose=0)
    assert [step for step, _ in trial.reports] == [2, 4, 6]


def test_a_pruned_trial_ends_the_fit(agent, rollouts, episodes):
    trial = Trial(pruned_at=128)
    with pytest.raises(optuna.TrialPruned, match=r"return=.* 128 steps"):
        agent.fit(
            rollouts,
            epochs=9,
            validation_data=episodes,
            callbacks=[OptunaPruning(trial)],
            verbose=0,
        )
    assert agent.env_steps == 128


def test_non_finite_returns_are_not_reported():
    trial = Trial()
    pruning = OptunaPruning(trial, monitor="episode_return")
    pruning.on_epoch_end(0, {"episode_return": np.nan, "env_steps": 8})
    pruning.on_epoch_end(1, {"episode_return": np.inf, "env_steps": 16})
    pruning.on_epoch_end(2, {"episode_return": 3.0, "env_steps": 24})
    assert trial.reports == [(24, 3.0)]


def test_a_plain_model_is_reported_over_epochs():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    trial = Trial()
    data = np.ones((4, 2)), np.ones((4, 1))
    history = model.fit(
        *data,
        epochs=2,
        callbacks=[OptunaPruning(trial, monitor="loss")],
        verbose=0,
    ).history
    assert trial.reports == [(1, history["loss"][0]), (2, history["loss"][1])]


def test_a_study_prunes_the_worse_trial(agent, rollouts):
    """Two trials of a known course, judged by Optuna's own pruner."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        pruning = OptunaPruning(trial)
        pruning.set_model(agent)
        for epoch in range(3):
            value = 10.0 * (epoch + 1) - 100.0 * trial.number
            logs = {"val_episode_return": value, "env_steps": 64 * (epoch + 1)}
            pruning.on_epoch_end(epoch, logs)
        return value

    study = optuna.create_study(
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=1),
    )
    study.optimize(objective, n_trials=2)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED"]
    assert study.trials[0].intermediate_values == {64: 10, 128: 20, 192: 30}
    assert study.trials[1].intermediate_values == {64: -90}


@pytest.mark.slow
def test_keras_tuner_searches(tmp_path):
    keras_tuner = pytest.importorskip("keras_tuner")
    episodes = rl.EvaluationDataset("CartPole-v1", 2, seed=0)
    histories = []

    class CartPole(keras_tuner.HyperModel):
        def build(self, hp):
            agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
            rate = hp.Choice("learning_rate", [1e-3, 1e-2])
            agent.compile(keras.optimizers.Adam(rate), run_eagerly=True)
            return agent

        def fit(self, hp, model, **kwargs):
            rollouts = rl.RolloutDataset(
                "CartPole-v1",
                horizon=64,
                passes=hp.Int("passes", 1, 2),
                batch_size=32,
                seed=0,
            )
            history = model.fit(
                rollouts, epochs=2, validation_data=episodes, **kwargs
            )
            histories.append(history.history)
            return history

    tuner = keras_tuner.RandomSearch(
        CartPole(),
        objective=keras_tuner.Objective("val_episode_return", "max"),
        max_trials=2,
        seed=0,
        directory=tmp_path,
    )
    tuner.search(verbose=0)
    scores = [max(history["val_episode_return"]) for history in histories]
    trials = tuner.oracle.get_best_trials(2)
    assert [trial.score for trial in trials] == sorted(scores, reverse=True)
    (best,) = tuner.get_best_models()
    # The weights of the best epoch, not of the last one.
    assert best.evaluate(episodes)["episode_return"] == max(scores)
