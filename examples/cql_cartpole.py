"""CQL on CartPole-v1, offline: expect a greedy mean return over 400.

Takes a minute and a half on two cores. The data is half a random policy's and
half that of a PPO which is not done yet; DQN and cloning learn from it too.
"""

import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # hides TensorFlow's notes

import gymnasium
import keras
import numpy as np
import tensorflow as tf

import keras_rl2 as rl

SEED = 0
STEPS = 10_000

teacher = rl.PPO.for_env("CartPole-v1", seed=SEED)
rollouts = rl.RolloutDataset("CartPole-v1", horizon=128, num_envs=8, seed=SEED)
teacher.fit(rollouts, total_steps=50_000, verbose=0)
env = gymnasium.make("CartPole-v1")
env.action_space.seed(SEED)
keys = "observation", "action", "reward", "discount", "next_observation"
rows = []
for policy in (teacher.act, lambda _: env.action_space.sample()):
    observation, _ = env.reset(seed=SEED)
    for _ in range(STEPS):
        action = policy(observation)
        following, reward, terminated, truncated, _ = env.step(action)
        discount = 0.0 if terminated else teacher.gamma
        rows.append((observation, action, reward, discount, following))
        over = terminated or truncated
        observation = env.reset()[0] if over else following
data = {
    key: np.array(column, np.int32 if key == "action" else np.float32)
    for key, column in zip(keys, zip(*rows, strict=True), strict=True)
}
batches = tf.data.Dataset.from_tensor_slices(data)
batches = batches.shuffle(len(rows), seed=SEED).repeat().batch(64, True)

run = pathlib.Path("runs", time.strftime("cql_cartpole_%Y%m%d-%H%M%S"))
run.mkdir(parents=True)
for agent in (
    rl.BehaviorCloning.for_env("CartPole-v1", seed=SEED),
    rl.DQN.for_env("CartPole-v1", seed=SEED),
    rl.CQL.for_env("CartPole-v1", seed=SEED),
):
    name = type(agent).__name__
    log = [keras.callbacks.CSVLogger(run / f"{name}.csv")]
    agent.fit(batches, epochs=5, steps_per_epoch=1000, callbacks=log, verbose=0)
    score = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=SEED)
    print(f"{name}: {score['episode_return']:.1f}")
agent.save(run / "agent.keras")
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
