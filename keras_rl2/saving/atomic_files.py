"""Atomic writes of files and folders."""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

try:
    from fcntl import LOCK_EX
    from fcntl import LOCK_NB
    from fcntl import flock
except ImportError:  # On Windows.
    flock = None  # type: ignore[assignment]

_DAY = 86_400.0
_PREFIX = ".unfinished-"
# Suffix of a folder while another one takes its place.
_REPLACED = ".replaced"
# Windows does not flush files that were opened for reading only.
_TO_SYNC = os.O_RDWR if os.name == "nt" else os.O_RDONLY


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path, which replaces another path at the end.

    Until then the old file stays: after a full disk, an exception or a killed
    process only the new file is lost.

    A killed process leaves a folder `.unfinished-...` next to the path. The
    next process that writes there removes it; it can also be removed by hand. A
    folder is replaced by renaming it in two steps: if a process is killed
    between them, the next one restores the folder's name.

    Args:
        path: str or path. A file or a folder, which need not exist. A link is
            replaced, not its target.

    Yields:
        Unused path next to it, with the same extension. The file or folder
        written there becomes `path`; without one, `path` is unchanged.

    Raises:
        OSError: If it cannot be written there, or if a file would replace a
            folder, or a folder a file.

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
    # Files cannot be renamed from one disk to another. The lock tells other
    # processes that the folder is not abandoned.
    beside, lock = _locked_folder(path)
    unfinished, replaced = beside / path.name, beside / (path.name + _REPLACED)
    try:
        yield unfinished
        if os.path.lexists(unfinished):
            _check_kind(unfinished, path)
            _sync(unfinished)
            _rename(unfinished, path, replaced)
            _sync_entry(path.parent)
    finally:
        # An old file that could not be renamed back is the only copy.
        if os.path.lexists(path) or not os.path.lexists(replaced):
            shutil.rmtree(beside, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _sync(path: Path) -> None:
    """Flushes a file, or all files of a folder, to the disk."""
    if path.is_dir():
        for each in path.iterdir():
            _sync(each)
    _sync_entry(path)


def _locked_folder(path: Path) -> tuple[Path, int | None]:
    """Makes a folder next to a path, and locks it."""
    while True:
        try:
            beside = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=path.parent))
        except OSError as error:
            # The user does not know the name of the temporary folder.
            raise type(error)(error.errno, error.strerror, str(path)) from None
        try:
            lock = _lock(beside)
        except (BlockingIOError, FileNotFoundError):
            # Another process removed it as abandoned before it was locked.
            continue
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        if beside.exists():
            return beside, lock
        # Also removed, just before the lock.
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Locks a folder, and returns a descriptor, which must be closed.

    Raises:
        BlockingIOError: If another process has the lock.
    """
    if flock is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        # The disk does not support locks.
        return None
    return descriptor


def _remove_abandoned(parent: Path) -> None:
    """Removes the unfinished files of killed processes in a folder."""
    for beside in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = _lock(beside)
            # Without locks age decides; no write takes a day.
            if lock is None and time.time() < beside.stat().st_mtime + _DAY:
                continue
            try:
                for replaced in beside.glob(f"*{_REPLACED}"):
                    # Possibly killed between the two steps of replacing a
                    # folder: the old one is restored.
                    path = parent / replaced.name.removesuffix(_REPLACED)
                    if not os.path.lexists(path):
                        os.rename(replaced, path)
                shutil.rmtree(beside)
            finally:
                if lock is not None:
                    os.close(lock)


def _check_kind(unfinished: Path, path: Path) -> None:
    """Raises an error if a file would replace a folder, or the reverse."""
    if not os.path.lexists(path) or path.is_symlink():
        return
    if path.is_dir() != unfinished.is_dir():
        code = errno.EISDIR if path.is_dir() else errno.ENOTDIR
        raise OSError(code, os.strerror(code), str(path))


def _rename(unfinished: Path, path: Path, replaced: Path) -> None:
    """Renames the new file or folder, moving the old one out of the way."""
    try:
        if unfinished.is_dir() and os.path.lexists(path):
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
