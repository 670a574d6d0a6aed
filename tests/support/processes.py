"""What a fresh Python does."""

import os
import resource
import subprocess
import sys


def printed_by(code, folder, **environment):
    """Runs Python code in a process of its own, in a folder.

    Args:
        code: str. The code.
        folder: Where it is run.
        **environment: Variables of the environment, beside our own.

    Returns:
        The last line that it printed.
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


def processor_seconds(command, folder):
    """Runs a command in a folder and measures the work of it.

    Returns:
        What `subprocess.run` returns, and the seconds that processors worked
        on it: unlike those on the clock, they are the same while others use
        the machine.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    )
