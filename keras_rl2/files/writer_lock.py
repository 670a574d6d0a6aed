"""A lock that lets one process at a time write to a folder."""

import contextlib
import errno
import json
import os
import secrets
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from typing import Self

import filelock

from keras_rl2.files.atomic_files import replacing

_LOCK, _LEASE, _HOLDER = "writer.lock", "writer.lease", "writer.json"
# Lifetime of a lease; it is renewed three times as often.
_LEASE_SECONDS = 60.0
_REFUSED = (errno.EACCES, errno.EPERM)
# Errors on a system or disk without locks.
_WITHOUT_LOCKS = (
    *(errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP),
    errno.EINVAL,
)


class WriterLock:
    """A context manager that keeps a second writer out of a folder.

    It uses the system's lock on a file in the folder (by `filelock`), which
    ends with the process. If the system or the disk has no locks, it uses a
    lease: a file that is renewed while its process lives. A lease of a dead
    process on this machine is taken over immediately. A lease of another
    machine expires after a minute without renewal; a second writer waits for
    that.

    Args:
        directory: str or path. The folder, made if needed, and removed again if
            it is still empty at the end.

    Raises:
        ValueError: By `with`, if another writer holds the lock.
        OSError: By `with`, if the folder cannot be written to.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with WriterLock(directory), WriterLock(directory):
    ...     pass
    Traceback (most recent call last):
    ...
    ValueError: Expected one writer at a time to ... Received: a second one, ...
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self._held: filelock.BaseFileLock | None = None
        self._has_made_directory = False

    @property
    def is_held(self) -> bool:
        """Whether the lock is held."""
        return self._held is not None

    def __enter__(self) -> Self:
        self._has_made_directory = not self.directory.is_dir()
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            _probe(self.directory)
            self._held = self._taken()
            self._write_holder()
        except BaseException as error:
            self.__exit__(None, None, None)
            if isinstance(error, filelock.Timeout):
                raise self._second() from error
            if not isinstance(error, OSError):
                raise
            raise type(error)(
                error.errno,
                "Expected a folder that can be written to. Received: "
                f"{error.strerror or error}",
                str(self.directory),
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        held, self._held = self._held, None
        if held is not None:
            with contextlib.suppress(OSError):
                if not _is_lost(held):
                    (self.directory / _HOLDER).unlink(missing_ok=True)
                    if isinstance(held, filelock.FileLock):
                        # While it is locked, so that a waiting process opens
                        # another file. A lease removes its own file.
                        Path(held.lock_file).unlink(missing_ok=True)
            held.release()
        if self._has_made_directory:
            with contextlib.suppress(OSError):
                self.directory.rmdir()

    def check(self) -> None:
        """Raises an error if another process has taken over the lease.

        Raises:
            ValueError: If this process did not renew the lease in time.
        """
        if self._held is not None and _is_lost(self._held):
            raise self._second()

    def _taken(self) -> filelock.BaseFileLock:
        """Takes the lock or, on a disk without locks, the lease."""
        lock: filelock.BaseFileLock = filelock.FileLock(
            self.directory / _LOCK,
            blocking=False,
            # The lock is taken in one thread, and used in the writing one.
            thread_local=False,
            fallback_to_soft=False,
        )
        try:
            lock.acquire()
        except OSError as error:
            if isinstance(error, filelock.Timeout):
                raise
            if error.errno in _REFUSED:
                # A file was written there a moment ago: the lock file belongs
                # to another user.
                raise self._second() from error
            if error.errno not in _WITHOUT_LOCKS:
                raise
            (self.directory / _LOCK).unlink(missing_ok=True)
            lock = filelock.SoftFileLease(
                self.directory / _LEASE,
                lease_duration=_LEASE_SECONDS,
                # A lease that is not renewed within that time is free.
                timeout=1.5 * _LEASE_SECONDS,
                thread_local=False,
            )
            lock.acquire()
        return lock

    def _write_holder(self) -> None:
        """Writes the identity of this process for others."""
        content = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        }
        with replacing(self.directory / _HOLDER) as unfinished:
            unfinished.write_text(json.dumps(content), encoding="utf-8")

    def _second(self) -> ValueError:
        """Returns an error that names the process writing to the folder."""
        holder: Any = None
        with contextlib.suppress(OSError, ValueError):
            holder = json.loads((self.directory / _HOLDER).read_bytes())
        holder = holder if isinstance(holder, dict) else {}
        pid, host, since = (
            holder.get(name, "unknown") for name in ("pid", "host", "since")
        )
        return ValueError(
            f"Expected one writer at a time to {self.directory}: end the "
            "other one, or give this one a directory of its own. Received: a "
            f"second one, beside process {pid} on {host}, which began at "
            f"{since}"
        )


def _is_lost(held: filelock.BaseFileLock) -> bool:
    """Whether another process has taken over a lease."""
    return (
        isinstance(held, filelock.SoftFileLease) and not held.is_lock_held_by_us
    )


def _probe(directory: Path) -> None:
    """Tests writing by an atomic write of a file, which is removed."""
    path = directory / f"probe-{secrets.token_hex(4)}"
    with replacing(path) as unfinished:
        unfinished.write_bytes(bytes(64))
    path.unlink()
