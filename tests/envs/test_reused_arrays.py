"""Environments that return the same arrays from each `step` and `reset`."""

import functools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.spaces.trees import leaves

LENGTH = 7


class Walk(gym.Env):
    """Counts its steps in the arrays that it returns."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, form="array"):
        counter = gym.spaces.Box(-100, 100, (1,), np.float32)
        self.count = np.zeros(1, np.float32)
        self.mask = np.ones(2, np.int8)
        self.observation = self.count
        self.observation_space = counter
        if form in ("dict", "mask"):
            other = gym.spaces.MultiBinary(2)
            key = "action_mask" if form == "mask" else "other"
            self.observation = {"count": self.count, key: self.mask}
            self.observation_space = gym.spaces.Dict(
                {"count": counter, key: other}
            )
        self.info = {"action_mask": self.mask} if form == "info" else {}

    def _go_to(self, count):
        self.count[:] = count
        # The second action is allowed but for the end of an episode.
        self.mask[1] = count < LENGTH

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self._go_to(0)
        return self.observation, self.info

    def step(self, action):
        self._go_to(self.count[0] + 1)
        ends = bool(self.count[0] == LENGTH)
        return self.observation, 1.0, False, ends, self.info


class Masked(rl.envs.ActionMask):
    """`Walk` with the mask of its `info` in the observation."""

    def __init__(self):
        super().__init__(Walk("info"))


MAKERS = {
    "array": Walk,
    "dict": functools.partial(Walk, "dict"),
    "mask": functools.partial(Walk, "mask"),
    "mask in info": Masked,
}


def last_observations(env, num_envs=2, steps=LENGTH):
    """Returns the final observations of the last step."""
    env.reset(seed=0)
    for _ in range(steps):
        *_, final = env.step(np.zeros(num_envs, np.int64))
    return final


@pytest.mark.parametrize("form", MAKERS)
@pytest.mark.parametrize("num_envs", [2, 3])
def test_own_vectors_keep_the_last_observation(form, num_envs):
    env = as_vector_env(MAKERS[form], num_envs=num_envs)
    last = leaves(last_observations(env, num_envs))
    counts = next(each for each in last if each.shape[1:] == (1,))
    assert counts.ravel().tolist() == [LENGTH] * num_envs
    for mask in (each for each in last if each.shape[1:] == (2,)):
        assert mask.tolist() == [[1, 0]] * num_envs


def recorded(make, workers=None, num_envs=2):
    """Returns counts before and after each step of a short training."""
    replay = rl.ReplayDataset(
        make,
        capacity=400,
        num_envs=num_envs,
        warm_up=64,
        workers=workers,
        seed=0,
    )
    agent = rl.DQN.for_env(make, hidden=(8,), seed=0)
    agent.compile(run_eagerly=True)
    agent.fit(replay, total_steps=100, verbose=0)
    batch = replay.sample(256)
    return np.ravel(batch["observation"]), np.ravel(batch["next_observation"])


def test_replay_holds_true_transitions():
    before, after = recorded(Walk)
    np.testing.assert_array_equal(before + 1, after)


@pytest.mark.slow
def test_workers_with_several_environments_send_true_transitions():
    before, after = recorded(Walk, rl.LocalWorkers(2), num_envs=4)
    np.testing.assert_array_equal(before + 1, after)


@pytest.mark.parametrize(
    "mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED]
)
def test_vectors_of_other_modes_are_right(mode):
    env = as_vector_env(SyncVectorEnv([Walk, Walk], autoreset_mode=mode))
    env.reset(seed=0)
    for count in range(1, LENGTH + 1):
        observation, *_, final = env.step(np.zeros(2, np.int64))
        seen = observation if final is None else final
        assert seen.ravel().tolist() == [count, count]
