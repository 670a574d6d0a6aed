"""Environments in processes of their own go on where others were."""

import functools
import os

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import NormalizeReward

from keras_rl2.envs import as_vector_env
from keras_rl2.envs import env_state
from keras_rl2.envs import worker_processes


def pendulum():
    return TimeLimit(gymnasium.make("Pendulum-v1").unwrapped, 7)


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


def play(env, steps=30):
    generator = np.random.default_rng(1)
    given = []
    for _ in range(steps):
        shape = (env.num_envs, *env.action_space.shape)
        action = generator.uniform(-1, 1, shape)
        observation, *rest = env.step(action)
        given.append((observation.copy(), *rest))
    return given


# 7 steps are just after the end of an episode.
@pytest.mark.parametrize(
    ("mode", "shared_memory", "steps", "context"),
    [
        (AutoresetMode.NEXT_STEP, True, 7, "fork"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                (AutoresetMode.SAME_STEP, False, 14, "forkserver"),
                (AutoresetMode.DISABLED, True, 18, "spawn"),
            )
        ),
    ],
)
def test_another_vector_environment_continues_from_a_saved_state(
    mode, shared_memory, steps, context, made
):
    make = functools.partial(
        made,
        [pendulum, pendulum],
        autoreset_mode=mode,
        shared_memory=shared_memory,
        context=context,
    )
    env, other = make(), make()
    env.reset(seed=3)
    observation = play(env, steps)[-1][0]
    state, own = env_state.read(env), env.get_state()
    pending = mode is AutoresetMode.NEXT_STEP and steps == 7
    assert own["pending_reset"].any() == pending
    expected = play(env)
    other.set_state(own)
    env_state.write(other, state, observation)
    np.testing.assert_equal(play(other), expected)


def test_a_wrapper_around_them(made):
    make = functools.partial(
        made,
        [pendulum, pendulum],
        functools.partial(NormalizeReward, gamma=0.9),
    )
    env, other = make(), make()
    env.reset(seed=3)
    observation = play(env, 7)[-1][0]
    state, own = env_state.read(env), env.get_state()
    expected = play(env)
    other.set_state(own)
    env_state.write(other, state, observation)
    assert other.get_state()["resets"] == own["resets"]
    np.testing.assert_equal(play(other), expected)


class TestAsking:
    def test_each_with_its_own_environment(self, made):
        env = made([pendulum, cart_pole_like_pendulum]).env
        answers = worker_processes.ask(env, kind_and, [(1,), (2,)])
        assert answers == [("TimeLimit", 1), ("TransformReward", 2)]
        assert os.getpid() not in worker_processes.ask(env, process_of)

        # An error ends nothing.
        with pytest.raises(RuntimeError, match=r"no such.*environment 1"):
            worker_processes.ask(env, fails, [(0,), (1,)])
        assert worker_processes.ask(env, kind_and, [(1,), (2,)]) == answers

    def test_a_worker_function_of_the_user_cannot_save_its_state(self, made):
        env = made([pendulum], worker=gymnasium_worker)
        with pytest.raises(ValueError, match="Gymnasium's own `worker`"):
            worker_processes.ask(env.env, process_of)
        env.reset(seed=0)
        [reason] = env_state.refusals(env_state.read(env))
        assert "Gymnasium's own `worker`" in reason


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
