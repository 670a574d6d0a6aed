"""PPO wholly in the graph on CartPole-v1: expect a greedy return of 475.

Takes about 15 seconds on two cores, most of them to compile. Environments,
policy and updates are one program; a task of your own is a `GraphEnv`.
"""

import pathlib
import time

import keras_rl2 as rl
import keras

SEED = 0
STEPS = 800_000

run = pathlib.Path("runs", time.strftime("graph_ppo_%Y%m%d-%H%M%S"))
env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=64)
rollouts = rl.RolloutDataset(
    env, horizon=64, passes=4, batch_size=1024, rounds_per_epoch=20, seed=SEED
)
agent = rl.PPO.for_env(env, entropy_coefficient=0.01, seed=SEED)
agent.compile(keras.optimizers.Adam(1e-3, epsilon=1e-5))


def report(epoch, logs):
    speed = f"{logs['steps_per_second']:7.0f} steps/s"
    print(f"{logs['env_steps']:7d} steps, {speed}", end=": ")
    print(f"return {logs['episode_return']:.1f}")


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
agent.fit(rollouts, total_steps=STEPS, callbacks=callbacks, verbose=0)
agent.save(run / "agent.keras")

# Gymnasium's own environment is the judge.
score = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=SEED)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
