"""Agents that learn from recorded data reach what the best of it reached.

Settings that are not the published ones are those of the task: values of
Pendulum reach -300 within the few updates that a test may make, and the actions
of a step differ by 1 to 10.
"""

import gymnasium as gym
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.cli.learning_curves import interquartile_mean

pytestmark = pytest.mark.learning

SEEDS = range(5)
PENDULUM = {
    "CQL": (6_000, {"alpha": 0.5, "num_samples": 4}),
    # Published are 3 for returns of a range of 1000, which is 1850 here, and
    # 0.9 where good actions are rare.
    "IQL": (20_000, {"inverse_temperature": 1.5, "expectile": 0.9}),
    # Values are measured by their mean size, which is that of the many steps
    # upright: at 2.5 the random actions of the first steps are cloned.
    "TD3BC": (20_000, {"normalize_observations": True, "alpha": 10.0}),
}
CARTPOLE = {
    "CQL": (10_000, {}),
    "DQN": (10_000, {}),
    "BehaviorCloning": (5_000, {}),
}
KEYS = "observations", "actions", "rewards", "terminations", "truncations"


@pytest.fixture(scope="module")
def pendulum():
    """All that a SAC has seen until it swings up; the first third is bad."""
    replay = rl.ReplayDataset("Pendulum-v1", warm_up=1000, seed=0)
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(64, 64), seed=0)
    agent.compile(keras.optimizers.Adam(1e-3))
    agent.fit(replay, total_steps=20_000, verbose=0)
    arrays = replay.buffer.record()
    action = agent.policy_head.to_environment(arrays["actions"])
    return arrays | {"actions": np.array(action)}


def best_quarter(arrays):
    """Returns where the last quarter of episodes began, and their returns."""
    ends = np.flatnonzero(arrays["truncations"])
    starts = np.append(0, ends[:-1] + 1)
    whole = ends - starts == 199
    starts = starts[whole][-(np.count_nonzero(whole) // 4) :]
    returns = [arrays["rewards"][start : start + 200].sum() for start in starts]
    return arrays["observations"][starts], np.array(returns)


class BeginsAt(gym.Wrapper):
    """A pendulum that begins each episode where it is told."""

    def __init__(self, env, observation):
        super().__init__(env)
        self.first = observation

    def reset(self, **kwargs):
        _, info = self.env.reset(**kwargs)
        cosine, sine, speed = self.first
        self.unwrapped.state = np.array([np.arctan2(sine, cosine), speed])
        return self.first, info


def greedy_returns(agent, first):
    """Plays one episode from each observation."""
    env = gym.vector.SyncVectorEnv(
        [lambda o=o: BeginsAt(gym.make("Pendulum-v1"), o) for o in first]
    )
    observation, _ = env.reset(seed=0)
    total = np.zeros(len(first))
    for _ in range(200):
        action = agent.act(observation, deterministic=True)
        observation, reward, *_ = env.step(action)
        total += reward
    return total


def learn_pendulum(name, arrays, seed):
    """Returns what an agent gets that has learned from the data."""
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
    agent.compile(keras.optimizers.Adam(1e-3))
    agent.fit(offline, verbose=0)
    return agent, greedy_returns(agent, best_quarter(arrays)[0])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PENDULUM)
def test_the_pendulum_is_swung_up_as_by_the_end_of_the_data(
    name, seed, pendulum
):
    _, returns = learn_pendulum(name, pendulum, seed)
    reached = interquartile_mean(returns)
    expected = interquartile_mean(best_quarter(pendulum)[1])
    print(f"{name} {seed}: {reached:.1f}, in the data {expected:.1f}")
    # From the same beginnings; both are means of some 25 episodes.
    assert reached >= 1.1 * expected


def played(policy, steps, seed):
    """Returns arrays of what a policy does in CartPole-v1."""
    env = gym.make("CartPole-v1")
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    rows = []
    for step in range(steps):
        action = policy(observation) if policy else env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        truncated |= step == steps - 1 and not terminated
        rows.append((observation, action, reward, terminated, truncated))
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
    return dict(zip(KEYS, map(np.array, zip(*rows, strict=True)), strict=True))


def teacher(steps):
    """Returns a PPO after a part of its training."""
    rollouts = rl.RolloutDataset("CartPole-v1", 128, num_envs=8, seed=0)
    agent = rl.PPO.for_env("CartPole-v1", seed=0)
    agent.fit(rollouts, total_steps=steps, verbose=0)
    return agent


@pytest.fixture(scope="module")
def cartpole():
    """Half a random policy's, half that of a PPO which is not done yet."""
    halves = [played(teacher(50_000).act, 25_000, 0), played(None, 25_000, 1)]
    return {key: np.concatenate([half[key] for half in halves]) for key in KEYS}


def learn_cartpole(name, arrays, seed):
    """Returns the mean greedy return of one that learned from the data."""
    updates, settings = CARTPOLE[name]
    offline = rl.OfflineDataset(
        arrays, batch_size=64, seed=seed, updates_per_epoch=updates
    )
    agent = getattr(rl, name).for_env("CartPole-v1", seed=seed, **settings)
    agent.fit(offline, verbose=0)
    result = agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=1000)
    return result["episode_return"]


def test_cql_balances_the_pole_from_mixed_data_on_four_of_five_seeds(cartpole):
    reached = [learn_cartpole("CQL", cartpole, seed) for seed in SEEDS]
    plain = [learn_cartpole("DQN", cartpole, seed) for seed in SEEDS]
    print(f"CQL {reached}; DQN, which is not for this: {plain}")
    assert sum(each >= 450.0 for each in reached) >= 4
    assert interquartile_mean(reached) > interquartile_mean(plain)


def test_an_expert_that_balances_the_pole_is_cloned():
    expert = teacher(150_000)
    shown = played(
        lambda observation: expert.act(observation, deterministic=True),
        10_000,
        0,
    )
    cloned = [learn_cartpole("BehaviorCloning", shown, seed) for seed in SEEDS]
    print(f"cloned: {cloned}")
    assert min(cloned) >= 475.0
