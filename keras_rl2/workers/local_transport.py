"""Worker processes of this machine."""

import contextlib
import os
import pickle
import queue
import secrets
import shutil
import signal
import subprocess
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from multiprocessing.connection import Connection
from multiprocessing.connection import Listener
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from keras_rl2.files import fresh_python
from keras_rl2.workers.local_process import Beginning
from keras_rl2.workers.local_process import Request
from keras_rl2.workers.shared_memory import Message
from keras_rl2.workers.shared_memory import SharedMemoryReceiver
from keras_rl2.workers.shared_memory import SharedMemorySender
from keras_rl2.workers.shared_memory import shared_folder
from keras_rl2.workers.transport import Answer
from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport

# A healthy environment may write files as it closes.
_SECONDS_TO_CLOSE = 5.0

# Sent in place of a process's number: no more connections will come.
_NOBODY = -1

# Runs `local_process`.
_MODULE = "keras_rl2.workers"

Process = subprocess.Popen[bytes]


class LocalLink(Link):
    """A process of this machine, and the memory that is shared with it.

    Args:
        process: Process that runs `local_process`.
        connection: Connection to it.
        sender: `SharedMemorySender` for all messages from here.
        folder: str. Folder of the process's own blocks of memory.
        name: str. Prefix of their names.
    """

    def __init__(
        self,
        process: Process,
        connection: "Connection[Any, Any]",
        sender: SharedMemorySender,
        folder: str,
        name: str,
    ) -> None:
        self.process = process
        self.connection = connection
        self._sender = sender
        self._folder = folder
        self._name = name
        self._receiver = SharedMemoryReceiver()
        # Requests that have not been answered.
        self._asked: deque[Message] = deque()
        # Answers that have been read.
        self._released: list[Message] = []

    def send(self, index: int, method: str, arguments: Sequence[Any]) -> None:
        """Asks for a call; see `Link`."""
        shared = tuple(each for each in arguments if isinstance(each, Message))
        own = tuple(each for each in arguments if not isinstance(each, Message))
        packed = self._sender.pack(own)
        self._asked.append(packed)
        released, self._released = tuple(self._released), []
        with _losses():
            self.connection.send(
                Request(index, method, packed, shared, released)
            )

    def receive(self) -> Answer:
        """Returns the next answer; see `Link`."""
        with _losses():
            message: Message = self.connection.recv()
        well, value = self._receiver.unpack(message)
        self._sender.release(self._asked.popleft())
        return Answer(well, value, message)

    def release(self, token: Message) -> None:
        """Frees an answer."""
        self._released.append(token)

    def kill(self) -> None:
        """Ends the process at once."""
        _kill(self.process)
        self.connection.close()
        # No process reads its requests any more.
        while self._asked:
            self._sender.release(self._asked.popleft())
        # Answers that are still used stay until they are not.
        self._receiver.close()
        for block in Path(self._folder).glob(f"{self._name}-*"):
            with contextlib.suppress(OSError):
                block.unlink()

    def close(self) -> None:
        """Asks the process to close its environments and to end."""
        with contextlib.suppress(OSError):
            self.connection.send(None)


class LocalTransport(Transport):
    """Runs a fresh Python for each worker, and shares memory with it.

    Each ends itself as soon as this process is gone.
    """

    def __init__(self) -> None:
        self._folder = shared_folder()
        self._key = secrets.token_bytes(32)
        self._sender = SharedMemorySender(self._folder, "to-workers")
        self._links: list[LocalLink] = []
        self._processes: list[Process] = []
        self._end = weakref.finalize(
            self,
            _end,
            self._processes,
            self._sender,
            self._folder,
            os.getpid(),
        )

    def start(self, count: int, seconds: float) -> list[Link]:
        """Starts processes; see `Transport`."""
        before = len(self._processes)
        try:
            with Listener(backlog=count, authkey=self._key) as listener:
                started = [self._launch(listener.address) for _ in range(count)]
                connections = _accepted(listener, started, seconds, self._key)
        except BaseException:
            for process in self._processes[before:]:
                _kill(process)
            raise
        links = [
            LocalLink(
                process,
                connections[number],
                self._sender,
                self._folder,
                _name_of(number),
            )
            for number, process in started
        ]
        left = [each for each in self._links if not each.connection.closed]
        self._links = left + links
        return [*links]

    def share(self, value: object) -> Message:
        """Writes something where all processes can read it."""
        return self._sender.pack(value)

    def forget(self, shared: Message) -> None:
        """Lets the memory be written to again."""
        self._sender.release(shared)

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
        """Ends all processes, and removes the memory."""
        for link in self._links:
            if not link.connection.closed:
                link.close()
        until = time.monotonic() + _SECONDS_TO_CLOSE
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(until - time.monotonic(), 0.0))
        for link in self._links:
            link.kill()
        self._end()

    def _launch(self, address: str | tuple[str, int]) -> tuple[int, Process]:
        """Starts a process, which connects itself to an address."""
        number = len(self._processes)
        begin = Beginning(
            number, address, self._key, self._folder, _name_of(number)
        )
        process = subprocess.Popen(
            fresh_python.command(_MODULE),
            stdin=subprocess.PIPE,
            env=fresh_python.environ(),
            **_group_of_its_own(),
        )
        self._processes.append(process)
        with contextlib.suppress(OSError):
            # Not closed: its end tells the process that this one is gone.
            assert process.stdin is not None
            process.stdin.write(pickle.dumps(begin))
            process.stdin.flush()
        return number, process


def _name_of(number: int) -> str:
    """Returns the prefix for names of a process's blocks."""
    return f"from-{number}"


@contextlib.contextmanager
def _losses() -> Iterator[None]:
    """Turns errors of a broken connection into `LinkLostError`."""
    try:
        yield
    except (EOFError, OSError) as error:
        raise LinkLostError(str(error)) from error


def _accepted(
    listener: Listener,
    started: list[tuple[int, Process]],
    seconds: float,
    key: bytes,
) -> "dict[int, Connection[Any, Any]]":
    """Returns the connections of processes, by their numbers.

    `accept` has no timeout, so a thread waits; a connection of our own ends it.
    """
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def accept() -> None:
        while True:
            # Suppressed: errors of a process that dies as it connects, or of
            # a foreign one.
            with contextlib.suppress(EOFError, OSError, AuthenticationError):
                connection = listener.accept()
                number = connection.recv()
                if number == _NOBODY:
                    connection.close()
                    return
                arrived.put((number, connection))

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        return _arrived(arrived, started, seconds)
    finally:
        with contextlib.suppress(EOFError, OSError):
            with Client(listener.address, authkey=key) as connection:
                connection.send(_NOBODY)
            thread.join()


def _arrived(
    arrived: "queue.SimpleQueue[Any]",
    started: list[tuple[int, Process]],
    seconds: float,
) -> "dict[int, Connection[Any, Any]]":
    """Waits until all processes have connected themselves."""
    until = time.monotonic() + seconds
    connections: dict[int, Connection[Any, Any]] = {}
    while len(connections) < len(started):
        with contextlib.suppress(queue.Empty):
            number, connection = arrived.get(timeout=0.05)
            connections[number] = connection
            continue
        died = [
            process.returncode
            for number, process in started
            if number not in connections and process.poll() is not None
        ]
        if died or time.monotonic() > until:
            for _, process in started:
                _kill(process)
            raise LinkLostError(
                f"a process ended with exit code {died[0]} as it started"
                if died
                else f"a process did not start within {seconds:.0f} s"
            )
    return connections


def _group_of_its_own() -> dict[str, Any]:
    """Returns the arguments that keep Ctrl-C from the started process."""
    if os.name == "posix":
        return {"process_group": 0}
    # Defined on Windows only.
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP")}  # noqa: B009


def _kill(process: Process) -> None:
    """Kills a process, and the processes that its environments started."""
    if process.returncode is None:
        # `wait` was not called yet: until then, its number is not reused.
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _end(
    processes: list[Process],
    sender: SharedMemorySender,
    folder: str,
    owner: int,
) -> None:
    """Kills processes, and removes their memory."""
    if os.getpid() != owner:
        # A copy of the process that owns them was forked, and ends.
        return
    for process in processes:
        _kill(process)
    sender.close()
    shutil.rmtree(folder, ignore_errors=True)
