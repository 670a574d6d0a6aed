"""keras.io's PPO on CartPole-v1: expect a mean return over 475."""

import keras_rl2 as rl
import keras

agent = rl.PPO.for_env("CartPole-v1", hidden=(64, 64), gae_lambda=0.97, seed=0)
agent.compile(keras.optimizers.Adam(1e-3))

rollouts = rl.RolloutDataset(
    "CartPole-v1", num_envs=8, horizon=128, passes=10, batch_size=128, seed=0
)


def report(epoch, logs):
    print(f"mean return: {logs['episode_return']:.2f}", flush=True)
    agent.stop_training = logs["episode_return"] > 475


stop = keras.callbacks.LambdaCallback(on_epoch_end=report)
agent.fit(rollouts, total_steps=30 * 4000, callbacks=[stop], verbose=0)
