"""Rainbow on CartPole-v1: expect a greedy mean return of 475 to 500.

All extensions of DQN at once: double, dueling, distributional (C51), three
steps, prioritised replay. Of the paper's six, noisy networks are left out:
epsilon falls instead. Takes about a minute on two cores.
"""

import pathlib
import time

import keras_rl2 as rl
import keras

SEED = 0
STEPS = 30_000

run = pathlib.Path("runs", time.strftime("rainbow_cartpole_%Y%m%d-%H%M%S"))
replay = rl.ReplayDataset(
    "CartPole-v1",
    capacity=50_000,
    batch_size=64,
    updates_per_round=32,
    warm_up=1000,
    n_step=3,
    prioritized=True,
    alpha=0.5,
    seed=SEED,
)
agent = rl.DQN.for_env(
    "CartPole-v1",
    double=True,
    dueling=True,
    distributional="categorical",
    support=(0.0, 100.0),
    tau=1.0,
    target_every=50,
    epsilon=keras.optimizers.schedules.PolynomialDecay(1.0, 5_000, 0.02),
    seed=SEED,
)
# To 0 over all updates, one for every two steps.
decay = keras.optimizers.schedules.PolynomialDecay(5e-4, STEPS // 2, 0.0)
agent.compile(keras.optimizers.Adam(decay))


def report(epoch, logs):
    print(f"{logs['env_steps']:6d} steps: return {logs['episode_return']:6.1f}")


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
agent.fit(replay, total_steps=STEPS, callbacks=callbacks, verbose=0)

score = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=SEED)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
