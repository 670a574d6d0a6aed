"""What an environment does when actions are drawn at random."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class RandomRollout:
    """Steps of one environment under random actions.

    N is the number of steps.

    Attributes:
        observation: `[N + 1, ...]`. Of each step, and the last one; after an
            end, the one that the next episode begins with.
        action: list of N actions.
        reward: `[N]` float64.
        terminated: `[N]` bool.
        truncated: `[N]` bool.
        next_observation: `[N, ...]`. What each step led to, also at an end.
        outside: int. Observations that are no members of their space.
    """

    observation: np.ndarray
    action: list[Any]
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    next_observation: np.ndarray
    outside: int

    @property
    def episode_lengths(self) -> np.ndarray:
        """Lengths `[E]` int64 of the E episodes that have ended."""
        ends = np.flatnonzero(self.terminated | self.truncated) + 1
        return np.diff(ends, prepend=0)


def play(env: Any, steps: int, seed: int) -> RandomRollout:
    """Takes random steps, always the same ones under a seed.

    Args:
        env: `gymnasium.Env`. Is reset first.
        steps: int. N.
        seed: int. Seeds environment and actions.

    Returns:
        `RandomRollout`.

    Example:

    >>> import gymnasium
    >>> rollout = play(gymnasium.make("CartPole-v1"), steps=50, seed=0)
    >>> rollout.observation.shape, rollout.reward.sum().item()
    ((51, 4), 50.0)
    """
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    observations, following = [np.array(observation)], []
    actions, rewards, terminations, truncations = [], [], [], []
    contains = env.observation_space.contains
    outside = int(not contains(observation))
    for _ in range(steps):
        action = env.action_space.sample()
        observation, reward, terminated, truncated, _ = env.step(action)
        outside += not contains(observation)
        following.append(np.array(observation))
        actions.append(action)
        rewards.append(float(reward))
        terminations.append(bool(terminated))
        truncations.append(bool(truncated))
        if terminated or truncated:
            observation, _ = env.reset()
        observations.append(np.array(observation))
    return RandomRollout(
        np.stack(observations),
        actions,
        np.array(rewards),
        np.array(terminations),
        np.array(truncations),
        np.stack(following),
        outside,
    )
