"""Rollouts of random actions."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np

from keras_rl2.envs.vector_env import seed_layers
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


@dataclasses.dataclass(frozen=True)
class RandomRollout:
    """Steps of one environment under random actions.

    N is the number of steps.

    Attributes:
        observation: `[N + 1, ...]`. Observation before each step, and the last
            one; after the end of an episode, the first one of the next episode.
            A tree of arrays for a Dict or Tuple.
        action: list of N actions.
        reward: `[N]` float64.
        terminated: `[N]` bool.
        truncated: `[N]` bool.
        next_observation: `[N, ...]`. Observation after each step, also at the
            end of an episode; a tree like `observation`.
        outside: int. Number of observations outside of their space.
        stranger: The first of these observations, a tree of arrays, or None.
    """

    observation: Tree[np.ndarray]
    action: list[Any]
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    next_observation: Tree[np.ndarray]
    outside: int
    stranger: Any = None

    @property
    def episode_lengths(self) -> np.ndarray:
        """Lengths `[E]` int64 of the E episodes that have ended."""
        ends = np.flatnonzero(self.terminated | self.truncated) + 1
        return np.diff(ends, prepend=0)


def play(env: gymnasium.Env[Any, Any], steps: int, seed: int) -> RandomRollout:
    """Takes random steps, reproducible by the seed.

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
    seed_layers(env, seed)
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    space = env.observation_space
    observations, following = [_copied(space, observation)], []
    actions, rewards, terminations, truncations = [], [], [], []
    contains = space.contains
    outside, stranger = 0, None
    if not contains(observation):
        outside, stranger = 1, observations[0]
    for _ in range(steps):
        action = random_action(env.action_space, space, observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        following.append(_copied(space, observation))
        if not contains(observation):
            outside += 1
            stranger = following[-1] if stranger is None else stranger
        actions.append(action)
        rewards.append(_number(reward))
        terminations.append(bool(terminated))
        truncations.append(bool(truncated))
        if terminated or truncated:
            observation, _ = env.reset()
        observations.append(_copied(space, observation))
    return RandomRollout(
        _stacked(observations),
        actions,
        np.array(rewards),
        np.array(terminations),
        np.array(truncations),
        _stacked(following),
        outside,
        stranger,
    )


def _number(reward: Any) -> float:
    """Returns a reward, checking that it is one number."""
    if np.ndim(reward):
        raise ValueError(
            "Expected `reward` to be a number, e.g. reward.item(). "
            f"Received: reward of shape {np.shape(reward)}"
        )
    return float(reward)


def random_action(
    action_space: gymnasium.Space[Any],
    observation_space: gymnasium.Space[Any],
    observation: Any,
) -> Any:
    """Draws an action that the observation allows.

    Args:
        action_space: `gymnasium.Space`. Its own generator is used.
        observation_space: `gymnasium.Space`.
        observation: The present observation, possibly with an action mask.

    Returns:
        A member of the action space.
    """
    if not is_masked(observation_space):
        return action_space.sample()
    # Imports Keras, which most environments do not need.
    from keras_rl2.policy_heads import policy_head

    head = policy_head(action_space)
    generator = action_space.np_random
    mask = np.asarray(observation[ACTION_MASK])[None]
    action = head.to_environment(head.random_action(generator, (1,), mask))
    return map_leaves(
        lambda space, array: np.asarray(array)[0].astype(space.dtype),
        space_tree(action_space),
        action,
    )


def _copied(space: gymnasium.Space[Any], observation: object) -> Any:
    """Copies an observation, since an environment may change it."""
    return map_leaves(
        lambda _, array: np.array(array), space_tree(space), observation
    )


def _stacked(trees: list[Any]) -> Any:
    """Stacks observations: N of `[...]` -> `[N, ...]`."""
    return map_leaves(lambda *rows: np.stack(rows), *trees)
