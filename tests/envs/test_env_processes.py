"""Environments in processes of their own go on where others were."""

import functools
import os

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import NormalizeObservation
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import NormalizeReward

from keras_rl2.envs import as_vector_env
from keras_rl2.envs import env_processes
from keras_rl2.envs.state_keeper import StateKeeper

STEPS = 60


def cart_pole():
    return NormalizeObservation(gymnasium.make("CartPole-v1"))


def pendulum():
    return TimeLimit(gymnasium.make("Pendulum-v1").unwrapped, 7)


class Hidden(gymnasium.Env):
    """Looks like the cart pole, and keeps its step where nobody finds it."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.counter = iter(range(10**6))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}

    def step(self, action):
        observation = np.full(4, next(self.counter), np.float32)
        return observation, 0.0, False, False, {}


@pytest.fixture
def made():
    """Makes adapters, which are closed in the end."""
    adapters = []

    def make(functions, wrapper=None, **settings):
        env = AsyncVectorEnv(functions, **settings)
        adapters.append(as_vector_env(wrapper(env) if wrapper else env))
        return adapters[-1]

    yield make
    for each in adapters:
        each.close()


def play(env, steps=STEPS):
    generator = np.random.default_rng(1)
    given = []
    for _ in range(steps):
        if isinstance(env.action_space, gymnasium.spaces.Discrete):
            action = generator.integers(2, size=env.num_envs)
        else:
            shape = (env.num_envs, *env.action_space.shape)
            action = generator.uniform(-1, 1, shape)
        observation, *rest = env.step(action)
        given.append((observation.copy(), *rest))
    return given


# The first one is just after the end of an episode.
@pytest.mark.spread
@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("steps", [7, 14, 18])
def test_another_one_goes_on_where_it_was(mode, shared_memory, steps, made):
    make = functools.partial(
        made,
        [pendulum, pendulum],
        autoreset_mode=mode,
        shared_memory=shared_memory,
    )
    env, other = make(), make()
    env.reset(seed=3)
    observation = play(env, steps)[-1][0]
    kept, own = StateKeeper(env).read(), env.get_state()
    assert kept["proven"]
    # Just after the end of an episode as well.
    pending = mode is AutoresetMode.NEXT_STEP and steps == 7
    assert own["pending_reset"].any() == pending
    expected = play(env)
    other.set_state(own)
    assert StateKeeper(other).write(kept, observation)
    np.testing.assert_equal(play(other), expected)


@pytest.mark.parametrize(
    "context",
    [
        "fork",
        pytest.param("forkserver", marks=pytest.mark.slow),
        pytest.param("spawn", marks=pytest.mark.slow),
    ],
)
def test_however_they_are_started(context, made):
    make = functools.partial(made, [cart_pole, cart_pole], context=context)
    env, other = make(), make()
    env.reset(seed=3)
    observation = play(env, 25)[-1][0]
    kept, own = StateKeeper(env).read(), env.get_state()
    expected = play(env)
    other.set_state(own)
    assert StateKeeper(other).write(kept, observation)
    np.testing.assert_equal(play(other), expected)


def test_a_wrapper_around_them(made):
    """Nobody can make another one of it: it is tried when it is resumed."""
    make = functools.partial(
        made,
        [pendulum, pendulum],
        functools.partial(NormalizeReward, gamma=0.9),
    )
    env, other = make(), make()
    env.reset(seed=3)
    observation = play(env, 7)[-1][0]
    kept, own = StateKeeper(env).read(), env.get_state()
    assert not kept["proven"]
    expected = play(env)
    other.set_state(own)
    assert StateKeeper(other).write(kept, observation)
    assert other.get_state()["resets"] == own["resets"]
    np.testing.assert_equal(play(other), expected)


def test_one_that_does_not_repeat(made):
    env = made([cart_pole, Hidden])
    twin = made([cart_pole, Hidden])
    for each in (env, twin):
        each.reset(seed=3)
    keeper = StateKeeper(env)
    assert keeper.read() is None
    assert "Hidden.counter" in keeper.refusal
    np.testing.assert_equal(play(env), play(twin))


class TestAsking:
    def test_each_with_its_own_environment(self, made):
        env = made([pendulum, cart_pole_like_pendulum]).env
        answers = env_processes.ask(env, kind_and, [(1,), (2,)])
        assert answers == [("TimeLimit", 1), ("TransformReward", 2)]
        assert os.getpid() not in env_processes.ask(env, process_of)

    def test_an_error_ends_nothing(self, made):
        env = made([pendulum, pendulum])
        with pytest.raises(RuntimeError, match=r"no such.*environment 1"):
            env_processes.ask(env.env, fails, [(0,), (1,)])
        env.reset(seed=0)
        play(env, 2)

    def test_a_worker_of_ones_own_is_not_asked(self, made):
        env = made([pendulum], worker=gymnasium_worker)
        with pytest.raises(ValueError, match="Gymnasium's own `worker`"):
            env_processes.ask(env.env, process_of)
        env.reset(seed=0)
        keeper = StateKeeper(env)
        assert keeper.read() is None
        assert "worker" in keeper.refusal


def cart_pole_like_pendulum():
    return gymnasium.wrappers.TransformReward(pendulum(), np.negative)


def kind_and(env, number):
    return type(env).__name__, number


def process_of(env):
    return os.getpid()


def fails(env, index):
    if index:
        raise KeyError("no such thing")


def gymnasium_worker(*arguments):
    from gymnasium.vector.async_vector_env import _async_worker

    _async_worker(*arguments)
