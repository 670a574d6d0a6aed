"""Agents learn as much in the graph as on Gymnasium's environments.

    python -m pytest -m learning -s -n0 tests/learning/test_in_the_graph.py

prints the greedy return of each seed on both, and the bootstrap interval (99 %)
of the difference of the interquartile means, which must contain 0.
"""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.cli.plot import interquartile_mean

# The last greedy return on CartPole varies more from seed to seed.
TASKS = {
    "CartPole-v1": (20, 30_000, {"horizon": 64}),
    "Pendulum-v1": (5, 80_000, {"horizon": 256}),
}


def learned(task: str, in_graph: bool, seed: int) -> float:
    """Returns the greedy return of an agent after its training."""
    _, steps, settings = TASKS[task]
    env = rl.envs.GraphVectorEnv(task, num_envs=8) if in_graph else task
    rollouts = rl.RolloutDataset(
        env,
        passes=10,
        batch_size=128,
        num_envs=1 if in_graph else 8,
        seed=seed,
        **settings,
    )
    agent = rl.PPO.for_env(rollouts.env, gamma=0.95, hidden=(64, 64), seed=seed)
    agent.compile(keras.optimizers.Adam(1e-3, epsilon=1e-5))
    agent.fit(rollouts, total_steps=steps, verbose=0)
    judged = rl.EvaluationDataset(task, episodes=20, num_envs=20, seed=seed)
    return agent.evaluate(judged, verbose=0)["episode_return"]


@pytest.mark.learning
@pytest.mark.parametrize("task", TASKS)
def test_learning_is_the_same(task: str) -> None:
    seeds = TASKS[task][0]
    found = {
        in_graph: np.array(
            [learned(task, in_graph, seed) for seed in range(seeds)]
        )
        for in_graph in (True, False)
    }
    generator = np.random.default_rng(0)
    # [seeds, resamples] -> [resamples]
    drawn = [
        interquartile_mean(generator.choice(each, (seeds, 10_000)))
        for each in found.values()
    ]
    low, high = np.quantile(drawn[0] - drawn[1], [0.005, 0.995])
    for in_graph, each in found.items():
        print(task, "graph" if in_graph else "gymnasium", each.round(1))
    print(f"{task}: difference {low:.1f} to {high:.1f}")
    assert low <= 0.0 <= high
