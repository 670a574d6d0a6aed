"""A2C on CartPole-v1: expect a greedy mean return of 475 or more.

Takes about half a minute on two cores, with the defaults of agent and dataset.
To see the curves: tensorboard --logdir runs
"""

import pathlib
import time

import keras_rl2 as rl
import gymnasium as gym
import keras

SEED = 0

run = pathlib.Path("runs", time.strftime("a2c_cartpole_%Y%m%d-%H%M%S"))
env = gym.make_vec("CartPole-v1", num_envs=8)
# Rounds of 64 steps, each one update; an epoch is 100 of them.
rollouts = rl.RolloutDataset(env, rounds_per_epoch=100, seed=SEED)
agent = rl.A2C.for_env(env, seed=SEED)


def report(epoch, logs):
    print(f"{logs['env_steps']:6d} steps: return {logs['episode_return']:.1f}")


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
agent.fit(rollouts, total_steps=200_000, callbacks=callbacks, verbose=0)

score = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=SEED)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
