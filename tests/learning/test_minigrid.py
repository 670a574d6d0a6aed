"""PPO finds its way in MiniGrid, by a Dict observation."""

import gymnasium as gym
import keras
import pytest

import keras_rl2 as rl

pytestmark = pytest.mark.learning


def without_mission(env):
    return gym.wrappers.FilterObservation(env, ["direction", "image"])


@pytest.mark.parametrize("seed", range(2))
def test_the_key_is_taken_to_the_door(seed):
    pytest.importorskip("minigrid")
    env_id, steps = "minigrid:MiniGrid-DoorKey-5x5-v0", 200_000
    seen = {"wrappers": [without_mission], "num_envs": 8}
    rollouts = rl.RolloutDataset(
        env_id, horizon=128, passes=4, batch_size=256, seed=seed, **seen
    )
    agent = rl.PPO.for_env(rollouts.env, entropy_coefficient=0.01, seed=seed)
    # A rate that does not fall leaves the last policy to chance.
    updates = steps // rollouts.steps_per_round * rollouts.updates_per_round
    rate = keras.optimizers.schedules.PolynomialDecay(1e-3, updates, 0.0)
    agent.compile(keras.optimizers.Adam(rate, epsilon=1e-5))
    agent.fit(rollouts, total_steps=steps, verbose=0)
    result = agent.evaluate(env_id, episodes=20, seed=seed, **seen)
    assert result["episode_return"] >= 0.9
