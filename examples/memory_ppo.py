"""PPO with an LSTM on CartPole-v1 without velocities: expect 475 or more.

Where the pole goes has to be remembered from step to step. Takes about a
minute and a half on two cores. To see the curves: tensorboard --logdir runs
"""

import pathlib
import time

import keras_rl2 as rl
import gymnasium as gym
import keras
import numpy as np

SEED = 0
STEPS = 300_000


class PositionsOnly(gym.ObservationWrapper):
    """Shows where cart and pole are, and not how fast they move."""

    def __init__(self, env):
        super().__init__(env)
        seen = env.observation_space
        self.observation_space = gym.spaces.Box(seen.low[::2], seen.high[::2])

    def observation(self, observation):
        return np.array(observation[::2])


run = pathlib.Path("runs", time.strftime("memory_ppo_%Y%m%d-%H%M%S"))
hidden = {"wrappers": [PositionsOnly], "num_envs": 8, "seed": SEED}
numbers = {"horizon": 128, "passes": 10, "batch_size": 256}
rollouts = rl.RolloutDataset(
    "CartPole-v1", sequence_length=32, scale_rewards=True, **numbers, **hidden
)
memory = keras.layers.LSTMCell(64)
agent = rl.PPO.for_env(
    rollouts.env, memory=memory, gamma=0.98, gae_lambda=0.8, seed=SEED
)
updates = STEPS // rollouts.steps_per_round * rollouts.updates_per_round
rate = keras.optimizers.schedules.PolynomialDecay(1e-3, updates, 0.0)
agent.compile(keras.optimizers.Adam(rate))

agent.fit(
    rollouts, total_steps=STEPS, callbacks=[rl.callbacks.TensorBoard(run)]
)

score = agent.evaluate("CartPole-v1", episodes=20, **hidden)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
