"""The process of a worker: calls of its methods, and their answers.

Messages are pickled: environments, wrappers and exceptions are the user's own
objects, and both ends are processes of one program. Nothing of it is kept.
"""

import contextlib
import os
import pickle
import signal
import sys
import threading
import traceback
from multiprocessing import connection
from typing import Any

import cloudpickle

from keras_rl2.workers.worker import Worker

_STDIN = 0


class WorkerHost:
    """Holds the worker of a process, and calls its methods."""

    def __init__(self) -> None:
        self._index = -1
        self._worker: Worker | None = None

    def call(self, method: str, *arguments: Any) -> tuple[bool, Any]:
        """Calls a method of the worker."""
        where = ", as it was made"
        try:
            if method == "make":
                self._index, *settings = pickle.loads(*arguments)
                self._worker = Worker(*settings)
                return True, None
            assert self._worker is not None
            first = self._worker.first
            where = f", whose environment 0 is environment {first} of all"
            return True, getattr(self._worker, method)(*arguments)
        except Exception as error:
            error.add_note(f"In worker {self._index}{where}.")
            return False, packed_error(error)

    def close(self) -> None:
        """Closes the environments; an error of theirs is dropped."""
        if self._worker is not None:
            with contextlib.suppress(Exception):
                self._worker.env.close()


def packed_error(error: Exception) -> bytes:
    """Returns an error with notes and traceback, for another process."""
    lines = traceback.format_tb(error.__traceback__)
    error.add_note("Where it was raised:\n" + "".join(lines).rstrip())
    error.__traceback__ = error.__cause__ = error.__context__ = None
    notes = error.__notes__
    try:
        packed: bytes = cloudpickle.dumps((error, notes))
        # Some errors can be pickled, but not be made again.
        pickle.loads(packed)
    except Exception:
        stand_in = RuntimeError(f"{type(error).__name__}: {error}")
        packed = cloudpickle.dumps((stand_in, notes))
    return packed


def unpacked_error(packed: bytes) -> Exception:
    """Returns an error that `packed_error` has packed."""
    error: Exception
    error, error.__notes__ = pickle.loads(packed)
    return error


def main() -> None:
    """Answers calls of another process until the connection is closed.

    Its handle is the last argument of this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    host = WorkerHost()
    kind = "Connection" if os.name == "posix" else "PipeConnection"
    connected: Any = getattr(connection, kind)(int(sys.argv[-1]))
    # They are raised when the other side closes the connection.
    with contextlib.suppress(EOFError, OSError), connected:
        connected.send_bytes(b"")
        while True:
            method, arguments = pickle.loads(connected.recv_bytes())
            answer = host.call(method, *arguments)
            try:
                packed = pickle.dumps(answer)
            except Exception as error:
                packed = pickle.dumps((False, packed_error(error)))
            connected.send_bytes(packed)
    host.close()


def _end_with_the_other() -> None:
    """Ends this process as soon as the one that started it is gone."""
    while os.read(_STDIN, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
