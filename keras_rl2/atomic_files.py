"""Files and folders that are never seen half written."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a path to write to, which takes the place of another in the end.

    Until then there is what was there before: a disk that is full, an
    exception or a killed process cost nothing but the new file.

    Args:
        path: str or path. A file or a folder, which need not exist.

    Yields:
        Path beside it, with its ending, where nothing is yet. What is written
        there, a file or a folder, becomes `path`; nothing happens where
        nothing is written.

    Example:

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "numbers.txt") as unfinished:
    ...     _ = unfinished.write_text("1 2 3")
    >>> [each.name for each in folder.iterdir()]
    ['numbers.txt']
    """
    path = Path(path)
    # Beside it, since nothing is renamed from one disk to another.
    beside = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=path.parent))
    try:
        unfinished = beside / path.name
        yield unfinished
        if unfinished.exists():
            sync(unfinished)
            _rename(unfinished, path, beside / "replaced")
            _sync_entry(path.parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def sync(path: Path) -> None:
    """Waits until a file, or all files of a folder, are on the disk.

    Args:
        path: Path. A file or a folder.
    """
    if path.is_dir():
        for each in path.iterdir():
            sync(each)
    _sync_entry(path)


def _rename(unfinished: Path, path: Path, replaced: Path) -> None:
    """Gives what was written its name, taking it from what had it."""
    if path.is_dir() and not path.is_symlink():
        # Only a file, or an empty folder, is replaced in one step.
        os.rename(path, replaced)
    try:
        os.replace(unfinished, path)
    except BaseException:
        if replaced.exists():
            os.rename(replaced, path)
        raise


def _sync_entry(path: Path) -> None:
    """Waits until one file, or the names in one folder, are on the disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        # Windows opens no folders, and has their names written by then.
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
