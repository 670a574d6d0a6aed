"""Errors about files of the wrong kind."""

import contextlib
import textwrap
from collections.abc import Iterator

_LONGEST_REASON = 300


@contextlib.contextmanager
def blamed_on(path: str, expected: str) -> Iterator[None]:
    """Turns errors into one line with the file and the expected kind.

    Args:
        path: str. The file.
        expected: str. The expected kind of file.

    Yields:
        None.

    Raises:
        FileNotFoundError: If the file is missing.
        ImportError: If a package is missing.
        ValueError: If anything else is raised within.

    Example:

    >>> with blamed_on("agent.zip", "a saved agent"):
    ...     raise KeyError("data")
    Traceback (most recent call last):
    ...
    ValueError: Expected a saved agent. Received: agent.zip: 'data'
    """
    try:
        yield
    except (FileNotFoundError, ImportError):
        raise
    except Exception as error:
        # The type of the error depends on the fault of the file.
        reason = textwrap.shorten(
            str(error) or type(error).__name__, _LONGEST_REASON
        )
        raise ValueError(
            f"Expected {expected}. Received: {path}: {reason}"
        ) from error
