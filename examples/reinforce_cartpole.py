"""REINFORCE with a baseline on CartPole-v1: expect a greedy return of 475.

Takes about 20 seconds on two cores. To see the curves: tensorboard --logdir
runs
"""

import pathlib
import time

import keras_rl2 as rl
import gymnasium as gym

SEED = 0

run = pathlib.Path("runs", time.strftime("reinforce_cartpole_%Y%m%d-%H%M%S"))
env = gym.make_vec("CartPole-v1", num_envs=8)
# Each round plays one whole episode per environment, of up to 500 steps.
rollouts = rl.RolloutDataset(env, seed=SEED)
agent = rl.REINFORCE.for_env(env, seed=SEED)
agent.fit(
    rollouts,
    total_steps=300_000,
    callbacks=[rl.callbacks.TensorBoard(run)],
)

score = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=SEED)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
