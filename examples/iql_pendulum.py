"""IQL on Pendulum-v1, offline: expect a greedy mean return of about -160.

Takes two minutes on two cores. The data is that of a SAC which is not done
yet; TD3BC learns from it too.
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

teacher = rl.SAC.for_env("Pendulum-v1", seed=SEED)
replay = rl.ReplayDataset("Pendulum-v1", warm_up=1000, seed=SEED)
teacher.fit(replay, total_steps=5000, verbose=0)
env = gymnasium.make("Pendulum-v1")
keys = "observation", "action", "reward", "discount", "next_observation"
rows = []
observation, _ = env.reset(seed=SEED)
for _ in range(STEPS):
    action = teacher.act(observation)
    following, reward, _, truncated, _ = env.step(action)
    rows.append((observation, action, reward, teacher.gamma, following))
    observation = env.reset()[0] if truncated else following
columns = zip(*rows, strict=True)
data = {
    key: np.array(column, np.float32)
    for key, column in zip(keys, columns, strict=True)
}
rewards = data["reward"].reshape(-1, 200)
print(f"in the data: {rewards.sum(axis=1).mean():.1f}")
# Agents learn of actions as they store them, here within the unit box.
data["action"] = teacher.policy_head.from_environment(data["action"])
batches = tf.data.Dataset.from_tensor_slices(data)
batches = batches.shuffle(len(rows), seed=SEED).repeat().batch(256, True)

run = pathlib.Path("runs", time.strftime("iql_pendulum_%Y%m%d-%H%M%S"))
run.mkdir(parents=True)
for agent in (
    rl.TD3BC.for_env("Pendulum-v1", seed=SEED),
    # Advantages are in the units of rewards, which are large here.
    rl.IQL.for_env("Pendulum-v1", inverse_temperature=0.3, seed=SEED),
):
    name = type(agent).__name__
    log = [keras.callbacks.CSVLogger(run / f"{name}.csv")]
    agent.fit(batches, epochs=5, steps_per_epoch=1000, callbacks=log, verbose=0)
    score = agent.evaluate("Pendulum-v1", episodes=20, num_envs=20, seed=SEED)
    print(f"{name}: {score['episode_return']:.1f}")
agent.save(run / "agent.keras")
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
