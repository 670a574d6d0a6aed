"""Atomic writes of files and folders, and reading of JSON."""

import contextlib
import errno
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Beginning of the names of folders for unfinished files.
PREFIX = ".unfinished-"
_DAY = 86_400.0
# Suffix of a folder while another one takes its place.
_REPLACED = ".replaced"
# Windows does not flush files that were opened for reading only.
_TO_SYNC = os.O_RDWR if os.name == "nt" else os.O_RDONLY


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path, which replaces another path at the end.

    Until then the old file stays: after a full disk, an exception or a killed
    process only the new file is lost.

    A killed process leaves a folder `.unfinished-...` next to the path. It can
    be removed; the first process that writes there a day later removes it. A
    folder is replaced by renaming it in two steps: if a process is killed
    between them, the old folder is in there, as `NAME.replaced`.

    Yields:
        Unused path next to it, with the same extension. The file or folder
        written there becomes `path`; without one, `path` is unchanged.

    Example:

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "numbers.txt") as unfinished:
    ...     _ = unfinished.write_text("1 2 3")
    >>> [each.name for each in folder.iterdir()]
    ['numbers.txt']
    """
    path = Path(os.path.abspath(path))
    _remove_abandoned(path.parent)
    try:
        # Files cannot be renamed from one disk to another.
        beside = Path(tempfile.mkdtemp(prefix=PREFIX, dir=path.parent))
    except OSError as error:
        # The user does not know the name of the temporary folder.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    unfinished, replaced = beside / path.name, beside / (path.name + _REPLACED)
    try:
        yield unfinished
        if os.path.lexists(unfinished):
            _sync(unfinished)
            _rename(unfinished, path, replaced)
            _sync_entry(path.parent)
    finally:
        # An old folder that could not be renamed back is the only copy.
        if os.path.lexists(path) or not os.path.lexists(replaced):
            shutil.rmtree(beside, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    """Removes files that killed processes left, but no folder's only copy."""
    for beside in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            is_old = time.time() > beside.stat().st_mtime + _DAY
            if is_old and not any(beside.glob(f"*{_REPLACED}")):
                shutil.rmtree(beside)


def _rename(unfinished: Path, path: Path, replaced: Path) -> None:
    """Renames the new file or folder, moving an old folder out of the way."""
    try:
        if unfinished.is_dir() and path.is_dir():
            # Only a file can be replaced in one step.
            os.rename(path, replaced)
        elif path.is_file():
            # The permissions of the old file are kept.
            os.chmod(unfinished, stat.S_IMODE(path.stat().st_mode))
        os.replace(unfinished, path)
    except BaseException:
        if os.path.lexists(replaced):
            os.rename(replaced, path)
        raise


def _sync(path: Path) -> None:
    """Flushes a file, or all files of a folder, to the disk."""
    if path.is_dir():
        for each in path.iterdir():
            _sync(each)
    _sync_entry(path)


def _sync_entry(path: Path) -> None:
    """Flushes one file, or the names in one folder, to the disk."""
    try:
        descriptor = os.open(path, _TO_SYNC)
    except PermissionError:
        # Windows cannot open folders, and has written their names by then.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Network disks may only support flushing files.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def read_json(path: str | os.PathLike[str]) -> Any:
    """Reads a file of JSON."""
    return parse_json(Path(path).read_bytes(), str(path))


def parse_json(content: bytes | str, name: str) -> Any:
    """Parses JSON; an error names its origin."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: not JSON: {error}") from error
