"""PPO with an LSTM on CartPole-v1 without velocities: expect 450 or more.

Where the pole goes has to be remembered from step to step. Takes a minute or
two on two cores. To see the curves: tensorboard --logdir runs
"""

import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # hides TensorFlow's notes

import gymnasium as gym
import keras
import numpy as np

import keras_rl2 as rl

SEED = 0


class PositionsOnly(gym.ObservationWrapper):
    """Shows where cart and pole are, and not how fast they move."""

    def __init__(self, env):
        super().__init__(env)
        seen = env.observation_space
        self.observation_space = gym.spaces.Box(seen.low[::2], seen.high[::2])

    def observation(self, observation):
        return np.array(observation[::2])


run = pathlib.Path("runs", time.strftime("memory_ppo_%Y%m%d-%H%M%S"))
hidden = {"wrappers": [PositionsOnly], "num_envs": 8}
numbers = {"horizon": 128, "passes": 8, "rounds_per_epoch": 20, "seed": SEED}
rollouts = rl.RolloutDataset(
    "CartPole-v1", sequence_length=32, **numbers, **hidden
)
agent = rl.PPO.for_env(
    rollouts.env, memory=keras.layers.LSTMCell(64), gamma=0.98, seed=SEED
)
agent.compile(keras.optimizers.Adam(1e-3, epsilon=1e-5))


def report(epoch, logs):
    print(f"{logs['env_steps']:6d} steps: return {logs['episode_return']:.1f}")


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
agent.fit(rollouts, total_steps=300_000, callbacks=callbacks, verbose=0)

score = agent.evaluate("CartPole-v1", episodes=20, seed=SEED, **hidden)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
