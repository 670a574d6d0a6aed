"""Gaussian policies act in units of half the range of finite bounds."""

import gymnasium as gym
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import make_env

BOUNDS = np.array([0.0, -10.0], "float32"), np.array([5.0, 30.0], "float32")


class Valve(gym.Env):
    """Rewards the actions 4 and 20."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = gym.spaces.Box(*BOUNDS)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.count += 1
        reward = -abs(float(action[0]) - 4) - abs(float(action[1]) - 20) / 8
        ends = self.count == 10
        return np.zeros(3, np.float32), reward, ends, False, {}


@pytest.mark.parametrize("kind", [rl.PPO, rl.A2C, rl.REINFORCE, rl.APPO])
def test_a_new_policy_spreads_over_the_range(kind):
    agent = kind.for_env(Valve, hidden=(8,), seed=0)
    actions = agent.act(np.zeros((500, 3), np.float32))
    low, high = BOUNDS
    np.testing.assert_allclose(
        actions.mean(axis=0), (low + high) / 2, atol=0.1 * (high - low).max()
    )
    assert (actions.std(axis=0) > 0.25 * (high - low)).all()
    action, log_prob = agent.act(
        np.zeros((4, 3), np.float32), return_log_prob=True
    )
    own = agent.policy.head.from_environment(action)
    policy = agent.distribution(np.zeros((4, 3), np.float32))
    np.testing.assert_allclose(log_prob, policy.log_prob(own), rtol=1e-5)


def test_ppo_learns_in_a_range_that_is_not_around_zero():
    agent = rl.PPO.for_env(Valve, hidden=(16,), seed=0)
    rollouts = rl.RolloutDataset(
        Valve, num_envs=4, horizon=100, passes=10, batch_size=100, seed=0
    )
    agent.compile(keras.optimizers.Adam(3e-3))
    before = agent.evaluate(Valve, episodes=1)["episode_return"]
    agent.fit(rollouts, total_steps=4000, verbose=0)
    assert before < -20
    assert agent.evaluate(Valve, episodes=1)["episode_return"] > -10


def test_saved_agents_and_presets_keep_their_units(tmp_path):
    env = make_env("act_box")
    agent = rl.PPO.for_env(env, hidden=(4,), action_units="environment")
    again = rl.PPO.from_config(agent.get_config())
    assert again.action_units == "environment"
    preset = rl.PPO.from_preset("Pendulum-v1")
    assert preset.action_units == "environment"
    agent = rl.PPO.for_env(env, hidden=(4,))
    agent.save(tmp_path / "agent.keras")
    loaded = rl.load(tmp_path / "agent.keras")
    assert loaded.action_units == "half_range"
