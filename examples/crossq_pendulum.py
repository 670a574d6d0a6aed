"""CrossQ on Pendulum-v1: expect a greedy mean return of about -150.

Takes about a minute on two cores: 6000 steps, one update for each. There are no
target networks: the layers of critics and actor are normalised instead.
"""

import keras_rl2 as rl
import keras

SEED = 0

replay = rl.ReplayDataset(
    "Pendulum-v1", capacity=100_000, batch_size=256, warm_up=500, seed=SEED
)
agent = rl.CrossQ.for_env("Pendulum-v1", seed=SEED)


def report(epoch, logs):
    print(
        f"{logs['env_steps']:6d} steps: return {logs['episode_return']:8.1f}, "
        f"temperature {logs['temperature']:.3f}"
    )


agent.fit(
    replay,
    total_steps=6_000,
    callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=report)],
    verbose=0,
)

score = agent.evaluate("Pendulum-v1", episodes=20, num_envs=20, seed=SEED)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
