"""TensorFlow with fewer notes, by its own settings and nothing else.

`TF_CPP_MIN_LOG_LEVEL` is TensorFlow's setting for what its library writes: 1
leaves out what is for information only, 2 warnings too, 3 errors too. It is
looked at once, as TensorFlow is imported, and after its first lines are out.
Stderr is never turned aside for the rest: a crash would take its message along.
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
    """Asks TensorFlow for errors only, unless the user has asked for more.

    The converter to LiteRT warns of two fields that it passes over each time,
    which a user can do nothing about. Where Keras, and TensorFlow with it, has
    been imported already, its log is asked instead of the environment.

    Example:

    >>> prepare()
    >>> os.environ["TF_CPP_MIN_LOG_LEVEL"] in "0123"
    True
    """
    if _SETTING in os.environ:
        return
    os.environ[_SETTING] = str(_ERRORS)
    if "tensorflow" in sys.modules:
        # What cannot be asked goes on writing notes, which is no harm.
        with contextlib.suppress(AttributeError, ImportError, OSError):
            _ask_the_log()


def _ask_the_log() -> None:
    """Calls `absl::SetMinLogLevel` within TensorFlow's library.

    It is public in C++, and TensorFlow has no Python for it. Its name has the
    release of Abseil in it, which stands in a header beside the library.
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
