"""Eight seeds of PPO at once on CartPole-v1: expect a return of 475.

Takes about 20 seconds on two cores. The first seed compiles, and the others
share its program; each is trained as it would be alone.
"""

import pathlib
import time

import keras_rl2 as rl
import numpy as np

STEPS = 150_000

run = pathlib.Path("runs", time.strftime("many_seeds_%Y%m%d-%H%M%S"))


def make_agent(seed):
    return rl.PPO.for_env("CartPole-v1", entropy_coefficient=0.01, seed=seed)


def make_rollouts(seed):
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=16)
    sizes = {"horizon": 64, "passes": 4, "batch_size": 256}
    return rl.RolloutDataset(env, rounds_per_epoch=15, seed=seed, **sizes)


trained = rl.train_seeds(
    make_agent, make_rollouts, seeds=range(8), total_steps=STEPS
)
returns = trained.history["episode_return"]
for steps, values in zip(
    trained.history["env_steps"][0], returns.T, strict=True
):
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    print(f"{steps:7.0f} steps: {middle:5.1f} ({low:.1f} to {high:.1f})")

best = trained.agents[returns[:, -1].argmax()]
run.mkdir(parents=True)
best.save(run / "best.keras")

# Gymnasium's own environment is the judge.
scores = [
    agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=0)[
        "episode_return"
    ]
    for agent in trained.agents
]
print("of each seed:", ", ".join(f"{each:.0f}" for each in scores))
print(f"greedy mean return over {len(scores)} seeds: {np.mean(scores):.1f}")
