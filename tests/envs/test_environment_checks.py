"""What an environment gives otherwise than it declares is named at once."""

import functools

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

import keras_rl2 as rl
from keras_rl2.envs import MismatchError
from keras_rl2.envs import as_vector_env

BOX = spaces.Box(0.0, 1.0, (2,), np.float32)
ZEROS = np.zeros(2, np.float32)
RESET = (ZEROS, {})


class Lying(gymnasium.Env):
    """Gives what it is told to, from `reset` or from the first `step`."""

    def __init__(self, space=BOX, reset=RESET, step=None):
        self.observation_space = space
        self.action_space = spaces.Discrete(2)
        self._given = reset, step

    def reset(self, *, seed=None, options=None):
        return self._given[0]

    def step(self, action):
        return self._given[1]


def step(observation=ZEROS, reward=0.0, terminated=False, truncated=False):
    return observation, reward, terminated, truncated, {}


WRONG_STEPS = {
    "old Gym": ((ZEROS, 0.0, False, {}), r"5|five|four.*tuple of 4"),
    "shape": (step(np.zeros(3, np.float32)), r"shape \(3,\)"),
    "one number": (step(np.zeros(1, np.float32)), r"shape \(1,\)"),
    "dtype": (step(np.zeros(2, np.complex64)), "complex64"),
    "far above": (step(np.array([0.0, 255.0])), r"space.*255.0 at \(1,\)"),
    "far below": (step(np.array([-99.0, 0.0])), r"space.*-99.0 at \(0,\)"),
    "reward": (step(reward=np.zeros(2)), r"`reward`.*shape \(2,\)"),
    "no reward": (step(reward=None), "`reward`.*object"),
    "a word": (step(terminated="no"), "`terminated`"),
    "a float": (step(truncated=0.5), "`truncated`.*float64"),
}


@pytest.mark.parametrize("case", WRONG_STEPS)
def test_wrong_first_steps(case):
    given, words = WRONG_STEPS[case]
    env = as_vector_env(Lying(step=given))
    env.reset()
    with pytest.raises(MismatchError, match=words) as caught:
        env.step(np.zeros(1, np.int32))
    assert "Expected" in str(caught.value)
    assert "Lying" in str(caught.value)


def test_agents_learn_nothing_of_it():
    env = Lying(step=step(np.array([0.0, 255.0])))
    agent = rl.PPO.for_env(env, hidden=(4,), seed=0)
    rollouts = rl.RolloutDataset(env, horizon=8, seed=0, on_env_error="restart")
    with pytest.raises(MismatchError, match="in its space"):
        agent.fit(rollouts, epochs=1, verbose=0)
    assert agent.env_steps == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (ZEROS, "reset.*ndarray"),
        ((np.zeros(3, np.float32), {}), r"shape \(3,\)"),
        ((np.array([0.0, 255.0]), {}), "in its space"),
    ],
)
def test_wrong_resets(given, words):
    with pytest.raises(MismatchError, match=words):
        as_vector_env(Lying(reset=given)).reset()


DICT = spaces.Dict({"a": BOX, "b": spaces.Discrete(3)})


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        ({"a": ZEROS}, r"\['a', 'b'\].*\['a'\]"),
        ({"a": ZEROS, "b": 0, "c": 0}, r"\['a', 'b', 'c'\]"),
        ({"a": ZEROS, "b": 3}, "observation b.*Discrete.*3 at"),
        ({"a": ZEROS + 200, "b": 0}, "observation a"),
        (ZEROS, "dict.*ndarray"),
    ],
)
def test_wrong_keys(observation, words):
    right = {"a": ZEROS, "b": 0}
    env = as_vector_env(Lying(DICT, reset=(right, {}), step=step(observation)))
    env.reset()
    with pytest.raises(MismatchError, match=words):
        env.step(np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("space", "inside"),
    [
        (BOX, np.array([10.9, -9.9])),
        (spaces.Box(-np.inf, np.inf, (2,)), np.array([1e30, 0.0])),
        (spaces.Box(0.0, np.inf, (2,)), np.array([-1e9, 1e9])),
        (spaces.Box(-3.4e38, 3.4e38, (2,)), np.array([1.0, 2.0])),
        (spaces.MultiBinary(2), np.array([0, 1], np.int8)),
        (spaces.MultiDiscrete([3, 4], start=[1, 1]), np.array([3, 4])),
        # What is not finite is named where rollouts are checked.
        (BOX, np.array([np.nan, np.inf])),
    ],
    ids=str,
)
def test_what_passes(space, inside):
    env = as_vector_env(Lying(space, reset=(inside, {}), step=step(inside)))
    env.reset()
    env.step(np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("space", "outside"),
    [
        (spaces.MultiBinary(2), np.array([0, 2], np.int8)),
        (spaces.MultiDiscrete([3, 4], start=[1, 1]), np.array([0, 1])),
        (spaces.Discrete(3, start=1), 4),
    ],
    ids=str,
)
def test_what_is_counted_is_never_outside(space, outside):
    with pytest.raises(MismatchError, match="in its space"):
        as_vector_env(Lying(space, reset=(outside, {}))).reset()


def test_synchronous_environments():
    right = functools.partial(Lying, step=step())
    for given, words in (
        (step(np.array([0.0, 255.0])), r"255.0 at \(1, 1\)"),
        ((ZEROS, 0.0, False, {}), r"environment 1.*tuple of 4, \(ndarray"),
        (step(np.zeros(3, np.float32)), r"environment 1.*shape \(3,\)"),
        (step(np.array(["a", "b"])), r"environment 1.*dtype <U1"),
        (step(reward=np.zeros(2)), r"Lying, environment 1.*reward of shape"),
    ):
        env = as_vector_env(
            SyncVectorEnv([right, functools.partial(Lying, step=given)])
        )
        env.reset()
        with pytest.raises(MismatchError, match=words) as caught:
            env.step(np.zeros(2, np.int32))
        everything = " ".join([str(caught.value), *caught.value.__notes__])
        assert "Expected" in everything
        assert "In step 1 of" in everything


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (ZEROS, r"`reset` of Lying, environment 1.*ndarray"),
        ((np.zeros(3, np.float32), {}), r"environment 1.*shape \(3,\)"),
        (({"a": ZEROS}, {}), r"environment 1.*dtype object"),
    ],
)
def test_synchronous_resets(given, words):
    makers = [Lying, functools.partial(Lying, reset=given)]
    with pytest.raises(MismatchError, match=words):
        as_vector_env(SyncVectorEnv(makers)).reset()


class Raising(Lying):
    """Has a mistake of another kind."""

    def reset(self, *, seed=None, options=None):
        return {}["nothing"]


def test_what_an_environment_raises_itself_is_left_alone():
    with pytest.raises(KeyError, match="nothing") as caught:
        as_vector_env(SyncVectorEnv([Lying, Raising])).reset()
    assert caught.value.__notes__ == [
        "In a reset after 0 steps of environment 1 of SyncVectorEnv."
    ]


class OldReset(Lying):
    """Takes no seed."""

    def reset(self):
        return RESET


def test_a_reset_without_a_seed_is_told_what_it_takes():
    with pytest.raises(TypeError, match="seed") as caught:
        as_vector_env(SyncVectorEnv([OldReset, OldReset])).reset()
    assert "`reset(seed=None, options=None)`" in caught.value.__notes__[0]


def test_later_steps_of_another_shape():
    env = as_vector_env(Lying(step=step()))
    env.reset()
    env.step(np.zeros(1, np.int32))
    env.env._given = None, step(np.zeros(1, np.float32))
    with pytest.raises(MismatchError, match=r"shape \(1,\)"):
        env.step(np.zeros(1, np.int32))
