"""What a fresh Python does."""

import subprocess
import sys


def printed_by(code, folder):
    """Runs Python code in a process of its own, in a folder.

    Returns:
        The last line that it printed.
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]
