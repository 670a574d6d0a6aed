"""PPO on CartPole-v1: expect a greedy mean return of 500, the maximum.

Takes about 20 seconds on two cores. Network, round and optimizer are PPO's own.
Curves: tensorboard --logdir runs, and a PNG if Matplotlib is installed.
"""

import contextlib
import pathlib
import time

import keras_rl2 as rl
import gymnasium as gym
import keras

SEED = 0
STEPS = 100_000

run = pathlib.Path("runs", time.strftime("ppo_cartpole_%Y%m%d-%H%M%S"))
env = gym.make_vec("CartPole-v1", num_envs=8)
rollouts = rl.RolloutDataset(env, seed=SEED)
agent = rl.PPO.for_env(env, seed=SEED)


def report(epoch, logs):
    print(f"{logs['env_steps']:6d} steps: return {logs['episode_return']:.1f}")


callbacks = [
    rl.callbacks.TensorBoard(run),
    keras.callbacks.LambdaCallback(on_epoch_end=report),
]
fit = agent.fit(rollouts, total_steps=STEPS, callbacks=callbacks, verbose=0)
agent.save(run / "agent.keras")

with contextlib.suppress(ImportError):
    from matplotlib.figure import Figure

    axes = (figure := Figure()).subplots()
    axes.plot(fit.history["env_steps"], fit.history["episode_return"])
    axes.set(title="PPO on CartPole-v1", xlabel="environment steps")
    axes.set_ylabel("mean return of the last 100 episodes")
    figure.savefig(run / "learning_curve.png", dpi=120)

score = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=SEED)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
