"""Agents learn the behaviour of the best episodes of recorded data.

Settings that are not the published ones are those of the task: values of
Pendulum reach -300 within the few updates that a test may make, and the actions
of a step differ by 1 to 10.
"""

import gymnasium as gym
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from benchmarks import chance_tasks
from keras_rl2.cli.plot import interquartile_mean
from support import recorded_tasks

pytestmark = pytest.mark.learning

SEEDS = range(2)
PENDULUM = {
    "CQL": (6_000, {"alpha": 0.5, "num_samples": 4}),
    # Published are 3 for returns of a range of 1000, which is 1850 here, and
    # 0.9 where good actions are rare.
    "IQL": (20_000, {"inverse_temperature": 1.5, "expectile": 0.9}),
    # Values are measured by their mean size, which is that of the many steps
    # upright: at 2.5 the random actions of the first steps are cloned.
    "TD3BC": (20_000, {"normalize_observations": True, "alpha": 40.0}),
}
CARTPOLE = {
    "CQL": (10_000, {"double": True}),
    "DQN": (10_000, {"double": True}),
    "BehaviorCloning": (5_000, {}),
}


@pytest.fixture(scope="module")
def pendulum():
    return recorded_tasks.medium_replay_of_pendulum()


def falling(updates):
    """Returns a rate: at a constant one returns go up and down at the end."""
    return keras.optimizers.schedules.PolynomialDecay(1e-3, updates, 0.0)


def learn_pendulum(name, arrays, seed):
    """Returns the return of an agent that has learned from the data."""
    updates, settings = PENDULUM[name]
    env = gym.make("Pendulum-v1")
    offline = rl.OfflineDataset(
        arrays,
        batch_size=128,
        seed=seed,
        updates_per_epoch=updates,
        observation_space=env.observation_space,
        action_space=env.action_space,
    )
    agent = getattr(rl, name).for_env(
        "Pendulum-v1", hidden=(64, 64), seed=seed, **settings
    )
    # CQL would be too short for a rate that falls: its values are far away.
    rate = 1e-3 if name == "CQL" else falling(updates)
    agent.compile(keras.optimizers.Adam(rate))
    agent.fit(offline, verbose=0)
    first, _ = recorded_tasks.best_quarter(arrays)
    return recorded_tasks.returns_from(
        lambda observation: agent.act(observation, deterministic=True), first
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PENDULUM)
def test_the_pendulum_is_swung_up_as_at_the_end_of_the_data(
    name, seed, pendulum
):
    random = np.mean(recorded_tasks.episode_returns(pendulum)[:5])
    _, behavior = recorded_tasks.best_quarter(pendulum)
    # From the same beginnings.
    reached = interquartile_mean(learn_pendulum(name, pendulum, seed))
    expected = interquartile_mean(behavior)
    score = 100.0 * (reached - random) / (expected - random)
    print(f"{name} {seed}: {reached:.1f}, in the data {expected:.1f}: {score}")
    # The data is made on this machine, and how good its end is varies by 20
    # between machines. d3rlpy's IQL and TD3BC score 99 (BENCHMARKS.md).
    assert score >= 95.0


@pytest.fixture(scope="module")
def cartpole():
    return recorded_tasks.mixed_cartpole()


def learn_cartpole(name, arrays, seed):
    """Returns an agent that learned from the data, and its greedy return."""
    updates, settings = CARTPOLE[name]
    offline = rl.OfflineDataset(
        arrays, batch_size=64, seed=seed, updates_per_epoch=updates
    )
    agent = getattr(rl, name).for_env("CartPole-v1", seed=seed, **settings)
    agent.compile(keras.optimizers.Adam(falling(updates)))
    agent.fit(offline, verbose=0)
    estimates = agent.evaluate(offline, updates=0)
    result = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=1000)
    return result["episode_return"], estimates.get("q_overestimation")


def test_cql_balances_the_pole_from_mixed_data_and_believes_less(cartpole):
    reached, above = zip(
        *(learn_cartpole("CQL", cartpole, seed) for seed in SEEDS), strict=True
    )
    plain, plain_above = zip(
        *(learn_cartpole("DQN", cartpole, seed) for seed in SEEDS), strict=True
    )
    print(f"CQL {reached}, above by {above}; DQN {plain}, by {plain_above}")
    assert min(reached) >= 450.0
    assert interquartile_mean(reached) > interquartile_mean(plain)
    assert np.mean(above) < np.mean(plain_above)


def test_an_expert_that_balances_the_pole_is_cloned():
    shown = recorded_tasks.expert_cartpole()
    cloned = [
        learn_cartpole("BehaviorCloning", shown, seed)[0] for seed in SEEDS
    ]
    print(f"cloned: {cloned}")
    assert min(cloned) >= 475.0


def learn_clicks(name, seed, folder, **settings):
    """Returns the mean returns of a random log and of an agent it teaches."""
    task = chance_tasks.Clicks
    if not folder.exists():
        rl.record("random", task, 20_000, folder, seed=seed)
    clicks = rl.OfflineDataset(folder, batch_size=64, seed=seed)
    agent = getattr(rl, name).for_env(
        task(), hidden=(64, 64), seed=seed, **settings
    )
    agent.compile(keras.optimizers.Adam(1e-4, use_ema=True, ema_momentum=0.999))
    agent.fit(clicks, epochs=5, verbose=0)
    played = agent.evaluate(task, episodes=500, num_envs=50, seed=1000)
    return clicks.episode_returns.mean(), played["episode_return"]


def test_cql_recommends_better_than_a_random_log_and_its_clone(tmp_path):
    cql, clone = [], []
    for seed in range(5):
        folder = tmp_path / f"random-v{seed}"
        cql.append(learn_clicks("CQL", seed, folder, loss="mse"))
        clone.append(learn_clicks("BehaviorCloning", seed, folder))
    print(f"log and CQL {cql}, log and clone {clone}")
    logged, reached = np.mean(cql, axis=0)
    assert reached > logged + 1.0
    assert reached > np.mean(clone, axis=0)[1] + 1.0
