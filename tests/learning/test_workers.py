"""Training with workers comes to the returns of training without."""

import functools

import gymnasium
import keras
import pytest

import keras_rl2 as rl

pytestmark = pytest.mark.learning

GOAL = 475.0


@pytest.mark.parametrize("seed", range(5))
def test_appo_learns_cartpole(seed):
    rollouts = rl.RolloutDataset(
        "CartPole-v1", num_envs=2, workers=rl.LocalWorkers(2), seed=seed
    )
    agent = rl.APPO.for_env("CartPole-v1", seed=seed)
    history = agent.fit(rollouts, total_steps=60_000, verbose=0).history
    rollouts.close()
    assert history["lag"][-1] == rollouts.updates_per_round
    found = agent.evaluate("CartPole-v1", episodes=100, num_envs=20, seed=2)
    assert found["episode_return"] >= GOAL


def dqn_with_workers(seed):
    """Trains DQN while two workers fill its replay; returns it and the data."""
    steps = 30_000
    replay = rl.ReplayDataset(
        # Not by its id: its vector environment counts mere resets as steps.
        functools.partial(gymnasium.make, "CartPole-v1"),
        num_envs=2,
        capacity=100_000,
        batch_size=64,
        steps_per_round=64,
        updates_per_round=32,
        warm_up=1024,
        n_step=3,
        prioritized=True,
        alpha=0.5,
        workers=rl.LocalWorkers(2),
        seed=seed,
    )
    agent = rl.DQN.for_env(
        replay.env,
        double=True,
        dueling=True,
        distributional="categorical",
        support=(0.0, 100.0),
        tau=1.0,
        target_every=50,
        epsilon=keras.optimizers.schedules.PolynomialDecay(1.0, 5_000, 0.02),
        seed=seed,
    )
    decay = keras.optimizers.schedules.PolynomialDecay(5e-4, steps // 2, 0.0)
    agent.compile(keras.optimizers.Adam(decay))
    agent.fit(replay, total_steps=steps, verbose=0)
    replay.close()
    return agent, replay


@pytest.mark.parametrize("seed", range(2))
def test_dqn_learns_cartpole_at_the_requested_ratio(seed):
    agent, replay = dqn_with_workers(seed)
    asked = replay.updates_per_round / replay.steps_per_round
    made = int(agent.updates) / (agent.env_steps - replay.warm_up)
    assert made == pytest.approx(asked, rel=0.01)
    found = agent.evaluate("CartPole-v1", episodes=100, num_envs=20, seed=2)
    assert found["episode_return"] >= GOAL
