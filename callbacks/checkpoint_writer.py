"""Writing checkpoints beside training, and reporting failures."""

import contextlib
import os
import threading
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_rl2.callbacks.run import RunEnd
from keras_rl2.files import plain_data
from keras_rl2.files.checkpoint_folder import CheckpointFolder
from keras_rl2.files.checkpoint_folder import Saved
from keras_rl2.files.segment_log import SegmentLog
from keras_rl2.files.writer_lock import WriterLock

# Failing for that long ends a run, which could not be resumed.
_ENOUGH_SECONDS = 3600.0


class CheckpointWriter:
    """The exclusive writer of checkpoints to a folder.

    Args:
        directory: str or path. The folder.
        keep: int. Number of checkpoints to keep.
        after_save: Callable or None. Called with the path of each checkpoint,
            in the thread that has written it.
        clock: Callable. Returns the time in seconds.

    Attributes:
        log: `SegmentLog`. The log of the last checkpoint.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        keep: int,
        after_save: Callable[[Path], object] | None,
        clock: Callable[[], float],
    ) -> None:
        self._folder = CheckpointFolder(directory, keep)
        self._after_save = after_save
        self._clock = clock
        self._lock = WriterLock(directory)
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._failing_since: float | None = None
        self._not_passed_on: str | None = None
        self.log: SegmentLog = self._folder.new_log()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Locks out other writers, and waits for unfinished writing.

        Raises:
            ValueError: If another process writes to the folder.
            OSError: If the folder cannot be written to.
        """
        with self._lock:
            try:
                yield
            finally:
                self._join()

    def newest(self) -> Saved | None:
        """Reads the newest checkpoint; see `CheckpointFolder.newest`."""
        return self._folder.newest()

    @property
    def newest_path(self) -> Path | None:
        """The folder of the newest checkpoint."""
        paths = self._folder.paths()
        return paths[-1] if paths else None

    def write(self, state: object, end: RunEnd | None = None) -> None:
        """Writes a checkpoint.

        Args:
            state: Tree of plain data, with rows in `log`; read after `wait`.
            end: `RunEnd` or None. The reason why it is the last one; None if
                it is not. Defaults to `None`.

        Raises:
            OSError: If it cannot be written.
        """
        with contextlib.nullcontext() if self._lock.is_held else self._lock:
            self._write(*plain_data.to_json(state), end)
        self.report()

    def write_beside(self, state: object, end: RunEnd | None = None) -> None:
        """Starts writing a copy of a state, and returns.

        Args:
            state: Tree of plain data; see `write`.
            end: `RunEnd` or None. See `write`. Defaults to `None`.
        """
        taken, arrays = plain_data.to_json(state)
        # Training changes the arrays; rows of the log are copies already.
        arrays = {name: array.copy() for name, array in arrays.items()}

        def write() -> None:
            try:
                self._write(taken, arrays, end)
            except Exception as error:
                # Raised by `report`, in the main thread.
                self._error = error

        self._join()
        self._thread = threading.Thread(target=write, name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Waits for unfinished writing, and reports its errors."""
        self._join()
        self.report()

    def report(self) -> None:
        """Reports errors of the thread that writes.

        Raises:
            OSError: If nothing could be written for an hour.
            ValueError: If another process has taken over the folder.
        """
        if self._not_passed_on is not None:
            text, self._not_passed_on = self._not_passed_on, None
            warnings.warn(text, stacklevel=2)
        error, self._error = self._error, None
        if error is None:
            return
        if not isinstance(error, OSError):
            raise error
        self.warn(error)
        since = self._failing_since
        if since is not None and self._clock() - since >= _ENOUGH_SECONDS:
            raise OSError(
                "Expected a checkpoint to be written within an hour: make "
                f"room in {self._folder.directory}, or give another folder. "
                f"Received: {error}"
            ) from error

    def warn(self, error: OSError) -> None:
        """Warns that a checkpoint could not be written.

        Args:
            error: OSError. The reason.
        """
        if self._failing_since is None:
            self._failing_since = self._clock()
        warnings.warn(
            "No checkpoint could be written, and training goes on: "
            f"{error}. The newest one: {self.newest_path or 'There is none'}",
            stacklevel=2,
        )

    def end_by(self, error: Exception) -> None:
        """Ends a failed `fit`, and adds a note on the newest checkpoint.

        Args:
            error: Exception. The note is added to it.
        """
        self._join()
        if self._error is not None:
            error.add_note(f"No checkpoint could be written: {self._error}")
            self._error = None
        if (newest := self.newest_path) is None:
            return
        # Its weights are finite, whether or not the present ones are.
        error.add_note(
            f"The newest checkpoint is {newest}: the same program, run again, "
            "goes on from there."
        )
        with contextlib.suppress(OSError, ValueError):
            self._lock.check()
            self._folder.note_end(RunEnd.of_error(error).to_json())

    def _join(self) -> None:
        """Waits for the thread that writes."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _write(
        self, taken: Any, arrays: Mapping[str, Any], end: RunEnd | None
    ) -> None:
        """Writes a state, and calls `after_save`."""
        self._lock.check()
        ended = None if end is None else end.to_json()
        path = self._folder.write_parts(taken, arrays, self.log, ended)
        self._failing_since = None
        if self._after_save is None:
            return
        try:
            self._after_save(path)
        except Exception as error:
            self._not_passed_on = (
                f"`after_save` failed for {path}, and training goes on: "
                f"{type(error).__name__}: {error}"
            )
