"""Starting another Python that can import the same modules.

Not `multiprocessing`: its processes import the script that is run, and with
it TensorFlow; or are forked, with locks that TensorFlow's threads hold.
"""

import os
import sys


def command(module: str) -> list[str]:
    """Returns the command that runs a module.

    Args:
        module: str. Its name.

    Returns:
        list of str.
    """
    # `-P`: a module of the working directory is not to come first.
    return [sys.executable, "-P", "-m", module]


def environ() -> dict[str, str]:
    """Returns the environment variables of a process that imports alike."""
    folders = [os.path.abspath(folder) for folder in sys.path]
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
