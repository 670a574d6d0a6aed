"""Memory and traces of a long training."""

import gc
import os
import resource

import gymnasium as gym
import keras
import numpy as np
import pytest

import keras_rl2 as rl

pytestmark = pytest.mark.usefixtures("as_users_run")

STEPS_OF_WARM_UP = 200_000
STEPS = 500_000


def resident_mib():
    """Returns the resident memory of this process."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        pages = int(file.read().split()[1])
    return pages * resource.getpagesize() / 2**20


def make_dataset(name, env):
    """Makes what the agent learns from, of rounds of thousands of steps."""
    if name == "DQN":
        # Filled before the first figure is taken.
        return rl.ReplayDataset(
            env,
            capacity=100_000,
            steps_per_round=2048,
            updates_per_round=32,
            prioritized=True,
            seed=0,
        )
    horizon, passes = (128, 4) if name == "PPO" else (16, 1)
    return rl.RolloutDataset(
        env,
        horizon,
        passes,
        batch_size=None,
        rounds_per_epoch=4,
        scale_rewards=False,
        seed=0,
    )


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux only")
@pytest.mark.parametrize("name", ["PPO", "A2C", "DQN"])
def test_resident_memory_does_not_grow(name):
    env = gym.make_vec("CartPole-v1", num_envs=64)
    agent = getattr(rl, name).for_env(env, hidden=(64, 64), seed=0)
    dataset = make_dataset(name, env)
    steps, memory = [], []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            gc.collect()
            if agent.env_steps < STEPS_OF_WARM_UP:
                return
            steps.append(agent.env_steps)
            memory.append(resident_mib())

    agent.fit(
        dataset,
        total_steps=STEPS_OF_WARM_UP + STEPS,
        callbacks=[Watch()],
        verbose=0,
    )
    slope = 1e5 * np.polyfit(steps, memory, 1)[0]
    print(f"{name}: {slope:.3f} MiB per 100k steps, {memory[-1]:.0f} MiB")
    assert steps[-1] - steps[0] > 0.9 * STEPS
    assert slope <= 0.1
