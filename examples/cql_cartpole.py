"""CQL on CartPole-v1, offline: expect a greedy mean return over 400.

Takes a minute and a half on two cores. The data is half that of a PPO which is
not done yet and half a random policy's; DQN and cloning learn from it too.
"""

import itertools
import pathlib
import time

import keras_rl2 as rl
import keras
import numpy as np

SEED = 0
STEPS = 20_000

run = pathlib.Path("runs", time.strftime("cql_cartpole_%Y%m%d-%H%M%S"))
run.mkdir(parents=True)

medium = rl.PPO.for_env("CartPole-v1", seed=SEED)
rollouts = rl.RolloutDataset("CartPole-v1", horizon=128, num_envs=8, seed=SEED)
medium.fit(rollouts, total_steps=50_000, verbose=0)
steps, chance = itertools.count(), np.random.default_rng(SEED)


def medium_then_random(observation):
    """Chooses as the medium agent in the first half, then at random."""
    if next(steps) < STEPS // 2:
        return medium.act(observation)
    return int(chance.integers(2))


folder = run / "cartpole-medium-random-v0"
rl.record(medium_then_random, "CartPole-v1", STEPS, folder, seed=SEED)
offline = rl.OfflineDataset(folder, batch_size=64, seed=SEED)
print(offline)

for agent in (
    rl.BehaviorCloning.for_env("CartPole-v1", seed=SEED),
    rl.DQN.for_env("CartPole-v1", seed=SEED),
    rl.CQL.for_env("CartPole-v1", seed=SEED),
):
    name = type(agent).__name__
    log = [keras.callbacks.CSVLogger(run / f"{name}.csv")]
    agent.fit(offline, epochs=5, callbacks=log, verbose=0)
    score = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=SEED)
    print(f"{name}: {score['episode_return']:.1f}")
agent.save(run / "agent.keras")
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
