"""keras.io's actor-critic on CartPole-v1: expect a mean return over 195."""

import keras_rl2 as rl
import keras

inputs = keras.Input((4,))
common = keras.layers.Dense(128, activation="relu")(inputs)
logits = keras.layers.Dense(2)(common)
value = keras.layers.Dense(1)(common)
agent = rl.A2C(keras.Model(inputs, [logits, value]), seed=42)
agent.compile(keras.optimizers.Adam(0.003))

rollouts = rl.RolloutDataset(
    "CartPole-v1", num_envs=8, horizon=32, passes=1, batch_size=None, seed=42
)


def report(epoch, logs):
    print(f"mean return: {logs['episode_return']:.2f}", flush=True)
    agent.stop_training = logs["episode_return"] > 195


stop = keras.callbacks.LambdaCallback(on_epoch_end=report)
agent.fit(rollouts, total_steps=500_000, callbacks=[stop], verbose=0)
