"""Files and folders that are never seen half written."""

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
except ImportError:  # Of Windows.
    flock = None  # type: ignore[assignment]

_DAY = 86_400.0
_PREFIX = ".unfinished-"
# Suffix of a folder while another one takes its place.
_REPLACED = ".replaced"
# Windows waits for nothing that was opened for reading only.
_TO_SYNC = os.O_RDWR if os.name == "nt" else os.O_RDONLY


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a path to write to, which replaces another in the end.

    Until then the old file stays: a full disk, an exception or a killed
    process cost nothing but the new file.

    A process that is killed leaves a folder `.unfinished-...` beside the path.
    The next one that writes beside it removes that; it can be removed by hand
    as well. A folder is replaced in two steps, of renaming: of a process that
    is killed between them the next one restores the folder's name.

    Args:
        path: str or path. A file or a folder, which need not exist. A link is
            replaced, not its target.

    Yields:
        Path beside it, with its ending, where nothing exists yet. The file or
        folder that is written there becomes `path`; nothing happens where
        none is written.

    Raises:
        OSError: If it cannot be written there; if a file was to take the place
            of a folder, or a folder that of a file.

    Example:

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "numbers.txt") as unfinished:
    ...     _ = unfinished.write_text("1 2 3")
    >>> [each.name for each in folder.iterdir()]
    ['numbers.txt']
    """
    path = Path(os.path.abspath(path))
    with _folder_beside(path) as beside:
        unfinished = beside / path.name
        yield unfinished
        if os.path.lexists(unfinished):
            _check_kind(unfinished, path)
            sync(unfinished)
            _rename(unfinished, path, beside / f"{path.name}{_REPLACED}")
            _sync_entry(path.parent)


def sync(path: Path) -> None:
    """Waits until a file, or all files of a folder, are on the disk.

    Args:
        path: Path. A file or a folder.
    """
    if path.is_dir():
        for each in path.iterdir():
            sync(each)
    _sync_entry(path)


@contextlib.contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """Makes a folder beside a path, for as long as it is needed.

    Nothing is renamed from one disk to another, therefore beside it. While a
    process lives it holds a lock on its folder: an unlocked folder is
    abandoned.
    """
    _remove_abandoned(path.parent)
    beside, lock = _locked_folder(path)
    try:
        yield beside
    finally:
        # An old file that could not be renamed back is the only copy.
        replaced = beside / f"{path.name}{_REPLACED}"
        if os.path.lexists(path) or not os.path.lexists(replaced):
            shutil.rmtree(beside, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked_folder(path: Path) -> tuple[Path, int | None]:
    """Makes a folder beside a path, and locks it before it can be removed."""
    while True:
        try:
            beside = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=path.parent))
        except OSError as error:
            # The name of the temporary folder would mean nothing to the user.
            raise type(error)(error.errno, error.strerror, str(path)) from None
        try:
            lock = _lock(beside)
        except (BlockingIOError, FileNotFoundError):
            # Taken for an abandoned one, before it was locked.
            continue
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        if beside.exists():
            return beside, lock
        # The same, but just before.
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
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError) or not isinstance(error, OSError):
            raise
        # The disk knows no locks.
        return None
    return descriptor


def _remove_abandoned(parent: Path) -> None:
    """Removes the unfinished files of killed processes in a folder."""
    for beside in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = _lock(beside)
            # Without locks age decides; a day is longer than any writing.
            if lock is None and time.time() < beside.stat().st_mtime + _DAY:
                continue
            try:
                _remove(beside)
            finally:
                if lock is not None:
                    os.close(lock)


def _remove(beside: Path) -> None:
    """Removes the unfinished files of one killed process."""
    for replaced in beside.glob(f"*{_REPLACED}"):
        # Killed between the two steps, perhaps: the old one goes back.
        path = beside.parent / replaced.name.removesuffix(_REPLACED)
        if not os.path.lexists(path):
            os.rename(replaced, path)
    shutil.rmtree(beside)


def _check_kind(unfinished: Path, path: Path) -> None:
    """Raises an error where a file would replace a folder, or the reverse."""
    if not os.path.lexists(path) or path.is_symlink():
        return
    if path.is_dir() and not unfinished.is_dir():
        code = errno.EISDIR
    elif unfinished.is_dir() and not path.is_dir():
        code = errno.ENOTDIR
    else:
        return
    raise OSError(code, os.strerror(code), str(path))


def _rename(unfinished: Path, path: Path, replaced: Path) -> None:
    """Renames the new file or folder, moving the old one out of the way."""
    try:
        if unfinished.is_dir() and os.path.lexists(path):
            # Only a file is replaced in one step.
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
    """Waits until one file, or the names in one folder, are on the disk."""
    try:
        descriptor = os.open(path, _TO_SYNC)
    except PermissionError:
        # Windows opens no folders, and has their names written by then.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Of disks of the network, that only files are waited for.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
