"""TensorFlow with fewer log messages, by its own settings only.

`TF_CPP_MIN_LOG_LEVEL` is TensorFlow's setting for the log of its library: 1
leaves out information, 2 warnings too, 3 errors too. It is read once, when
TensorFlow is imported, and after its first lines are written. Stderr is never
redirected for the rest: the message of a crash would be lost.
"""

import contextlib
import ctypes
import os
import re
import sys
from pathlib import Path

_SETTING = "TF_CPP_MIN_LOG_LEVEL"
_ERRORS = 2


def prepare() -> None:
    """Limits TensorFlow's log to errors, unless the user has set a level.

    The converter to LiteRT warns each time of two fields that it ignores,
    which a user cannot change. Where Keras, and TensorFlow with it, has been
    imported already, its log is set instead of the environment variable.

    Example:

    >>> prepare()
    >>> os.environ["TF_CPP_MIN_LOG_LEVEL"] in "0123"
    True
    """
    if _SETTING in os.environ:
        return
    os.environ[_SETTING] = str(_ERRORS)
    if "tensorflow" in sys.modules:
        # Where it cannot be set, notes are still written, which is harmless.
        with contextlib.suppress(AttributeError, ImportError, OSError):
            _ask_the_log()


def _ask_the_log() -> None:
    """Calls `absl::SetMinLogLevel` within TensorFlow's library.

    It is public in C++, and TensorFlow has no Python function for it. Its name
    contains the release of Abseil, which is in a header beside the library.
    """
    import tensorflow as tf

    header = Path(tf.sysconfig.get_include()) / "absl" / "base" / "options.h"
    found = re.search(
        r"ABSL_OPTION_INLINE_NAMESPACE_NAME (lts_\d+)",
        header.read_text(encoding="utf-8"),
    )
    folder, library = tf.sysconfig.get_link_flags()
    if found is None:
        return
    release = found[1]
    function = ctypes.CDLL(
        str(Path(folder.removeprefix("-L")) / library.removeprefix("-l:"))
    )[
        f"_ZN4absl{len(release)}{release}14SetMinLogLevel"
        "ENS0_18LogSeverityAtLeastE"
    ]
    function.argtypes = [ctypes.c_int]
    function.restype = None
    function(_ERRORS)
