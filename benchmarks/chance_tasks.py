"""Tasks in which rewards or transitions are chance, for `defaults.py`.

Importing this module registers them, also by their full ids, such as
`gymnasium.make("benchmarks.chance_tasks:Clicks-v0")`, in any interpreter that
starts in the root of the repository.
"""

import gymnasium as gym
import numpy as np

#: Steps of a training, and greedy episodes after it.
CHOSEN_ON = {
    "Clicks-v0": (20_000, 200),
    "BlackjackOneHot-v0": (50_000, 5000),
    "SlipperyCliff-v0": (50_000, 50),
}
SHOWN_ON = {
    "Visitors-v0": (20_000, 200),
    "FrozenLake8x8-v1": (100_000, 200),
    "NoisyCartPole-v0": (50_000, 20),
    "WindyLunarLander-v0": (100_000, 20),
}
TASKS = CHOSEN_ON | SHOWN_ON


def full_id(env):
    """Returns the id by which any interpreter finds an environment."""
    return f"{__name__}:{env}" if env in TASKS else env


class Clicks(gym.Env):
    """A shop shows one of 8 kinds of items at a time, and counts clicks.

    Each visitor has other tastes. An item that was shown is less liked for some
    time, and visitors who do not click lose patience and leave.
    """

    ITEMS = 8
    observation_space = gym.spaces.Box(-5.0, 5.0, (ITEMS + 2,), np.float32)
    action_space = gym.spaces.Discrete(ITEMS)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.taste = self.np_random.normal(0.0, 1.0, self.ITEMS)
        self.boredom = np.zeros(self.ITEMS)
        self.time, self.patience = 0, 1.0
        return self.observation, {}

    @property
    def observation(self):
        appeal = np.clip(self.taste - 2 * self.boredom, -5, 5)
        rest = [self.patience, self.time / 30]
        return np.concatenate([appeal, rest]).astype(np.float32)

    def step(self, action):
        appeal = self.taste[action] - 2 * self.boredom[action]
        click = self.np_random.random() < 1 / (1 + np.exp(-1.5 * appeal))
        self.boredom *= 0.8
        self.boredom[action] += 0.5
        change = 0.1 if click else -0.2
        self.patience = np.clip(self.patience + change, -1, 1)
        self.time += 1
        leaving = 0.02 + 0.15 * max(0.0, -self.patience)
        leaves = bool(self.np_random.random() < leaving)
        return self.observation, float(click), leaves, self.time >= 30, {}


class Visitors(gym.Env):
    """Twenty visitors, one after the other, are each shown one of 5 ads.

    A visitor clicks with a probability that depends on six features and the
    ad. No ad changes who comes next.
    """

    ADS, FEATURES, VISITORS = 5, 6, 20
    observation_space = gym.spaces.Box(-10.0, 10.0, (FEATURES,), np.float32)
    action_space = gym.spaces.Discrete(ADS)
    weights = np.random.default_rng(0).normal(0.0, 0.7, (ADS, FEATURES))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.next_visitor(), {}

    def next_visitor(self):
        features = self.np_random.normal(0.0, 1.0, self.FEATURES)
        self.visitor = features.astype(np.float32)
        return self.visitor

    def step(self, action):
        appeal = self.weights[action] @ self.visitor
        click = self.np_random.random() < 1 / (1 + np.exp(1.0 - appeal))
        self.time += 1
        ended = self.time >= self.VISITORS
        return self.next_visitor(), float(click), ended, False, {}


class NoisyRewards(gym.Wrapper):
    """Adds N(0, 1) to each reward."""

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        return observation, reward + self.np_random.normal(), *rest


def one_hot_blackjack():
    """Returns Blackjack whose observation is one array, as peers need."""
    return gym.wrappers.FlattenObservation(gym.make("Blackjack-v1"))


def noisy_cart_pole():
    """Returns CartPole with noisy rewards."""
    return NoisyRewards(gym.make("CartPole-v1"))


gym.register("Clicks-v0", Clicks)
gym.register("Visitors-v0", Visitors)
gym.register("BlackjackOneHot-v0", one_hot_blackjack)
gym.register("NoisyCartPole-v0", noisy_cart_pole)
gym.register(
    "SlipperyCliff-v0",
    "gymnasium.envs.toy_text.cliffwalking:CliffWalkingEnv",
    max_episode_steps=200,
    kwargs={"is_slippery": True},
)
gym.register(
    "WindyLunarLander-v0",
    "gymnasium.envs.box2d.lunar_lander:LunarLander",
    max_episode_steps=1000,
    kwargs={"enable_wind": True},
)
