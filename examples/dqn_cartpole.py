"""DQN on CartPole-v1: expect a greedy mean return of 475 or more.

Takes about a minute on two cores, with the defaults of agent and dataset. To
see the curves: tensorboard --logdir runs
"""

import pathlib
import time

import keras_rl2 as rl
import keras

SEED = 0
STEPS = 50_000

run = pathlib.Path("runs", time.strftime("dqn_cartpole_%Y%m%d-%H%M%S"))
replay = rl.ReplayDataset("CartPole-v1", capacity=100_000, seed=SEED)
agent = rl.DQN.for_env("CartPole-v1", seed=SEED)


def report(epoch, logs):
    print(
        f"{logs['env_steps']:6d} steps: return {logs['episode_return']:6.1f}, "
        f"epsilon {logs['epsilon']:.2f}"
    )


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
agent.fit(replay, total_steps=STEPS, callbacks=callbacks, verbose=0)
agent.save(run / "agent.keras")

score = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=SEED)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
