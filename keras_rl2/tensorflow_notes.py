"""TensorFlow with fewer notes, by its own setting and nothing else.

`TF_CPP_MIN_LOG_LEVEL` is TensorFlow's setting for what its library writes: 1
leaves out what is for information only, 2 warnings too, 3 errors too. It is
looked at once, as TensorFlow is imported, and after its first lines are out.
Stderr is never turned aside for the rest: a crash would take its message along.
"""

import os


def prepare() -> None:
    """Asks TensorFlow for errors only, unless the user has asked for more.

    The converter to LiteRT warns of two fields that it passes over each time,
    which a user can do nothing about. It is too late for this where TensorFlow
    has been imported already.

    Example:

    >>> prepare()
    >>> os.environ["TF_CPP_MIN_LOG_LEVEL"] in "0123"
    True
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
