"""Programs in a fresh Python."""

import os
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
