"""A folder that one process writes to at a time."""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from typing import Self

from keras_rl2.atomic_files import replacing

try:
    from fcntl import LOCK_EX
    from fcntl import LOCK_NB
    from fcntl import flock
except ImportError:  # Of Windows.
    flock = None  # type: ignore[assignment]

_LOCK, _LEASE = "writer.lock", "writer.lease"
# Of a lease that nobody has renewed since.
_ABANDONED_AFTER = 300.0
_RENEWED_EVERY = 60.0
# What this process has open, which a child of it is not to keep locked, and
# whose own the leases are.
_descriptors: set[int] = set()
_tokens: set[str] = set()


class WriterLock:
    """Keeps a second writer out of a folder while it is entered.

    The system's own lock (`flock`) on a file in the folder, which ends with
    the process. Where system or disk have none, a lease: a file that says
    who writes, and is renewed each minute; one that was not for five minutes,
    or whose process on this machine is gone, is taken over.

    Args:
        directory: str or path. The folder, made if need be, and removed again
            if nothing else was put into it.

    Raises:
        ValueError: By `with`, if another writer has it.
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
        self._lock = self.directory / _LOCK
        self._lease = self.directory / _LEASE
        self._descriptor: int | None = None
        self._token: str | None = None
        self._is_over = threading.Event()
        self._has_made_directory = False

    @property
    def is_held(self) -> bool:
        """Whether it is entered."""
        return self._descriptor is not None or self._token is not None

    def __enter__(self) -> Self:
        self._has_made_directory = not self.directory.is_dir()
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            _probe(self.directory)
            if not self._take_lock():
                self._take_lease()
        except BaseException as error:
            self.__exit__(None, None, None)
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
        if self._descriptor is not None:
            # While it is locked: nobody else has taken this one.
            with contextlib.suppress(OSError):
                self._lock.unlink()
            _close(self._descriptor)
            self._descriptor = None
        if self._token is not None:
            self._is_over.set()
            if self._holder(self._lease).get("token") == self._token:
                with contextlib.suppress(OSError):
                    self._lease.unlink()
            _tokens.discard(self._token)
            self._token = None
        self._remove_directory()

    def check(self) -> None:
        """Refuses to write where somebody else has taken the lease over.

        Raises:
            ValueError: If so: this process did not renew it in time.
        """
        if self._token is None:
            return
        holder = self._holder(self._lease)
        if holder.get("token") != self._token:
            self._refuse(holder)

    def _take_lock(self) -> bool:
        """Takes the system's lock; False where there is none."""
        if flock is None:
            return False
        while True:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
            _descriptors.add(descriptor)
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                _close(descriptor)
                self._refuse(self._holder(self._lock))
            except OSError:
                # The disk knows no locks.
                _close(descriptor)
                self._lock.unlink(missing_ok=True)
                return False
            if _is_at(descriptor, self._lock):
                break
            # Of a writer that has just gone, with its file.
            _close(descriptor)
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps(_described()).encode())
        return True

    def _take_lease(self) -> None:
        """Takes the lease, and renews it until it is given back."""
        token = secrets.token_hex(8)
        content = json.dumps({**_described(), "token": token}).encode()
        try:
            descriptor = os.open(
                self._lease, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644
            )
        except FileExistsError:
            holder = self._holder(self._lease)
            if not self._is_abandoned(holder):
                self._refuse(holder)
            with replacing(self._lease) as unfinished:
                unfinished.write_bytes(content)
        else:
            with open(descriptor, "wb") as file:
                file.write(content)
        _tokens.add(token)
        self._token = token
        self._is_over = threading.Event()
        threading.Thread(
            target=_renew, args=(self._lease, self._is_over), daemon=True
        ).start()

    def _is_abandoned(self, holder: dict[str, Any]) -> bool:
        """Whether the process that a lease is of is gone."""
        if holder.get("host") == socket.gethostname():
            pid = holder.get("pid")
            if pid == os.getpid():
                return holder.get("token") not in _tokens
            if isinstance(pid, int) and not _lives(pid):
                return True
        # By the clock of the disk, whichever machine wrote it.
        with replacing(self.directory / "now") as unfinished:
            unfinished.touch()
            now = unfinished.stat().st_mtime
            unfinished.unlink()
        return now - self._lease.stat().st_mtime > _ABANDONED_AFTER

    def _holder(self, path: Path) -> dict[str, Any]:
        """Returns what a file says of who writes."""
        try:
            said = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    def _refuse(self, holder: dict[str, Any]) -> None:
        """Says who writes here already."""
        pid, host, since = (
            holder.get(name, "unknown") for name in ("pid", "host", "since")
        )
        raise ValueError(
            f"Expected one writer at a time to {self.directory}: end the "
            "other one, or give this one a directory of its own. Received: a "
            f"second one, beside process {pid} on {host}, which began at "
            f"{since}"
        )

    def _remove_directory(self) -> None:
        """Leaves no empty folder that was not there before."""
        if self._has_made_directory:
            with contextlib.suppress(OSError):
                self.directory.rmdir()


def _described() -> dict[str, Any]:
    """Returns what others are told of this process."""
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }


def _probe(directory: Path) -> None:
    """Writes a file as all others are written, and removes it."""
    path = directory / f"probe-{secrets.token_hex(4)}"
    with replacing(path) as unfinished:
        unfinished.write_bytes(bytes(64))
    path.unlink()


def _renew(path: Path, is_over: threading.Event) -> None:
    """Renews a lease, until it is given back."""
    while not is_over.wait(_RENEWED_EVERY):
        with contextlib.suppress(OSError):
            os.utime(path)


def _lives(pid: int) -> bool:
    """Whether there is a process of a number; True where nobody can say."""
    if os.name == "nt":
        # There the call that asks ends it.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one of a name still."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _close(descriptor: int) -> None:
    """Closes a file, and with it gives back its lock."""
    _descriptors.discard(descriptor)
    os.close(descriptor)


def _forget_in_child() -> None:
    """Has a forked process keep no lock of its parent."""
    while _descriptors:
        os.close(_descriptors.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
