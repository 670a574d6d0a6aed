"""keras.io's DQN on Breakout: expect a day, and a mean return over 40."""

import keras_rl2 as rl
import keras

STEPS = 10_000_000

env = rl.envs.atari("ALE/Breakout-v5", num_envs=1, reward_clipping=False)
agent = rl.DQN.for_env(
    env,
    epsilon=keras.optimizers.schedules.PolynomialDecay(1.0, 1_000_000, 0.1),
    tau=1.0,
    target_every=2500,
    seed=42,
)
agent.compile(keras.optimizers.Adam(2.5e-4, clipnorm=1.0))

replay = rl.ReplayDataset(
    env, capacity=100_000, batch_size=32, warm_up=50_000, seed=42
)


def report(epoch, logs):
    score = logs["episode_return"]
    print(f"{logs['env_steps']} steps, mean return: {score:.2f}", flush=True)
    agent.stop_training = score > 40


stop = keras.callbacks.LambdaCallback(on_epoch_end=report)
agent.fit(replay, total_steps=STEPS, callbacks=[stop], verbose=0)
