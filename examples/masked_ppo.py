"""PPO on Taxi-v4 with its action mask: expect a greedy mean return of 7 to 8.

Moves into walls, and picking nobody up, cost episodes that learn nothing; the
mask that Taxi-v4 gives in `info` forbids them. Takes about a minute on two
cores. To see the curves: tensorboard --logdir runs
"""

import pathlib
import time

import keras_rl2 as rl
import keras

SEED = 0

run = pathlib.Path("runs", time.strftime("masked_ppo_%Y%m%d-%H%M%S"))
masked = {"wrappers": [rl.envs.ActionMask], "num_envs": 8}
rollouts = rl.RolloutDataset(
    "Taxi-v4",
    horizon=128,
    passes=4,
    batch_size=256,
    rounds_per_epoch=20,
    seed=SEED,
    **masked,
)
agent = rl.PPO.for_env(
    rollouts.env, gamma=0.98, entropy_coefficient=0.01, seed=SEED
)
agent.compile(keras.optimizers.Adam(1e-3, epsilon=1e-5))


def report(epoch, logs):
    print(f"{logs['env_steps']:6d} steps: return {logs['episode_return']:.1f}")


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
agent.fit(rollouts, total_steps=500_000, callbacks=callbacks, verbose=0)

score = agent.evaluate("Taxi-v4", episodes=100, seed=SEED, **masked)
print(f"greedy mean return over 100 episodes: {score['episode_return']:.1f}")
