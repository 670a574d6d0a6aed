"""The workers of a process, and calls of their methods."""

import contextlib
import pickle
import traceback
from typing import Any

import cloudpickle

from keras_rl2.workers.worker import Worker


class WorkerHost:
    """Holds the workers of one process, and calls their methods.

    One process has one worker, until it takes over that of a process that is
    lost and cannot be replaced.
    """

    def __init__(self) -> None:
        self._workers: dict[int, Worker] = {}

    def call(
        self, index: int, method: str, *arguments: Any
    ) -> tuple[bool, Any]:
        """Calls a method of a worker.

        Args:
            index: int. Which worker.
            method: str. The method's name; `"make"` makes the worker.
            *arguments: Its arguments.

        Returns:
            Whether it succeeded, and its return value; else the error, in the
            form of `packed_error`.
        """
        try:
            if method == "make":
                self._make(index, *arguments)
                return True, None
            return True, getattr(self._workers[index], method)(*arguments)
        except Exception as error:
            worker = self._workers.get(index)
            if worker is not None:
                error.add_note(
                    f"In worker {index}, whose environment 0 is environment "
                    f"{worker.share.first} of all."
                )
            else:
                error.add_note(f"In worker {index}, as it was made.")
            return False, packed_error(error)

    def close(self) -> None:
        """Closes all environments."""
        for index in [*self._workers]:
            self._close(index)

    def _close(self, index: int) -> None:
        """Closes a worker, if there is one; an error of it is dropped."""
        worker = self._workers.pop(index, None)
        if worker is not None:
            with contextlib.suppress(Exception):
                worker.close()

    def _make(self, index: int, made: bytes) -> None:
        """Makes a worker, in place of one of that index."""
        share, maker, seed = pickle.loads(made)
        self._close(index)
        self._workers[index] = Worker(share, maker, seed)


def packed_error(error: Exception) -> bytes:
    """Returns an error with notes and traceback, for another process."""
    lines = traceback.format_tb(error.__traceback__)
    error.add_note("Where it was raised:\n" + "".join(lines).rstrip())
    error.__traceback__ = error.__cause__ = error.__context__ = None
    notes = error.__notes__
    try:
        packed: bytes = cloudpickle.dumps((error, notes))
        # Some can be pickled and not be made again.
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
