"""Callbacks with recurrent agents, and with trees of arrays."""

import gymnasium as gym
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.events import read
from support.workshop import Workshop

HORIZON = 16


def on_policy(autoreset_mode="SameStep"):
    env = gym.vector.SyncVectorEnv(
        [Workshop] * 3, autoreset_mode=autoreset_mode
    )
    agent = rl.PPO.for_env(env, memory=keras.layers.GRUCell(4), seed=0)
    rollouts = rl.RolloutDataset(
        env, horizon=HORIZON, passes=1, batch_size=24, sequence_length=8, seed=0
    )
    return agent, rollouts, Workshop


@pytest.mark.slow
def test_all_callbacks_together(tmp_path):
    agent, dataset, make = on_policy()
    # A few updates take less time than the tracing of one.
    agent.compile(run_eagerly=True)
    evaluation = rl.callbacks.Evaluation(
        rl.EvaluationDataset(make(None), 2, seed=0)
    )
    history = agent.fit(
        dataset,
        epochs=2,
        verbose=0,
        callbacks=[
            evaluation,
            rl.callbacks.Diagnostics(),
            rl.callbacks.RecordVideo(
                lambda: make("rgb_array"), tmp_path, every=1, max_steps=5
            ),
            rl.callbacks.TensorBoard(tmp_path, histogram_freq=1),
        ],
    ).history
    assert len(history["val_episode_return"]) == 2
    assert all(norm > 0 for norm in history["update_norm"])
    assert len(list(tmp_path.glob("*.gif"))) == 2
    tags = read(tmp_path).Tags()
    assert {"train/loss", "eval/mean_reward"} <= set(tags["scalars"])
    assert any(tag.startswith("weights/") for tag in tags["histograms"])


def test_histograms_of_sequences_count_each_step_once(tmp_path):
    agent, rollouts, _ = on_policy("NextStep")
    agent.compile(run_eagerly=True)
    trajectories = []
    agent.observers.add(trajectories.append)
    callback = rl.callbacks.TensorBoard(tmp_path, histogram_freq=1)
    agent.fit(rollouts, callbacks=[callback], verbose=0)
    (trajectory,) = trajectories
    (action,) = read(tmp_path).Histograms("rollout/action")
    taken = trajectory.action[trajectory.valid]
    assert len(taken) < 3 * HORIZON
    assert action.histogram_value.num == taken.size
    np.testing.assert_allclose(
        action.histogram_value.sum, taken.sum(), rtol=1e-5
    )
