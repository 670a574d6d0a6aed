"""Random numbers of wrappers repeat with the seed, from any generator."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv

from keras_rl2.envs import as_vector_env


class NoisyObservations(gymnasium.ObservationWrapper):
    """Draws in each step."""

    def observation(self, observation):
        noise = self.np_random.normal(size=observation.shape)
        return observation + noise.astype(np.float32)


class EarlyDraw(gymnasium.Wrapper):
    """Draws before the environment within has been reset."""

    def reset(self, *, seed=None, options=None):
        shift = np.float32(self.np_random.normal())
        observation, info = super().reset(seed=seed, options=options)
        return observation + shift, info


class RandomActions(gymnasium.Wrapper):
    """Draws from a space."""

    def step(self, action):
        return super().step(self.action_space.sample())


WRAPPERS = [NoisyObservations, EarlyDraw, RandomActions]


def made_by(wrapper):
    return lambda: wrapper(gymnasium.make("CartPole-v1"))


def play(env, seed):
    observations = [env.reset(seed=seed).copy()]
    for _ in range(12):
        action = np.zeros(env.num_envs, np.int64)
        observations.append(env.step(action)[0].copy())
    env.close()
    return np.stack(observations)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrappers_repeat_with_the_seed(wrapper):
    for make in (
        lambda: as_vector_env(made_by(wrapper)()),
        lambda: as_vector_env(made_by(wrapper), 2),
        lambda: as_vector_env("CartPole-v1", 1, wrappers=[wrapper]),
        lambda: as_vector_env("CartPole-v1", 2, wrappers=[wrapper]),
    ):
        first = play(make(), 3)
        np.testing.assert_array_equal(play(make(), 3), first)
        assert not np.array_equal(play(make(), 4), first)


def test_wrappers_draw_the_same_in_processes_as_in_this_one():
    makers = [made_by(NoisyObservations), made_by(EarlyDraw)]
    elsewhere = play(as_vector_env(AsyncVectorEnv(makers)), 3)
    here = play(as_vector_env(SyncVectorEnv(makers)), 3)
    np.testing.assert_array_equal(elsewhere, here)


def test_environments_beside_one_another_draw_other_numbers():
    played = play(as_vector_env(made_by(NoisyObservations), 2), 3)
    alone = play(as_vector_env(made_by(NoisyObservations)()), 4)
    assert not np.array_equal(played[:, 0], played[:, 1])
    # Environment i has the seed that is higher by i.
    np.testing.assert_array_equal(played[:, 1], alone[:, 0])


def test_spaces_repeat_with_the_seed():
    drawn = []
    for _ in range(2):
        env = as_vector_env("CartPole-v1", 3)
        env.reset(seed=7)
        space = env.env.action_space
        drawn.append([space.sample().tolist() for _ in range(8)])
        env.close()
    assert drawn[0] == drawn[1]
