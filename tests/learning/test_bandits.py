"""A bandit on which the loss of the form `[n, 1]` times `[n]` does not learn.

Solved means 0.95 of the best arm's rate in the mean of ten epochs of 100
pulls each, with the defaults of `for_env` and `compile`.
"""

import os
import pathlib
import re
import runpy
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.bandit import GaussianBandit

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "bandit_actor_critic.py"
PULLS, EPOCHS = 100, 1000

UPDATES = {
    "REINFORCE": {"passes": 1, "batch_size": None},
    "A2C": {"passes": 1, "batch_size": None},
    "PPO": {"passes": 4, "batch_size": PULLS},
}
"""What each agent makes of an epoch's pulls, as its own page says."""


class StopWhenSolved(keras.callbacks.Callback):
    """Stops after ten epochs with a mean of 0.95 at least."""

    def __init__(self):
        super().__init__()
        self._shares = []

    def on_epoch_end(self, epoch, logs=None):
        self._shares.append(logs["episode_return"])
        if len(self._shares) >= 10 and np.mean(self._shares[-10:]) >= 0.95:
            self.model.stop_training = True


def learn(name, seed, callbacks=()):
    """Returns the share of the best arm in each epoch."""
    env = rl.envs.GraphVectorEnv(GaussianBandit, num_envs=PULLS)
    rollouts = rl.RolloutDataset(env, horizon=1, seed=seed, **UPDATES[name])
    agent = getattr(rl, name).for_env(env, seed=seed)
    history = agent.fit(
        rollouts, epochs=EPOCHS, callbacks=list(callbacks), verbose=0
    ).history
    # An epoch's 100 pulls are the 100 episodes that this is the mean of.
    assert agent.env_steps == PULLS * len(history["episode_return"])
    return history["episode_return"]


def test_ppo_solves_the_bandit():
    shares = learn("PPO", seed=0, callbacks=[StopWhenSolved()])
    assert np.mean(shares[:5]) < 0.8
    assert len(shares) < EPOCHS // 2
    assert np.mean(shares[-10:]) >= 0.95


@pytest.mark.learning
@pytest.mark.parametrize("name", UPDATES)
def test_agents_stay_at_the_best_arm(name):
    shares = learn(name, seed=0)
    assert len(shares) == EPOCHS
    assert np.mean(shares[-10:]) >= 0.95


def read_output(text):
    """Returns (share, difference) of both forms, and the last line."""
    found = re.findall(
        r"(\w+)_form: share ([\d.]+), gradients differ by (\S+)", text
    )
    assert [form for form, _, _ in found] == ["loop", "batch"]
    numbers = [(float(share), float(gap)) for _, share, gap in found]
    return numbers, text.splitlines()[-1]


@pytest.mark.slow
def test_example_shows_equal_gradients_and_the_refusal(tmp_path, capsys):
    source, sizes = EXAMPLE.read_text(), "SEED, EPOCHS, SAMPLES = 0, "
    assert f"{sizes}300, 100" in source
    short = tmp_path / EXAMPLE.name
    short.write_text(source.replace(f"{sizes}300, 100", f"{sizes}10, 10"))
    runpy.run_path(str(short))
    forms, refusal = read_output(capsys.readouterr().out)
    for _, gap in forms:
        assert gap <= 3e-6
    assert refusal.startswith("[n, 1] times [n]: Expected equal shapes.")
    assert "broadcast to [10, 10]: squeeze the last axis" in refusal


@pytest.mark.learning
def test_example_learns_in_both_forms():
    finished = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(EXAMPLE)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    assert "Warning" not in finished.stderr
    for share, gap in read_output(finished.stdout)[0]:
        assert share >= 0.95
        assert gap <= 1e-5


def train_by_hand(seed, column, softmax):
    """Trains linear networks on the bandit, the gradients written out.

    Args:
        seed: int.
        column: Whether the advantage is `[n, 1]`, so that the mean of the
            product is the product of the means.
        softmax: Whether the critic ends in a softmax over its one unit.

    Returns:
        The share of the best arm in each epoch.
    """
    rng = np.random.default_rng(seed)
    weights = np.r_[rng.uniform(-1.2, 1.2, 4), 0, 0, rng.uniform(-1, 1, 2), 0]
    moments, shares = np.zeros((2, 9)), []
    for epoch in range(1, EPOCHS + 1):
        inputs = np.ones((PULLS, 3))
        inputs[:, :2] = rng.normal((10.0, 0.0), (15.0, 1.0), (PULLS, 2))
        logits = inputs @ weights[:6].reshape(3, 2)
        best = 1.0 / (1.0 + np.exp(np.clip(logits @ [-1.0, 1.0], -99, 99)))
        reward = (rng.random(PULLS) < best).astype(float)
        advantage = reward - (1.0 if softmax else inputs @ weights[6:])
        factor = advantage.mean() if column else advantage
        # The derivative of log_prob by the first logit; by the other, minus it.
        slope = factor * (reward - best)
        actor = -inputs.T @ np.stack([slope, -slope], axis=1) / PULLS
        critic = -2.0 * inputs.T @ advantage / PULLS * (not softmax)
        gradient = np.r_[actor.ravel(), critic]
        moments[0] += 0.1 * (gradient - moments[0])
        moments[1] += 0.001 * (gradient**2 - moments[1])
        mean, square = moments / (1.0 - np.power([[0.9], [0.999]], epoch))
        weights = weights - 0.1 * mean / (np.sqrt(square) + 1e-7)
        shares.append(reward.mean())
    return shares


@pytest.mark.learning
@pytest.mark.parametrize("softmax", [False, True])
def test_the_broken_form_mostly_fails_where_the_right_one_learns(softmax):
    solved = {
        column: sum(
            np.mean(train_by_hand(seed, column, softmax)[-10:]) >= 0.95
            for seed in range(10)
        )
        for column in (False, True)
    }
    assert solved[False] == 10
    assert solved[True] <= 7
