"""Trainings that tests of callbacks look at."""

import keras
import numpy as np

import keras_rl2 as rl


def eager_dqn(env, warm_up, rounds_per_epoch=2, **settings):
    """A DQN and its replay, of rounds of 16 steps and 2 updates."""
    replay = rl.ReplayDataset(
        env,
        capacity=256,
        batch_size=8,
        steps_per_round=16,
        updates_per_round=2,
        rounds_per_epoch=rounds_per_epoch,
        warm_up=warm_up,
        seed=0,
    )
    agent = rl.DQN.for_env(env, hidden=(8,), seed=0, **settings)
    agent.compile(run_eagerly=True)
    return agent, replay


def fit_plain_critic(agent, rollouts, callback):
    """Trains a model that is no agent on an agent's rollouts, two epochs."""
    critic = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    critic.compile("adam", "mse")
    critic.fit(
        rollouts.as_dataset(agent).map(
            lambda batch: (batch["observation"], batch["returns"])
        ),
        steps_per_epoch=rollouts.steps_per_epoch,
        epochs=2,
        callbacks=[rl.callbacks.RolloutRefresh(rollouts), callback],
        shuffle=False,
        verbose=0,
    )


class Trial:
    """The used members of a trial of Optuna; prunes from a step on."""

    def __init__(self, pruned_at=np.inf):
        self.reports = []
        self.pruned_at = pruned_at

    def report(self, value, step):
        self.reports.append((step, value))

    def should_prune(self):
        return self.reports[-1][0] >= self.pruned_at
