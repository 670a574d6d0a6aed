"""Looking after the processes of a dataset's workers."""

import os
import signal
import threading
import time
from pathlib import Path


def transport_of(data):
    """Returns the transport of a dataset's workers."""
    return data.env.pool._transport


def held_by(env):
    """Returns the index of the worker of each process, by link.

    Args:
        env: `WorkerEnv`.
    """
    return {each.link: each.index for each in env.pool._processes}


def processes_of(data):
    """Returns all processes that a dataset's workers have had so far."""
    return [each.process for each in transport_of(data)._links]


def living(data):
    """Returns those of them that run."""
    return [each for each in processes_of(data) if each.poll() is None]


def wait_until(condition, seconds=20.0):
    """Waits for an event in another process; fails without it."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it has not happened"
        # Not busy: what is waited for needs the processor.
        threading.Event().wait(0.005)


def is_running(pid):
    """Says whether there is a process that has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        # A system without them.
        return not Path("/proc/self/stat").exists()
    except ProcessLookupError:
        # It ended while it was looked at.
        return False
    # One that has ended may be waiting for somebody who asks how.
    return status.rpartition(")")[2].split()[0] != "Z"


def kill(process):
    """Kills a process of a worker and waits until it is gone."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
