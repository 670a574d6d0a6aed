import numpy as np
import pytest

from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.envs import as_vector_env
from keras_rl2.envs.vector_env import TimedEnv
from support.clocks import Clock


def test_steps_and_resets_are_measured():
    clock = Clock()
    env = as_vector_env("CartPole-v1")
    step, reset = env.step, env.reset

    def slow_step(action):
        clock.now += 2.0
        return step(action)

    def slow_reset(seed=None):
        clock.now += 1.0
        return reset(seed=seed)

    env.step, env.reset = slow_step, slow_reset
    stopwatch = Stopwatch(clock)
    timed = TimedEnv(env, stopwatch)
    first = timed.reset(seed=0)
    clock.now += 5.0
    timed.step(np.array([1]))
    assert stopwatch.seconds() == {"rest": 5.0, "environment": 3.0}
    np.testing.assert_array_equal(first, reset(seed=0))
    # All else is the environment.
    assert timed.resets == env.resets == 2
    assert timed.observation_space is env.observation_space
    # An error ends the section.
    with pytest.raises(ValueError, match="Expected an action"):
        timed.step(np.zeros((3, 3)))
    clock.now += 1.0
    assert stopwatch.seconds()["rest"] == 6.0
