"""Values of an environment outside of its declared spaces raise at once."""

import functools
import re

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
    """Returns given values from `reset` or from the first `step`."""

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


WRONG_STEPS = [
    ((ZEROS, 0.0, False, {}), r"5|five|four.*tuple of 4"),
    (step(np.zeros(3, np.float32)), r"shape \(3,\)"),
    (step(np.zeros(1, np.float32)), r"shape \(1,\)"),
    (step(np.zeros(2, np.complex64)), "complex64"),
    (step(np.array([0.0, 255.0])), r"space.*255.0 at \(1,\)"),
    (step(np.array([-99.0, 0.0])), r"space.*-99.0 at \(0,\)"),
    (step(reward=np.zeros(2)), r"`reward`.*shape \(2,\)"),
    (step(reward=None), "`reward`.*object"),
    (step(terminated="no"), "`terminated`"),
    (step(truncated=0.5), "`truncated`.*float64"),
]


def raised_by(call, *arguments):
    """Returns the message and the notes of the error of an environment."""
    with pytest.raises(MismatchError) as caught:
        call(*arguments)
    return " ".join(
        [str(caught.value), *getattr(caught.value, "__notes__", [])]
    )


def first_step(env):
    """Steps all environments for the first time."""
    env.reset()
    env.step(np.zeros(env.num_envs, np.int32))


@pytest.mark.parametrize(("given", "words"), WRONG_STEPS)
def test_wrong_first_steps(given, words):
    said = raised_by(first_step, as_vector_env(Lying(step=given)))
    assert re.search(words, said), given
    assert "Expected" in said
    assert "Lying" in said


def test_agents_learn_nothing_of_a_mismatch():
    env = Lying(step=step(np.array([0.0, 255.0])))
    agent = rl.PPO.for_env(env, hidden=(4,), seed=0)
    rollouts = rl.RolloutDataset(env, horizon=8, seed=0)
    with pytest.raises(MismatchError, match="in its space"):
        agent.fit(rollouts, epochs=1, verbose=0)
    assert agent.env_steps == 0


DICT = spaces.Dict({"a": BOX, "b": spaces.Discrete(3)})


@pytest.mark.parametrize(
    ("space", "given", "words"),
    [
        (BOX, ZEROS, "reset.*ndarray"),
        (BOX, (np.zeros(3, np.float32), {}), r"shape \(3,\)"),
        (BOX, (np.array([0.0, 255.0]), {}), "in its space"),
        # What is counted is never outside.
        (spaces.MultiBinary(2), (np.array([0, 2], np.int8), {}), "its space"),
        (
            spaces.MultiDiscrete([3, 4], start=[1, 1]),
            (np.array([0, 1]), {}),
            "in its space",
        ),
        (spaces.Discrete(3, start=1), (4, {}), "in its space"),
    ],
)
def test_wrong_resets(space, given, words):
    said = raised_by(as_vector_env(Lying(space, reset=given)).reset)
    assert re.search(words, said), (space, given)


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        ({"a": ZEROS}, r"Dict\(a: .*b: .*\['a'\]"),
        ({"a": ZEROS, "b": 3}, "observation b.*Discrete.*3 at"),
        ({"a": ZEROS + 200, "b": 0}, "observation a"),
        (ZEROS, "Dict.*ndarray"),
    ],
)
def test_wrong_keys(observation, words):
    right = {"a": ZEROS, "b": 0}
    env = Lying(DICT, reset=(right, {}), step=step(observation))
    assert re.search(words, raised_by(first_step, as_vector_env(env)))


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
)
def test_values_near_their_space_pass(space, inside):
    first_step(
        as_vector_env(Lying(space, reset=(inside, {}), step=step(inside)))
    )


def test_vector_environments_gain_a_note():
    right = functools.partial(Lying, step=step())
    env = as_vector_env(
        SyncVectorEnv(
            [right, functools.partial(Lying, step=step(np.array([0.0, 255.0])))]
        )
    )
    assert re.search(r"255.0 at \(1, 1\)", raised_by(first_step, env))
    for given in ((ZEROS, 0.0, False, {}), step(np.zeros(3, np.float32))):
        env = as_vector_env(
            SyncVectorEnv([right, functools.partial(Lying, step=given)])
        )
        with pytest.raises(
            ValueError, match=r"values|broadcast|shape"
        ) as caught:
            first_step(env)
        assert "Expected observations" in caught.value.__notes__[0]
        assert "In step 1 of" in caught.value.__notes__[1]
    makers = [Lying, functools.partial(Lying, reset=({"a": ZEROS}, {}))]
    with pytest.raises(ValueError, match="same shape") as caught:
        as_vector_env(SyncVectorEnv(makers)).reset()
    assert "Expected observations" in caught.value.__notes__[0]


class Raising(Lying):
    """Has a mistake of another kind."""

    def reset(self, *, seed=None, options=None):
        return {}["nothing"]


def test_errors_of_an_environment_keep_their_message():
    with pytest.raises(KeyError, match="nothing") as caught:
        as_vector_env(SyncVectorEnv([Lying, Raising])).reset()
    assert caught.value.__notes__ == [
        "In a reset after 0 steps of environment 1 of Lying."
    ]


def test_later_steps_of_another_shape():
    env = as_vector_env(Lying(step=step()))
    env.reset()
    env.step(np.zeros(1, np.int32))
    env.env._given = None, step(np.zeros(1, np.float32))
    with pytest.raises(MismatchError, match=r"shape \(1,\)"):
        env.step(np.zeros(1, np.int32))
