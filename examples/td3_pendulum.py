"""TD3 on Pendulum-v1: expect a greedy mean return of about -150.

Takes a minute and a half on two cores: 20 000 steps, one update for each.
To see the curves: tensorboard --logdir runs
"""

import pathlib
import time

import keras_rl2 as rl
import keras

SEED = 0

run = pathlib.Path("runs", time.strftime("td3_pendulum_%Y%m%d-%H%M%S"))
replay = rl.ReplayDataset(
    "Pendulum-v1", capacity=100_000, batch_size=256, warm_up=1000, seed=SEED
)
agent = rl.TD3.for_env(
    "Pendulum-v1",
    gamma=0.98,
    exploration=rl.exploration.GaussianNoise(0.1),
    seed=SEED,
)
agent.compile(keras.optimizers.Adam(1e-3))


def report(epoch, logs):
    print(
        f"{logs['env_steps']:6d} steps: return {logs['episode_return']:8.1f}, "
        f"Q {logs['q_value']:.1f}"
    )


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
agent.fit(replay, total_steps=20_000, callbacks=callbacks, verbose=0)
agent.save(run / "agent.keras")

score = agent.evaluate("Pendulum-v1", episodes=20, num_envs=20, seed=SEED)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
