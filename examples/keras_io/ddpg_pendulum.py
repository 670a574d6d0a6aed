"""keras.io's DDPG on Pendulum-v1: expect a greedy mean return of -150."""

import keras_rl2 as rl
import keras

agent = rl.DDPG.for_env(
    "Pendulum-v1",
    hidden=(256, 256),
    exploration=rl.exploration.OrnsteinUhlenbeckNoise(0.1),
    seed=0,
)
agent.compile(keras.optimizers.Adam(1e-3), keras.optimizers.Adam(2e-3))

replay = rl.ReplayDataset(
    "Pendulum-v1", capacity=50_000, batch_size=64, warm_up=200, seed=0
)
report = keras.callbacks.LambdaCallback(
    on_epoch_end=lambda epoch, logs: print(f"{logs['episode_return']:.1f}")
)
agent.fit(replay, total_steps=100 * 200, callbacks=[report], verbose=0)
print("trained", flush=True)

score = agent.evaluate("Pendulum-v1", episodes=40, num_envs=40, seed=0)
print(f"greedy mean return over 40 episodes: {score['episode_return']:.1f}")
