"""Worker processes of this machine."""

import contextlib
import os
import pickle
import signal
import subprocess
import time
import weakref
from collections.abc import Iterator
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.connection import wait
from typing import Any

from keras_rl2.saving import fresh_python
from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport

# A healthy environment may write files as it closes.
_SECONDS_TO_CLOSE = 5.0
_MODULE = "keras_rl2.workers.local_process"


class LocalLink(Link):
    """A process of this machine, with a pipe to it.

    It ends itself as soon as this process is gone.
    """

    def __init__(self) -> None:
        self.connection: Connection[Any, Any]
        self.connection, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            self.process = subprocess.Popen(
                [*fresh_python.command(_MODULE), str(handle)],
                # Never written to: its end tells that this process is gone.
                stdin=subprocess.PIPE,
                env=fresh_python.environ(),
                **_settings(handle),
            )

    def send(self, index: int, method: str, arguments: Sequence[Any]) -> None:
        """Asks for a call; see `Link`."""
        packed = pickle.dumps((index, method, arguments))
        with _losses():
            self.connection.send_bytes(packed)

    def receive(self) -> tuple[bool, Any]:
        """Returns the answer; see `Link`."""
        with _losses():
            packed = self.connection.recv_bytes()
        answer: tuple[bool, Any] = pickle.loads(packed)
        return answer

    def kill(self) -> None:
        """Kills the process, and those that its environments started."""
        self.connection.close()
        process = self.process
        if process.returncode is None:
            # `wait` was not called yet: until then, its number is not reused.
            if os.name == "posix":
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        assert process.stdin is not None
        process.stdin.close()


class LocalTransport(Transport):
    """Runs a fresh Python for each worker."""

    def __init__(self) -> None:
        self._links: list[LocalLink] = []
        self._end = weakref.finalize(self, _end, self._links, os.getpid())

    def start(self, count: int, seconds: float) -> list[Link]:
        """Starts processes; see `Transport`."""
        until = time.monotonic() + seconds
        links = []
        try:
            for _ in range(count):
                links.append(LocalLink())
            waiting: list[Link] = [*links]
            while waiting:
                ready = self.wait(waiting, max(until - time.monotonic(), 0.0))
                if not ready:
                    raise LinkLostError(
                        f"a process did not start within {seconds:.0f} s"
                    )
                for link in ready:
                    _welcome(link)
                    waiting.remove(link)
        except BaseException:
            for each in links:
                each.kill()
            raise
        self._links += links
        return [*links]

    def wait(self, links: Sequence[Link], seconds: float | None) -> list[Link]:
        """Waits for answers; see `Transport`."""
        waiting = {
            link.connection: link
            for link in links
            if isinstance(link, LocalLink)
        }
        gone = [link for each, link in waiting.items() if each.closed]
        if gone:
            return [*gone]
        ready = wait(list(waiting), seconds)
        return [link for each, link in waiting.items() if each in ready]

    def close(self) -> None:
        """Ends all processes; see `Transport`."""
        for link in self._links:
            link.connection.close()
        until = time.monotonic() + _SECONDS_TO_CLOSE
        for link in self._links:
            with contextlib.suppress(subprocess.TimeoutExpired):
                link.process.wait(max(until - time.monotonic(), 0.0))
        self._end()


def _welcome(link: Link) -> None:
    """Receives the first message of a process, which has started."""
    assert isinstance(link, LocalLink)
    try:
        link.connection.recv_bytes()
    except (EOFError, OSError) as error:
        code = link.process.wait()
        raise LinkLostError(
            f"a process ended with exit code {code} as it started"
        ) from error


@contextlib.contextmanager
def _losses() -> Iterator[None]:
    """Turns errors of a broken connection into `LinkLostError`."""
    try:
        yield
    except (EOFError, OSError) as error:
        raise LinkLostError(str(error)) from error


def _settings(handle: int) -> dict[str, Any]:
    """Returns arguments of a process that has a handle, and gets no Ctrl-C."""
    if os.name == "posix":
        return {"pass_fds": [handle], "process_group": 0}
    # Windows; of its names none is defined elsewhere.
    os.set_handle_inheritable(handle, True)  # type: ignore[attr-defined]
    started: Any = subprocess.STARTUPINFO()  # type: ignore[attr-defined]
    started.lpAttributeList = {"handle_list": [handle]}
    group = subprocess.CREATE_NEW_PROCESS_GROUP  # type: ignore[attr-defined]
    return {"startupinfo": started, "creationflags": group}


def _end(links: list[LocalLink], owner: int) -> None:
    """Kills processes, unless in a forked copy of the process that has them."""
    if os.getpid() == owner:
        for link in links:
            link.kill()
