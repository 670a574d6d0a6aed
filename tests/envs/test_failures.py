"""Errors and deaths of environments, and the processes left after them."""

import functools
import multiprocessing
import os
import weakref

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

import keras_rl2 as rl
from keras_rl2.envs import WorkerError
from keras_rl2.envs import as_vector_env
from keras_rl2.envs import worker_processes
from support import failing_envs
from support.failing_envs import FailingEnv
from support.failing_envs import HiddenIndex
from support.probe_envs import EnvCrash
from support.vector_envs import MODES

ACTION = np.zeros(3, np.int32)


def makers(fail, at=4, failing=1, num_envs=3):
    return [
        functools.partial(HiddenIndex, index, failing, fail=fail, at=at)
        for index in range(num_envs)
    ]


def in_processes(fail, mode=AutoresetMode.SAME_STEP, **kwargs):
    return as_vector_env(
        failing_envs.in_processes(makers(fail, **kwargs), autoreset_mode=mode)
    )


def error_of(env, kind, steps=10):
    """Steps until an environment raises, and returns the error."""
    env.reset(seed=0)
    try:
        for _ in range(steps):
            env.step(np.zeros(env.num_envs, np.int32))
    except kind as error:
        return error
    raise AssertionError(f"no {kind} in {steps} steps")


def children():
    return multiprocessing.active_children()


def test_environments_that_raise_are_named():
    for mode in MODES:
        env = as_vector_env(
            SyncVectorEnv(makers(failing_envs.raises), autoreset_mode=mode)
        )
        error = error_of(env, EnvCrash)
        assert error.__notes__ == ["In step 4 of environment 1 of HiddenIndex."]
    gymnasium.register("Failing-v0", entry_point=FailingEnv)
    try:
        env = as_vector_env("Failing-v0", env_kwargs={"at": 3})
        error = error_of(env, EnvCrash)
    finally:
        del gymnasium.registry["Failing-v0"]
    assert error.__notes__ == ["In step 3 of environment 0 of Failing-v0."]
    env = as_vector_env(FailingEnv(failing_envs.is_interrupted, at=2))
    error = error_of(env, KeyboardInterrupt)
    assert "step 2 of environment 0" in error.__notes__[0]
    env = as_vector_env(
        FailingEnv(probability=1.0, reset_fails=True, fail=failing_envs.raises)
    )
    with pytest.raises(EnvCrash) as caught:
        env.reset()
    [note] = caught.value.__notes__
    assert note == "In a reset after 0 steps of environment 0 of FailingEnv."


def test_an_error_of_a_native_vector_environment_names_no_index():
    inner = SyncVectorEnv(makers(failing_envs.raises))

    class Native(gymnasium.vector.VectorEnv):
        num_envs = 3
        metadata = inner.metadata
        single_observation_space = inner.single_observation_space
        single_action_space = inner.single_action_space
        reset, step = inner.reset, inner.step

    env = as_vector_env(Native())
    assert error_of(env, EnvCrash).__notes__ == [
        "In step 4 of one of the 3 environments of Native."
    ]


def test_a_killed_process_is_found_and_nothing_is_left():
    env = in_processes(failing_envs.is_killed, AutoresetMode.NEXT_STEP)
    error = error_of(env, WorkerError)
    said = str(error)
    assert "environment 1, whose process ended with exit code -9" in said
    assert "step 4" in said
    assert isinstance(error.__cause__, EOFError | ConnectionError)
    env.close()
    assert not children()


def test_a_process_killed_between_steps_is_found():
    env = in_processes(failing_envs.is_killed, at=None)
    env.reset()
    kill(env, 2)
    with pytest.raises(
        WorkerError, match=r"environment 2.*exit code -9"
    ) as caught:
        env.step(ACTION)
    assert not children()
    # Python 3.12.1 crashes where such an error is left to its collector.
    error = weakref.ref(caught.value)
    del caught
    assert error() is None
    # Or it is closed first.
    env = in_processes(failing_envs.is_killed, at=None)
    env.reset()
    kill(env, 0)
    env.close()
    assert not children()


def kill(env, index):
    """Kills the process of an environment."""
    process = env.env.processes[index]
    process.kill()
    process.join()


@pytest.fixture(scope="module")
def server():
    """The processes that multiprocessing starts once."""
    env = in_processes(failing_envs.raises, at=None)
    env.close()


#: What is raised here of what environments do in their processes.
FAULTS = {
    "raises": EnvCrash,
    "raises_what_cannot_be_pickled": WorkerError,
    "raises_what_cannot_be_made_again": WorkerError,
    "raises_what_is_made_of_two": failing_envs.WholeError,
    "raises_and_hangs": WorkerError,
    "is_killed": WorkerError,
    "exits": WorkerError,
    "is_interrupted": KeyboardInterrupt,
    "shows_another_space": ValueError,
}


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("step", "is_killed"),
        ("reset", "raises_what_is_made_of_two"),
        *(
            pytest.param(call, name, marks=pytest.mark.slow)
            for call, name in (
                ("step", "raises_what_cannot_be_pickled"),
                ("step", "raises_and_hangs"),
                ("step", "raises"),
                ("step", "is_interrupted"),
                ("reset", "raises_what_cannot_be_made_again"),
                ("reset", "exits"),
                ("reset", "shows_another_space"),
            )
        ),
    ],
)
def test_each_fault_is_raised_and_leaves_nothing(
    call, name, server, monkeypatch
):
    monkeypatch.setattr(worker_processes, "_SECONDS_TO_TELL", 2.0)

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    fail, before = getattr(failing_envs, name), descriptors()
    env = as_vector_env(
        failing_envs.in_processes(
            [
                functools.partial(failing_envs.FailingCall, index, call, fail)
                for index in range(3)
            ]
        )
    )
    env.reset(seed=0)
    failing = env.reset
    if call == "step":
        for _ in range(3):
            env.step(ACTION)
        failing = functools.partial(env.step, ACTION)
    with pytest.raises(FAULTS[name]) as caught:
        failing()
    text = " ".join(
        [str(caught.value), *getattr(caught.value, "__notes__", [])]
    )
    if "pickled" in text:
        # Nothing of it says which one it was.
        assert "one of the 3 environments" in text or "environment 1" in text
    else:
        assert "environment 1" in text
    del caught
    assert not children()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        env.reset()
    env.close()
    assert not children()
    assert descriptors() <= before


def test_an_environment_that_does_not_close_is_ended(monkeypatch):
    class Clinging(FailingEnv):
        def close(self):
            failing_envs.hangs(self)

    monkeypatch.setattr(
        "keras_rl2.envs.worker_processes._SECONDS_TO_CLOSE", 0.2
    )
    env = as_vector_env(
        failing_envs.in_processes([FailingEnv, lambda: Clinging()])
    )
    env.reset()
    env.close()
    assert not children()


def test_wrong_observations_of_processes_leave_nothing_behind():
    class Wide(FailingEnv):
        def _observation(self):
            return np.zeros(3, np.float32)

    env = as_vector_env(failing_envs.in_processes([FailingEnv, Wide]))
    with pytest.raises(ValueError, match="shape") as caught:
        env.reset()
    assert "Expected observations of Box" in " ".join(caught.value.__notes__)
    assert not children()
    env.close()


def test_evaluation_and_recording_name_the_environment():
    agent = rl.PPO.for_env(FailingEnv(), hidden=(4,), seed=0)
    env = FailingEnv(at=5)
    with pytest.raises(EnvCrash) as caught:
        agent.evaluate(env, episodes=2)
    assert "step 5 of environment 0" in caught.value.__notes__[0]
    with pytest.raises(EnvCrash) as caught:
        rl.record("random", FailingEnv(at=5), 20)
    assert "step 5 of environment 0" in caught.value.__notes__[0]
