"""Environments that are given their state back do the same again."""

import copy
import functools

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers import TransformReward

from keras_rl2.envs import as_vector_env
from keras_rl2.envs import env_state
from support.probe_envs import CountingEnv

STEPS = 60


def pendulums(mode):
    make = functools.partial(
        gymnasium.make, "Pendulum-v1", max_episode_steps=13
    )
    return SyncVectorEnv([make] * 3, autoreset_mode=mode)


ENVS = {
    "single": lambda: gymnasium.make("MountainCarContinuous-v0"),
    "native": lambda: gymnasium.make_vec("CartPole-v1", num_envs=3),
    "taxi": lambda: gymnasium.make("Taxi-v4"),
    "frozen_lake": lambda: gymnasium.make("FrozenLake-v1"),
    "blackjack": lambda: gymnasium.make("Blackjack-v1"),
    "cliff": lambda: gymnasium.make("CliffWalking-v1"),
    "acrobot": lambda: gymnasium.make("Acrobot-v1"),
    "counting": lambda: CountingEnv(0, lengths=(3, 1, 9)),
    "wrapped": lambda: TransformReward(
        TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 7), np.negative
    ),
    **{
        f"pendulums, {mode.name}": functools.partial(pendulums, mode)
        for mode in AutoresetMode
    },
}


def play(env, steps=STEPS):
    """Takes steps that are always the same, and returns what they gave."""
    space = copy.deepcopy(env.action_space)
    space.seed(1)
    given = []
    for _ in range(steps):
        action = np.stack([space.sample() for _ in range(env.num_envs)])
        given.append(copy.deepcopy(env.step(action)))
    return given


def reset(make, seed=3):
    env = as_vector_env(make())
    env.reset(seed=seed)
    return env


@pytest.mark.parametrize("case", ENVS)
def test_another_one_goes_on_where_it_was(case):
    env = reset(ENVS[case])
    play(env, 20)
    assert env_state.repeats(env)
    state, adapter = env_state.read(env.env), env.get_state()
    expected = play(env)
    # As in another process: made anew, and somewhere else by then.
    other = reset(ENVS[case], seed=8)
    play(other, 5)
    env_state.write(other.env, state)
    other.set_state(adapter)
    np.testing.assert_equal(play(other), expected)
    # It can be given more than once.
    env_state.write(env.env, state)
    env.set_state(adapter)
    np.testing.assert_equal(play(env), expected)


def test_looking_changes_nothing():
    env, twin = (reset(ENVS["native"]) for _ in range(2))
    assert env_state.repeats(env)
    np.testing.assert_equal(play(env), play(twin))


def test_a_time_limit_is_a_part_of_it():
    env = reset(ENVS["wrapped"])
    play(env, 3)
    state = env_state.read(env.env)
    assert state["kind"] == "TransformReward"
    limit = state["within"]["env"]
    assert (limit["kind"], limit["attributes"]["_elapsed_steps"]) == (
        "TimeLimit",
        3,
    )


class Hidden(gymnasium.Env):
    """Keeps its step where nobody finds it."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.steps = iter(range(10**6))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        observation = np.full(1, next(self.steps) % 100, np.float32)
        return observation, 0.0, False, False, {}


class Own(Hidden):
    """The same, but it says where it is."""

    def get_state(self):
        now = next(self.steps)
        self.steps = iter(range(now, 10**6))
        return now

    def set_state(self, state):
        self.steps = iter(range(state, 10**6))


class Refuses(Hidden):
    """Says that it is not to be tried."""

    tried = 0

    def get_state(self):
        raise NotImplementedError

    def set_state(self, state):
        raise NotImplementedError

    def step(self, action):
        Refuses.tried += 1
        return super().step(action)


def test_methods_of_its_own():
    env = reset(lambda: TimeLimit(Own(), 9))
    play(env, 4)
    assert env_state.repeats(env)
    state, adapter = env_state.read(env.env), env.get_state()
    assert state["within"]["env"] == {"own": 4}
    expected = play(env)
    other = reset(lambda: TimeLimit(Own(), 9))
    env_state.write(other.env, state)
    other.set_state(adapter)
    np.testing.assert_equal(play(other), expected)


@pytest.mark.parametrize("vector", [False, True])
def test_a_state_that_is_not_found(vector):
    def make():
        return SyncVectorEnv([Hidden] * 2) if vector else Hidden()

    env, twin = reset(make), reset(make)
    assert not env_state.repeats(env)
    np.testing.assert_equal(play(env), play(twin))


def test_an_environment_may_refuse():
    env = reset(Refuses)
    assert not env_state.repeats(env)
    assert Refuses.tried == 0


def test_another_kind_of_environment():
    state = env_state.read(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="Expected the state of a"):
        env_state.write(gymnasium.make("CartPole-v1").unwrapped, state)


def test_another_number_of_environments():
    state = env_state.read(pendulums(AutoresetMode.SAME_STEP))
    other = SyncVectorEnv([functools.partial(gymnasium.make, "Pendulum-v1")])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        env_state.write(other, state)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Hopper-v5", "Ant-v5"])
def test_mujoco(env_id):
    pytest.importorskip("mujoco")
    env = reset(lambda: gymnasium.make(env_id))
    play(env, 20)
    assert env_state.repeats(env)
    state, adapter = env_state.read(env.env), env.get_state()
    expected = play(env)
    other = reset(lambda: gymnasium.make(env_id), seed=8)
    env_state.write(other.env, state)
    other.set_state(adapter)
    np.testing.assert_equal(play(other), expected)


def test_box2d_begins_anew():
    pytest.importorskip("Box2D")
    env = reset(lambda: gymnasium.make("LunarLander-v3"))
    assert not env_state.repeats(env)
