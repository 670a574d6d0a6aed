"""Importing TensorFlow without its notes."""

import os
import sys
import tempfile


def import_tensorflow() -> None:
    """Imports TensorFlow, which tells of oneDNN and CUDA on each start.

    Its library writes to the process's own stderr before any setting of it,
    `TF_CPP_MIN_LOG_LEVEL` among them, is looked at. What it wrote is shown
    after all where the import fails.
    """
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        except Exception:
            notes.seek(0)
            os.write(stderr, notes.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
