"""Programs that use workers, run in processes of their own.

`python worker_programs.py NAME ...`: no program has a guard
`if __name__ == "__main__"`, and environments are defined here.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import json
import signal
import sys
import threading

import gymnasium
import keras

import keras_rl2 as rl
from support.worker_envs import NumberedEnv
from support.worker_envs import Reused
from support.worker_processes import processes_of


class OwnError(Exception):
    """Is known to this program alone."""


class OwnEnv(NumberedEnv):
    """Is known to this program alone.

    Args:
        fails: bool. Whether the tenth step fails.
    """

    def __init__(self, fails=False, **kwargs):
        super().__init__(**kwargs)
        self._fails = fails

    def step(self, action):
        if self._fails and self.steps == 9:
            raise OwnError("of this program")
        return super().step(action)


gymnasium.register("Own-v0", entry_point=OwnEnv)


def made(env, **settings):
    defaults = {"num_envs": 4, "horizon": 16, "passes": 1, "batch_size": None}
    data = rl.RolloutDataset(
        env, workers=rl.LocalWorkers(2), seed=0, **{**defaults, **settings}
    )
    agent = rl.PPO.for_env(data.env, hidden=(8,), seed=0)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return agent, data


def say(**values):
    """Tells the one who started this program something, at once."""
    # In one piece: its workers say something to the same one.
    os.write(1, f"{json.dumps(values)}\n".encode())


def environments():
    """Environments that are known to this program alone."""
    agent, data = made("Own-v0", wrappers=[lambda env: Reused(env, 1.0)])
    agent.fit(data, epochs=1, verbose=0)
    data.close()
    agent, data = made(lambda: OwnEnv(fails=True))
    try:
        agent.fit(data, epochs=1, verbose=0)
    except OwnError as error:
        say(steps=agent.env_steps, own=str(error), notes=error.__notes__)
    # Not closed.
    say(
        processes=[each.pid for each in processes_of(data)],
    )


class Hanging(NumberedEnv):
    """Hangs in its step 20, and says so."""

    def step(self, action):
        if self.steps == 19:
            say(hangs=True)
            threading.Event().wait()
        return super().step(action)


def is_broken_off():
    """Is killed, or interrupted, in the midst of a rollout."""
    # A shell's background programs ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    agent, data = made(lambda: Hanging())
    agent.fit(data, epochs=1, verbose=0)
    processes = processes_of(data)
    say(
        processes=[each.pid for each in processes],
    )
    try:
        agent.fit(data, epochs=1, verbose=0)
    except KeyboardInterrupt:
        living = sum(each.poll() is None for each in processes)
        say(interrupted=True, living=living, steps=agent.env_steps)
    agent.fit(data, epochs=1, verbose=0)
    processes = processes_of(data)
    say(
        steps=agent.env_steps,
        processes=[each.pid for each in processes],
        living=sum(each.poll() is None for each in processes),
    )


{"environments": environments, "is_broken_off": is_broken_off}[sys.argv[1]]()
