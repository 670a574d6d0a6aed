"""PPO on Pendulum-v1, continuous actions: expect a mean return of about -175.

Takes about 15 seconds on two cores. Torque comes from a Gaussian policy whose
standard deviation is a weight of the agent; `train/std` shows it shrink.
"""

import pathlib
import time

import keras_rl2 as rl
import gymnasium as gym
import keras

SEED = 0
STEPS = 100_000

run = pathlib.Path("runs", time.strftime("ppo_pendulum_%Y%m%d-%H%M%S"))
env = gym.make_vec("Pendulum-v1", num_envs=4)
rollouts = rl.RolloutDataset(
    env, horizon=1024, passes=10, batch_size=64, seed=SEED
)
agent = rl.PPO.for_env(env, gamma=0.9, seed=SEED)
updates = STEPS // rollouts.steps_per_round * rollouts.updates_per_round
decay = keras.optimizers.schedules.PolynomialDecay(1e-3, updates, 0.0)
agent.compile(keras.optimizers.Adam(decay, epsilon=1e-5))


def report(epoch, logs):
    print(f"{logs['env_steps']:6d} steps: return {logs['episode_return']:.1f}")


agent.fit(
    rollouts,
    total_steps=STEPS,
    callbacks=[
        rl.callbacks.TensorBoard(run),
        keras.callbacks.LambdaCallback(on_epoch_end=report),
    ],
    verbose=0,
)
agent.save(run / "agent.keras")

score = agent.evaluate("Pendulum-v1", episodes=100, num_envs=100, seed=SEED)
print(f"greedy mean return over 100 episodes: {score['episode_return']:.1f}")
