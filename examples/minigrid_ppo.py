"""PPO on MiniGrid-Empty-8x8-v0: expect a greedy mean return of 0.9 or more.

Observations are a Dict of a small picture, a direction and a text; the text is
taken away, and an encoder is made for each of the rest. Needs `pip install
minigrid`. Takes about a minute on two cores. To see the curves: tensorboard
--logdir runs
"""

import pathlib
import time

import keras_rl2 as rl
import gymnasium as gym
import keras

ENV = "minigrid:MiniGrid-Empty-8x8-v0"
SEED = 0


def without_mission(env):
    return gym.wrappers.FilterObservation(env, ["direction", "image"])


run = pathlib.Path("runs", time.strftime("minigrid_ppo_%Y%m%d-%H%M%S"))
seen = {"wrappers": [without_mission], "num_envs": 8}
rollouts = rl.RolloutDataset(
    ENV,
    horizon=128,
    passes=4,
    batch_size=256,
    rounds_per_epoch=10,
    seed=SEED,
    **seen,
)
agent = rl.PPO.for_env(rollouts.env, entropy_coefficient=0.01, seed=SEED)
agent.compile(keras.optimizers.Adam(1e-3, epsilon=1e-5))


def report(epoch, logs):
    print(f"{logs['env_steps']:6d} steps: return {logs['episode_return']:.2f}")


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
agent.fit(rollouts, total_steps=60_000, callbacks=callbacks, verbose=0)

score = agent.evaluate(ENV, episodes=20, seed=SEED, **seen)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.2f}")
