import numpy as np
import pytest

from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.envs import TimedEnv
from keras_rl2.envs import as_vector_env
from support.clocks import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def env(clock):
    """CartPole whose steps take 2 seconds, and whose resets take 1."""
    env = as_vector_env("CartPole-v1")
    step, reset = env.step, env.reset

    def slow_step(action):
        clock.now += 2.0
        return step(action)

    def slow_reset(seed=None):
        clock.now += 1.0
        return reset(seed=seed)

    env.step, env.reset = slow_step, slow_reset
    return env


def test_steps_and_resets_are_measured(env, clock):
    stopwatch = Stopwatch(clock)
    timed = TimedEnv(env, stopwatch)
    first = timed.reset(seed=0)
    clock.now += 5.0
    timed.step(np.array([1]))
    np.testing.assert_array_equal(first, env.reset(seed=0))
    assert stopwatch.seconds() == {"rest": 6.0, "environment": 3.0}


def test_all_else_is_the_environment(env):
    timed = TimedEnv(env, Stopwatch())
    timed.reset()
    assert timed.resets == env.resets == 1
    assert timed.num_envs == 1
    assert timed.observation_space is env.observation_space
    assert timed.pending_reset is env.pending_reset


def test_an_error_ends_the_section(env, clock):
    stopwatch = Stopwatch(clock)
    with pytest.raises(ValueError, match="Expected an action"):
        TimedEnv(env, stopwatch).step(np.zeros((3, 3)))
    clock.now += 1.0
    assert stopwatch.seconds() == {"rest": 1.0, "environment": 2.0}
