"""Trials of several seeds."""

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.tuning import fit_seeds
from support.trainings import Trial
from support.trainings import eager_dqn

optuna = pytest.importorskip("optuna")


class Scores(keras.callbacks.Callback):
    """Keeps what evaluations gave, by the steps of the agent."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_epoch_end(self, epoch, logs=None):
        if "val_episode_return" in logs:
            score = logs["val_episode_return"]
            self.found.append((self.model.env_steps, score))


@pytest.fixture
def episodes():
    return rl.EvaluationDataset("CartPole-v1", 2, num_envs=2, seed=0)


def ppo(seed, horizon=32):
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=seed)
    agent.compile(run_eagerly=True)
    # One environment, not vectorised: no rows are spent on resets.
    env = gymnasium.make("CartPole-v1")
    return agent, rl.RolloutDataset(env, horizon, passes=1, seed=seed)


def test_the_mean_over_seeds_is_reported_at_the_same_steps(episodes):
    trial, logs = Trial(), [Scores(), Scores()]
    value = fit_seeds(
        trial,
        [ppo(0), ppo(1)],
        total_steps=128,
        reports=2,
        episodes=episodes,
        callbacks=[[each] for each in logs],
    )
    first, second = (each.found for each in logs)
    assert [steps for steps, _ in first] == [64, 128]
    assert [steps for steps, _ in second] == [64, 128]
    means = [(a + b) / 2 for (_, a), (_, b) in zip(first, second, strict=True)]
    assert trial.reports == [(64, means[0]), (128, means[1])]
    assert value == means[1]
    assert first != second


@pytest.mark.slow
def test_another_aggregate_can_be_asked_for(episodes):
    trial, runs = Trial(), [ppo(0), ppo(1)]
    value = fit_seeds(
        trial,
        runs,
        total_steps=32,
        reports=1,
        episodes=episodes,
        aggregate=np.min,
    )
    scores = [agent.evaluate(episodes)["episode_return"] for agent, _ in runs]
    assert value == min(scores)


@pytest.mark.slow
def test_a_pruned_trial_ends_all_its_seeds(episodes):
    trial, runs = Trial(pruned_at=64), [ppo(0), ppo(1)]
    with pytest.raises(optuna.TrialPruned, match=r" after 64 steps"):
        fit_seeds(trial, runs, total_steps=128, reports=4, episodes=episodes)
    assert [agent.env_steps for agent, _ in runs] == [64, 64]
    assert [step for step, _ in trial.reports] == [32, 64]
    # What has come to its end is not given up.
    trial = Trial(pruned_at=64)
    fit_seeds(trial, [ppo(0)], total_steps=64, reports=1, episodes=episodes)
    assert [step for step, _ in trial.reports] == [64]


@pytest.mark.slow
def test_rounds_longer_than_a_report_are_not_trained_twice(episodes):
    trial, logs = Trial(), Scores()
    fit_seeds(
        trial,
        [ppo(0, horizon=96)],
        total_steps=128,
        reports=4,
        episodes=episodes,
        callbacks=[[logs]],
    )
    assert [steps for steps, _ in logs.found] == [96, 192]
    (_, first), (_, last) = logs.found
    assert trial.reports == [(32, first), (64, first), (96, first), (128, last)]


@pytest.mark.slow
def test_nothing_is_reported_within_a_warm_up(episodes):
    run = eager_dqn(gymnasium.make("CartPole-v1"), warm_up=40)
    trial = Trial()
    fit_seeds(trial, [run], total_steps=160, reports=5, episodes=episodes)
    assert [step for step, _ in trial.reports] == [64, 96, 128, 160]


@pytest.mark.slow
def test_weights_that_diverge_give_up_the_trial(episodes):
    def diverge(*_):
        raise FloatingPointError("Expected finite gradients")

    diverging = keras.callbacks.LambdaCallback(on_epoch_end=diverge)
    with pytest.raises(optuna.TrialPruned, match="diverged before 32 steps"):
        fit_seeds(
            Trial(),
            [ppo(0)],
            total_steps=64,
            reports=2,
            episodes=episodes,
            callbacks=[[diverging]],
        )


def test_invalid_arguments_are_refused_before_training(episodes):
    agent, rollouts = ppo(0)
    arguments = {
        "runs": [(agent, rollouts)],
        "total_steps": 64,
        "episodes": episodes,
        "reports": 2,
    }
    for changed, said in (
        ({"runs": []}, "at least one run"),
        ({"reports": 0}, "at least 1"),
        ({"reports": 65}, "at most `total_steps`"),
        ({"callbacks": [[], []]}, "2 of them for 1 runs"),
    ):
        with pytest.raises(ValueError, match=said):
            fit_seeds(Trial(), **arguments | changed)
        assert agent.env_steps == 0
    # An agent that was trained before has nothing left to report.
    trial = Trial()
    for taken in (32, 64):
        agent.env_steps = taken
        with pytest.raises(ValueError, match=f"fewer steps.*has taken {taken}"):
            fit_seeds(trial, **arguments)
    assert trial.reports == []
