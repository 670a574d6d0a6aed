"""The workers of a process, and calls of their methods."""

import contextlib
import pickle
import traceback
from typing import Any

import cloudpickle

from keras_rl2.workers.worker import Share
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
            Whether it succeeded, and its return value; else the error,
            pickled by `cloudpickle`.
        """
        try:
            if method == "make":
                return True, self._make(index, *arguments)
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
        for worker in self._workers.values():
            # One that fails is not to keep the others from it.
            with contextlib.suppress(Exception):
                worker.close()

    def _make(self, index: int, made: bytes) -> bytes:
        """Makes a worker and returns its description, by cloudpickle."""
        share, maker, seed = pickle.loads(made)
        assert isinstance(share, Share)
        before = self._workers.pop(index, None)
        if before is not None:
            with contextlib.suppress(Exception):
                before.close()
        worker = Worker(share, maker, seed)
        self._workers[index] = worker
        described: bytes = cloudpickle.dumps(worker.describe())
        return described


def packed_error(error: Exception) -> bytes:
    """Returns an error in its form for another process.

    Its traceback, which cannot be sent, becomes a note.

    Args:
        error: Exception. Its notes go with it.

    Returns:
        bytes, for `pickle.loads`.
    """
    lines = traceback.format_tb(error.__traceback__)
    error.add_note("Where it was raised:\n" + "".join(lines).rstrip())
    error.__traceback__ = error.__cause__ = error.__context__ = None
    notes = error.__notes__
    try:
        packed: bytes = cloudpickle.dumps(_Noted(error, notes))
        # Some can be pickled and not be made again.
        pickle.loads(packed)
    except Exception:
        stand_in = RuntimeError(f"{type(error).__name__}: {error}")
        packed = cloudpickle.dumps(_Noted(stand_in, notes))
    return packed


class _Noted:
    """An error that is loaded with its notes, which its `__reduce__` may lack.

    Args:
        error: Exception.
        notes: list of str.
    """

    def __init__(self, error: Exception, notes: list[str]) -> None:
        self._error = error
        self._notes = notes

    def __reduce__(self) -> tuple[Any, ...]:
        return _with_notes, (self._error, self._notes)


def _with_notes(error: Exception, notes: list[str]) -> Exception:
    error.__notes__ = notes
    return error
