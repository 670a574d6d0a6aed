"""Environments that raise, hang, die, or return invalid values."""

import functools
import itertools
import multiprocessing
import os
import signal
import threading

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv

from support.probe_envs import EnvCrash

# Each episode of this process has a number that no other has.
_EPISODES = itertools.count(1)
#: Numbers of the episodes that failed in this process.
FAILED_EPISODES = set()
LENGTH = 12

# A process that is forked beside TensorFlow's threads may hang: a server does
# it, which has imported all that is needed before.
multiprocessing.set_forkserver_preload(["gymnasium.vector", __name__])
in_processes = functools.partial(AsyncVectorEnv, context="forkserver")


def raises(env):
    """Raises the error of a user's environment."""
    FAILED_EPISODES.add(env.episode)
    raise EnvCrash(f"crash in episode {env.episode}")


def hangs(env):
    """Waits forever."""
    threading.Event().wait()


def is_killed(env):
    """Is killed by the system."""
    os.kill(os.getpid(), signal.SIGKILL)


def exits(env):
    """Ends its process."""
    os._exit(3)


def is_interrupted(env):
    """Is interrupted as by Ctrl-C."""
    raise KeyboardInterrupt


class TwoPartsError(Exception):
    """Can be pickled; and made again only of both of its parts."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


class WholeError(TwoPartsError):
    """Can be unpickled, too."""

    def __reduce__(self):
        return WholeError, tuple(self.args[0].split())


def raises_what_cannot_be_pickled(env):
    """Raises an error that holds a function."""
    error = EnvCrash("crash")
    error.function = lambda: None
    raise error


def raises_what_cannot_be_made_again(env):
    """Raises an error of two arguments."""
    raise TwoPartsError("two", "parts")


def raises_what_is_made_of_two(env):
    """Raises an error of two arguments that supports pickle."""
    raise WholeError("two", "parts")


def raises_and_hangs(env):
    """Raises an error that cannot be pickled, and never closes after it."""
    env.close = functools.partial(hangs, env)
    raises_what_cannot_be_pickled(env)


def shows_another_space(env):
    """Gives observations of another shape from now on."""
    env.observation = np.zeros(3, np.float32)


class FailingEnv(gymnasium.Env):
    """Observation [episode, step], so that each transition can be verified.

    The reward is `episode + step / 100` of the step just made, and an episode
    has 12 steps, every third one cut off.

    Args:
        fail: Function of the environment that makes a failure.
        probability: Of a failure, of each step.
        at: The step since its making that fails, counted from 1; or None.
        seed: Of the failures.
        reset_fails: Whether resets fail with that probability, too.
    """

    def __init__(
        self, fail=raises, probability=0.0, at=None, seed=0, reset_fails=False
    ):
        self.observation_space = spaces.Box(0.0, 1e6, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.episode = 0
        self.observation = None
        self._fail = fail
        self._probability = probability
        self._at = at
        self._reset_fails = reset_fails
        self._failures = np.random.default_rng(seed)
        self._steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode = next(_EPISODES)
        self._step = 0
        if self._reset_fails and self._happens():
            self._fail(self)
        return self._observation(), {}

    def step(self, action):
        self._steps += 1
        if self._steps == self._at or self._happens():
            self._fail(self)
        self._step += 1
        ended = self._step == LENGTH
        cut = self.episode % 3 == 0
        reward = reward_of(self.episode, self._step)
        return self._observation(), reward, ended and not cut, ended and cut, {}

    def _happens(self):
        return self._failures.random() < self._probability

    def _observation(self):
        if self.observation is not None:
            return self.observation
        return np.array([self.episode, self._step], np.float32)


def reward_of(episode, step):
    """Returns the reward of the step that leads to `step`."""
    return np.float32(episode + step / 100)


class HiddenIndex(FailingEnv):
    """Fails only if it is the environment of that index, or all alike."""

    def __init__(self, index, failing, **kwargs):
        kwargs["at"] = kwargs.get("at") if index == failing else None
        super().__init__(**kwargs)


class FailingCall(FailingEnv):
    """Fails in one call, if it is the second environment of several.

    Args:
        index: Which environment it is.
        call: `"reset"`, the second; or `"step"`, the fourth.
        fail: As of `FailingEnv`.
    """

    def __init__(self, index, call, fail):
        fails = index == 1
        super().__init__(fail, at=4 if fails and call == "step" else None)
        self._resets_left = 2 if fails and call == "reset" else 0

    def reset(self, *, seed=None, options=None):
        self._resets_left -= 1
        if self._resets_left == 0:
            self._fail(self)
        return super().reset(seed=seed, options=options)


class FailingOnce(FailingEnv):
    """Fails in one call, in all processes together; then never again.

    Args:
        call: `"reset"`, `"step"` or `"make"`.
        fail: As of `FailingEnv`.
        path: File. The next such call fails that finds it, and removes it.
    """

    def __init__(self, call, fail, path):
        super().__init__()
        self._call = call
        self._how = fail
        self._path = path
        self._may_fail("make")

    def reset(self, *, seed=None, options=None):
        self._may_fail("reset")
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self._may_fail("step")
        return super().step(action)

    def _may_fail(self, call):
        if call != self._call:
            return
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return
        self._how(self)


def assert_transitions(batch):
    """Asserts of transitions [M] that each of them truly happened.

    Args:
        batch: dict with `observation`, `next_observation` and `reward`.
    """
    observation, following = batch["observation"], batch["next_observation"]
    np.testing.assert_array_equal(observation[:, 0], following[:, 0])
    np.testing.assert_array_equal(observation[:, 1] + 1, following[:, 1])
    np.testing.assert_array_equal(
        batch["reward"], reward_of(*following.T.astype(np.float64))
    )
    failed = np.isin(observation[:, 0], [*FAILED_EPISODES])
    assert not failed.any()


def assert_trajectory(trajectory):
    """Asserts that whatever is learned from in a trajectory is right.

    Returns:
        How many steps that is.
    """
    observation = trajectory.observation
    following = observation[1:].copy()
    t, b = np.divmod(trajectory.final_index, trajectory.reward.shape[1])
    following[t, b] = trajectory.final_observation
    valid, ended = trajectory.valid, trajectory.ended
    assert_transitions(
        {
            "observation": observation[:-1][valid],
            "next_observation": following[valid],
            "reward": trajectory.reward[valid],
        }
    )
    last = following[valid][:, 1] == LENGTH
    assert ended[valid][last].all()
    assert (trajectory.terminated & valid).sum() == (
        last & (following[valid][:, 0] % 3 != 0)
    ).sum()
    # What does not end goes on with a step that counts, too.
    goes_on = valid[:-1] & ~ended[:-1]
    assert valid[1:][goes_on].all()
    if trajectory.begins is not None:
        begins = trajectory.begins[:-1][valid]
        np.testing.assert_array_equal(
            begins, observation[:-1][valid][:, 1] == 0
        )
    return int(valid.sum())
