"""IQL on Pendulum-v1, offline: expect a greedy mean return of about -160.

Takes two minutes on two cores. The data is that of a SAC which is not done
yet; TD3BC learns from it too.
"""

import pathlib
import time

import keras_rl2 as rl
import keras

SEED = 0
STEPS = 10_000

run = pathlib.Path("runs", time.strftime("iql_pendulum_%Y%m%d-%H%M%S"))
run.mkdir(parents=True)

medium = rl.SAC.for_env("Pendulum-v1", seed=SEED)
replay = rl.ReplayDataset("Pendulum-v1", warm_up=1000, seed=SEED)
medium.fit(replay, total_steps=5000, verbose=0)

folder = run / "pendulum-medium-v0"
rl.record(medium, "Pendulum-v1", STEPS, folder, seed=SEED)
offline = rl.OfflineDataset(folder, batch_size=256, seed=SEED)
print(offline)

for agent in (
    rl.TD3BC.for_env("Pendulum-v1", seed=SEED),
    # Advantages are in the units of rewards, which are large here.
    rl.IQL.for_env("Pendulum-v1", inverse_temperature=0.3, seed=SEED),
):
    name = type(agent).__name__
    log = [keras.callbacks.CSVLogger(run / f"{name}.csv")]
    agent.fit(offline, epochs=5, callbacks=log, verbose=0)
    score = agent.evaluate("Pendulum-v1", episodes=20, num_envs=20, seed=SEED)
    print(f"{name}: {score['episode_return']:.1f}")
agent.save(run / "agent.keras")
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
