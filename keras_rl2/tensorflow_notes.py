"""TensorFlow without what it says on each start and each conversion.

`TF_CPP_MIN_LOG_LEVEL` is TensorFlow's own setting for what its library writes:
1 leaves out what is for information only, 2 warnings too, 3 errors too. It is
set to 1 where it is not set. But the library looks at it only after its first
lines are out, and nothing else stops those: while TensorFlow is imported, the
process's stderr is kept aside, and then shown without lines below the level.
"""

import importlib.abc
import os
import re
import sys
import tempfile
import threading
import types
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from typing import BinaryIO

_SETTING = "TF_CPP_MIN_LOG_LEVEL"
_LEVELS = {b"I": 0, b"W": 1, b"E": 2, b"F": 3}
# "I0000 00:00:1795429057.250521    6591 port.cc:153] ...", or with a date.
_ENTRY = re.compile(
    rb"([IWEF])\d{4} [\d:.]+ +\d+ \S+:\d+\] "
    rb"|[\d-]+ [\d:.]+: ([IWEF]) \S+:\d+\] "
)
# What tells nothing in spite of its level, or has none. The error is that of a
# machine without a driver's library; of a driver that fails, its number is
# another.
_NOTES = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\) is called"
    rb"|To enable the following instructions: "
    rb"|.* failed call to cuInit: .*\(303\)"
    rb"|.*\] Ignored (output_format|drop_control_dependency)"
    rb"|INFO: "
)
_NO_DRIVERS = b"Could not find cuda drivers"
# Stderr is the process's: one thread at a time turns it aside and back.
_lock = threading.RLock()


def prepare() -> None:
    """Sees to it that TensorFlow starts quietly when it is imported.

    By whomever: by this package, or by Keras. Nothing happens if it has been
    imported already, or if the `TF_CPP_MIN_LOG_LEVEL` of the user is 0.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault(_SETTING, "1")
    if _level() > 0:
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Stands in line until TensorFlow is imported."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Finds TensorFlow where it is, with a loader of ours."""
        if fullname != "tensorflow":
            return None
        for finder in sys.meta_path:
            if isinstance(finder, _Finder):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Loads TensorFlow as its own loader does, and quietly.

    Args:
        loader: Loader. Its own.
        finder: Finder. Has done its work when TensorFlow is loaded.
    """

    def __init__(self, loader: importlib.abc.Loader, finder: _Finder) -> None:
        self._loader = loader
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        """Leaves it to TensorFlow's own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Imports, then shows what is not below the level."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with left_out() as notes:
            self._loader.exec_module(module)
            if _NO_DRIVERS in _read(notes):
                # Or it says so again, as an error, when first it computes.
                module.config.list_physical_devices("GPU")


@contextmanager
def left_out() -> Iterator[BinaryIO]:
    """Leaves notes out of what is written to stderr within the context.

    What is left is shown at its end; all of it where an exception is raised,
    or where the `TF_CPP_MIN_LOG_LEVEL` of the user is 0.

    Yields:
        Binary file. What has been written so far.
    """
    with _lock, tempfile.TemporaryFile(buffering=0) as notes:
        stderr = _redirect(notes.fileno())
        level = _level()
        try:
            yield notes
        except Exception:
            level = 0
            raise
        finally:
            if stderr is not None:
                os.dup2(stderr, 2)
                os.close(stderr)
                written = _read(notes)
                os.write(2, without_notes(written, level) if level else written)


def _redirect(target: int) -> int | None:
    """Lets stderr go to a file; returns what it was, None without one."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
        stderr = os.dup(2)
    except (OSError, ValueError):
        return None
    os.dup2(target, 2)
    return stderr


def without_notes(written: bytes, level: int) -> bytes:
    r"""Leaves out what TensorFlow says on each start.

    Args:
        written: bytes. What was written to stderr.
        level: int. The lowest level that is shown: 1 for warnings, 2 for
            errors.

    Returns:
        bytes. All other lines.

    Example:

    >>> line = b"%s0000 00:00:1795.2  65 port.cc:153] oneDNN is on.\n"
    >>> without_notes(line % b"I" + line % b"E" + b"Mine.\n", 1).decode()
    'E0000 00:00:1795.2  65 port.cc:153] oneDNN is on.\nMine.\n'
    """
    return b"".join(
        line
        for line in written.splitlines(keepends=True)
        if not _NOTES.match(line) and _level_of(line) >= level
    )


def _level_of(line: bytes) -> int:
    """Returns the level of a line; the highest of what is no entry."""
    entry = _ENTRY.match(line)
    return _LEVELS[entry[1] or entry[2]] if entry else max(_LEVELS.values())


def _read(notes: BinaryIO) -> bytes:
    """Returns what has been written so far."""
    notes.seek(0)
    # To its end, where stderr goes on, which shares the position.
    return notes.read()


def _level() -> int:
    """Returns the lowest level that is shown; 0 if the setting is no number."""
    setting = os.environ.get(_SETTING, "")
    return int(setting) if setting.isdecimal() else 0
