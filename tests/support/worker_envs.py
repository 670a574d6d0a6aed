"""Environments that report their fate in the processes of workers.

Imported in those: nothing here imports TensorFlow or Keras.
"""

import functools
import os
import signal
import sys
import threading
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

# Longest and shortest episodes of a `NumberedEnv`.
SHORTEST, LONGEST = 5, 14


class NumberedEnv(gymnasium.Env):
    """Observation [environment, episode, step], unlike that of any other.

    The environment's number differs from that of every other, in other
    processes too. The reward is the number of the step just made, so that a
    return says of how many steps it is.

    Args:
        fail: Function that is called before each step, with the environment.
            Defaults to `None`.
    """

    #: How many were made in this process.
    made = 0

    def __init__(self, fail=None):
        self.observation_space = spaces.Box(0.0, 2.0**24, (3,), np.float32)
        self.action_space = spaces.Discrete(2)
        # What a float32 holds: processes, and environments in each.
        process = int.from_bytes(os.urandom(2)) << 8
        self.number = process + NumberedEnv.made % 256
        NumberedEnv.made += 1
        self.episode = 0
        self.steps = 0
        self._fail = fail

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.time = 0
        self.length = int(self.np_random.integers(SHORTEST, LONGEST + 1))
        return self._observation(), {}

    def step(self, action):
        self.steps += 1
        if self._fail is not None:
            self._fail(self)
        self.time += 1
        over = self.time == self.length
        return self._observation(), float(self.time), over, False, {}

    def _observation(self):
        return np.array([self.number, self.episode, self.time], np.float32)


class Once:
    """Fails in one step, in all processes together; then never again.

    Args:
        path: File that is there until it has happened.
        how: Function that is called then, without arguments.
        step: int. Which step of an environment, counted from 1.
    """

    def __init__(self, path, how, step):
        Path(path).touch()
        self.path = path
        self.how = how
        self.step = step

    def __call__(self, env):
        if env.steps == self.step and _taken(self.path):
            self.how()


class Always:
    """Fails in one step of each environment.

    Args:
        how: Function that is called then, without arguments.
        step: int. Which step of an environment, counted from 1.
    """

    def __init__(self, how, step):
        self.how = how
        self.step = step

    def __call__(self, env):
        if env.steps == self.step:
            self.how()


def _taken(path):
    """Removes a file, and says whether it was there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def dies():
    """Is killed, as by a system that is short of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def hangs():
    """Waits forever."""
    threading.Event().wait()


class WorkerEnvCrash(ValueError):
    """The error of an environment."""


class TwoArgumentsError(Exception):
    """Can be pickled, and not be made again."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def raises():
    raise WorkerEnvCrash("crash")


def raises_what_cannot_be_sent():
    raise TwoArgumentsError("cannot", "be sent")


class ProcessEnv(NumberedEnv):
    """Writes down the modules and the number of its process.

    Args:
        folder: Gets a file for each environment that was closed.
    """

    def __init__(self, folder):
        super().__init__()
        self.folder = Path(folder)

    def close(self):
        modules = {name.partition(".")[0] for name in sys.modules}
        path = self.folder / f"{os.getpid()}-{self.number}"
        path.write_text("\n".join(sorted(modules)))


class Reused(gymnasium.Wrapper):
    """Adds to the reward, which a lambda does in tests too."""

    def __init__(self, env, bonus=0.5):
        super().__init__(env)
        self.bonus = bonus

    def step(self, action):
        observation, reward, *others = self.env.step(action)
        return observation, reward + self.bonus, *others


def next_step_vector(make, num_envs, **kwargs):
    """Makes a vector environment that resets in the step after the last."""
    return SyncVectorEnv(
        [functools.partial(make, **kwargs)] * num_envs,
        autoreset_mode=AutoresetMode.NEXT_STEP,
    )
