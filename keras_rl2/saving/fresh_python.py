"""Starting another Python process that can import the same modules.

`multiprocessing` is not used, since its processes import the main script, and
with it TensorFlow; or are forked, with locks that TensorFlow's threads hold.
"""

import os
import sys


def command(module: str) -> list[str]:
    """Returns the command that runs a module."""
    # `-P`: modules in the working directory must not take precedence.
    return [sys.executable, "-P", "-m", module]


def environ() -> dict[str, str]:
    """Returns environment variables for importing the same modules."""
    folders = [os.path.abspath(folder) for folder in sys.path]
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
