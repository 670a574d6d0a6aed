"""The process of a local worker, which receives requests and answers them."""

import contextlib
import os
import pickle
import shutil
import signal
import threading
from multiprocessing.connection import Client
from typing import Any
from typing import NamedTuple

from keras_rl2.workers.shared_memory import Message
from keras_rl2.workers.shared_memory import SharedMemoryReceiver
from keras_rl2.workers.shared_memory import SharedMemorySender
from keras_rl2.workers.worker_host import WorkerHost
from keras_rl2.workers.worker_host import packed_error

_STDIN = 0


class Beginning(NamedTuple):
    """The first message to a process, over its standard input.

    Attributes:
        number: int. Number of the process.
        address: Address to connect to.
        key: bytes. Authentication key of the connection.
        folder: str. Folder of the shared memory.
        name: str. Prefix for names of its own blocks.
    """

    number: int
    address: Any
    key: bytes
    folder: str
    name: str


class Request(NamedTuple):
    """A call that a process is asked for.

    Attributes:
        worker: int. Index of the worker.
        method: str. Name of the method.
        arguments: `Message`. A tuple of arguments.
        shared: tuple of `Message`. Arguments that precede those.
        released: tuple of `Message`. Answers that have been read.
    """

    worker: int
    method: str
    arguments: Message
    shared: tuple[Message, ...]
    released: tuple[Message, ...]


def main() -> None:
    """Answers requests until the connection is closed."""
    # Without a buffer, which would be locked as this process ends.
    with open(_STDIN, "rb", buffering=0, closefd=False) as told:
        begin: Beginning = pickle.load(told)
    threading.Thread(
        target=_end_with_the_other, args=(begin.folder,), daemon=True
    ).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    host = WorkerHost()
    sender = SharedMemorySender(begin.folder, begin.name)
    receiver = SharedMemoryReceiver()
    with (
        # Raised when the connection is closed on the other side.
        contextlib.suppress(EOFError, OSError),
        Client(begin.address, authkey=begin.key) as connection,
    ):
        connection.send(begin.number)
        while (request := connection.recv()) is not None:
            for message in request.released:
                sender.release(message)
            shared = map(receiver.unpack, request.shared)
            own = receiver.unpack(request.arguments)
            answer = host.call(request.worker, request.method, *shared, *own)
            try:
                packed = sender.pack(answer)
            except Exception as error:
                # The answer cannot be pickled, or there is no memory for it.
                packed = sender.pack((False, packed_error(error)))
            connection.send(packed)
    host.close()


def _end_with_the_other(folder: str) -> None:
    """Ends this process as soon as the one that started it is gone."""
    while os.read(_STDIN, 1):
        pass
    # Again, where this process was just writing something into it.
    for _ in range(10):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
