"""Writes checkpoints beside training, and says where that fails."""

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

# Of failures, after which a run that goes on would be a run for nothing.
_ENOUGH_SECONDS = 3600.0


class CheckpointWriter:
    """The only one that writes checkpoints to a folder.

    Args:
        directory: str or path. The folder.
        keep: int. Checkpoints that are kept.
        after_save: Callable or None. Is given the path of each checkpoint by
            whoever has written it.
        clock: Callable. Returns the time in seconds.

    Attributes:
        log: `SegmentLog`. Of the checkpoint that was written or read last.
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
        """Keeps other writers out, and leaves nothing under way behind.

        Raises:
            ValueError: If another process writes there.
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

    def write(self, state: Any, end: RunEnd | None = None) -> None:
        """Writes a checkpoint.

        Args:
            state: Tree of plain data, with rows in `log`; taken after `wait`.
            end: `RunEnd` or None. Why it is the last one. Defaults to `None`.

        Raises:
            OSError: If it cannot be written.
        """
        with contextlib.nullcontext() if self._lock.is_held else self._lock:
            self._write(*plain_data.to_json(state), end)
        self.report()

    def write_beside(self, state: Any, end: RunEnd | None = None) -> None:
        """Begins to write a copy of a state, and returns.

        Args:
            state: Tree of plain data, as of `write`.
            end: `RunEnd` or None. As of `write`. Defaults to `None`.
        """
        taken, arrays = plain_data.to_json(state)
        # Training changes them; rows of the log are copies already.
        arrays = {name: array.copy() for name, array in arrays.items()}

        def write() -> None:
            try:
                self._write(taken, arrays, end)
            except Exception as error:
                # For `report`: nobody waits in this thread.
                self._error = error

        self._join()
        self._thread = threading.Thread(target=write, name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Waits for what is being written, and reports what went wrong."""
        self._join()
        self.report()

    def report(self) -> None:
        """Says what has gone wrong since, beside training.

        Raises:
            OSError: If nothing could be written for an hour.
            ValueError: If another process has taken the folder over.
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
        """Says that a checkpoint could not be written.

        Args:
            error: OSError. Why.
        """
        if self._failing_since is None:
            self._failing_since = self._clock()
        warnings.warn(
            "No checkpoint could be written, and training goes on: "
            f"{error}. The newest one: {self.newest_path or 'There is none'}",
            stacklevel=2,
        )

    def end_by(self, error: Exception) -> None:
        """Ends a `fit` that raised something, and names what there is.

        Args:
            error: Exception. Gets a note.
        """
        self._join()
        if self._error is not None:
            error.add_note(f"No checkpoint could be written: {self._error}")
            self._error = None
        if (newest := self.newest_path) is None:
            return
        # Its weights are finite, whatever they are by now.
        error.add_note(
            f"The newest checkpoint is {newest}: the same program, run again, "
            "goes on from there."
        )
        with contextlib.suppress(OSError, ValueError):
            self._lock.check()
            self._folder.note_end(RunEnd.of_error(error).to_json())

    def _join(self) -> None:
        """Waits for what is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _write(
        self, taken: Any, arrays: Mapping[str, Any], end: RunEnd | None
    ) -> None:
        """Writes what has been taken apart, and passes it on."""
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
