import gymnasium
import keras
import pytest

import keras_rl2 as rl


@pytest.fixture
def rollouts():
    # One environment, not vectorised: no rows are spent on resets.
    env = gymnasium.make("CartPole-v1")
    return rl.RolloutDataset(env, horizon=64, passes=1, batch_size=32, seed=0)


@pytest.fixture
def agent():
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    # For these few rounds XLA would take longer than it saves.
    agent.compile(jit_compile=False)
    return agent


@pytest.fixture
def two_optimizers(agent):
    agent.compile(
        keras.optimizers.Adam(1e-3, name="actor"),
        critic_optimizer=keras.optimizers.Adam(2e-3, name="critic"),
        jit_compile=False,
    )
    return agent


@pytest.fixture
def episodes():
    return rl.EvaluationDataset("CartPole-v1", 3, seed=0)
