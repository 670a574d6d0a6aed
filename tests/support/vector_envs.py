"""Environments of every autoreset mode, and their expected steps."""

import functools

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from keras_rl2.envs import as_vector_env
from keras_rl2.envs.gymnasium_vector_env import NextStepEnv
from support.probe_envs import CountingEnv
from support.transitions import play

MODES = list(AutoresetMode)


def cart_pole(index):
    return TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 11)


def pendulum(index):
    return TimeLimit(gymnasium.make("Pendulum-v1").unwrapped, 7)


def counting(index):
    return TimeLimit(CountingEnv(index, lengths=(3, 1, 9)), 5)


def wide_counting(index):
    return CountingEnv(index, dtype=np.float64)


def reusing(index):
    return CountingEnv(index, reuse=True)


def coin(i, episode, step):
    # Mostly the same action within an episode, so that the pole does fall.
    return np.int32((i + episode) % 2 if step != 1 else 1)


def torque(i, episode, step):
    return np.array([np.sin(i + 2 * episode + 3 * step)], np.float32)


CASES = {
    "cart_pole": (cart_pole, coin),
    "pendulum": (pendulum, torque),
    "counting": (counting, coin),
    "wide_counting": (wide_counting, coin),
}


def thunks(make, num_envs=3):
    return [functools.partial(make, i) for i in range(num_envs)]


def sync(make, mode, num_envs=3, **kwargs):
    env = SyncVectorEnv(thunks(make, num_envs), autoreset_mode=mode, **kwargs)
    return as_vector_env(env)


RESET_REWARD = 1000.0


class _RewardsResets(SyncVectorEnv):
    """Gives a reward for the step in which it only resets."""

    def step(self, actions):
        resetting = self._autoreset_envs.copy()
        observation, reward, *others = super().step(actions)
        return observation, reward + RESET_REWARD * resetting, *others


class _ReportsRewardedResets(NextStepEnv):
    """An adapter that reports such a reward, too."""

    def step(self, action):
        resetting = self.pending_reset
        observation, reward, *others = super().step(action)
        return observation, reward + RESET_REWARD * resetting, *others


def careless_environment(make, num_envs=3):
    """A vector environment of NEXT_STEP whose reset rows have a reward."""
    return as_vector_env(_RewardsResets(thunks(make, num_envs)))


def careless_adapter(make, num_envs=3):
    """An adapter of one whose reset rows have a reward."""
    return _ReportsRewardedResets(SyncVectorEnv(thunks(make, num_envs)))


CARELESS = (careless_environment, careless_adapter)


def one_by_one(make, policy, steps, num_envs=3):
    """Transitions of single environments, each seeded as in a vector."""
    transitions = []
    for i in range(num_envs):

        def own(_, episode, step, i=i):
            return policy(i, episode, step)

        transitions += play(as_vector_env(make(i)), steps, own, seed=5 + i)
    return transitions


def reference(make, policy, steps, num_envs=3):
    """Transitions of bare environments, with no adapter at all."""
    transitions = [[] for _ in range(num_envs)]
    for i in range(num_envs):
        env = make(i)
        space = env.action_space
        observation, _ = env.reset(seed=5 + i)
        episode = step = 0
        for _ in range(steps):
            action = policy(i, episode, step)
            following, reward, terminated, truncated, _ = env.step(
                action.astype(space.dtype)
            )
            transitions[i].append(
                (
                    np.float32(observation),
                    action,
                    np.float32(reward),
                    terminated,
                    truncated,
                    np.float32(following),
                )
            )
            step, observation = step + 1, following
            if terminated or truncated:
                observation, _ = env.reset()
                episode, step = episode + 1, 0
    return transitions
