"""Append-only logs of rows, in files that are written once."""

from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from keras_rl2.saving import array_files
from keras_rl2.saving.array_files import Arrays

# Name of a file, and the row at the end of the log when it was written.
Segment = tuple[str, int]


class SegmentLog:
    """Logs of rows by name, each in segments from old to new.

    A replay buffer is too large to be written again and again: each checkpoint
    adds a segment with the new rows, and earlier segments stay.

    Args:
        directory: Path. Where the files are.
        segments: dict of lists of `(file, stop)` by the name of a log: the
            existing segments. Defaults to `None`: none.

    Example:

    >>> import tempfile
    >>> log = SegmentLog(Path(tempfile.mkdtemp()))
    >>> log.append("replay", 2, {"reward": np.ones(2)})
    >>> log.segments = log.write("00000000")
    >>> log.stop("replay"), [len(each["reward"]) for each in log.read("replay")]
    (2, [2])
    """

    def __init__(
        self,
        directory: Path,
        segments: Mapping[str, Iterable[Segment]] | None = None,
    ) -> None:
        self.directory = directory
        self.segments = {
            name: [(file, stop) for file, stop in each]
            for name, each in (segments or {}).items()
        }
        self._pending: dict[str, tuple[int, Arrays]] = {}

    def stop(self, name: str) -> int:
        """Returns the row after the last one of a log; 0 if there is none."""
        segments = self.segments.get(name)
        return segments[-1][1] if segments else 0

    def append(self, name: str, stop: int, arrays: Arrays) -> None:
        """Adds rows, which `write` puts into a file.

        Args:
            name: str. Name of the log.
            stop: int. Row at the end of the log after adding them.
            arrays: dict of arrays or chunks, see `array_files.write`. They are
                held until then, and not copied.
        """
        self._pending[name] = stop, arrays

    def forget(self, name: str, before: int) -> None:
        """Drops segments that only hold rows before a given one, to be kept."""
        if name in self.segments:
            # The last segment stays, since the log continues at its end.
            kept = [each for each in self.segments[name] if each[1] >= before]
            self.segments[name] = kept

    def read(self, name: str) -> list[dict[str, np.ndarray]]:
        """Reads the segments of a log, from old to new, each a dict."""
        files = [self.directory / file for file, _ in self.segments[name]]
        return [*map(array_files.read, files)]

    def check(self) -> None:
        """Raises a `ValueError` for files that are missing or have changed."""
        for segments in self.segments.values():
            for file, _ in segments:
                array_files.check(self.directory / file)

    def write(self, label: str) -> dict[str, list[Segment]]:
        """Writes the rows added since, each log to its own file.

        Logs without new rows are skipped. The log is unchanged until the result
        becomes its `segments`; without that, its rows must be added again.

        Args:
            label: str. Part of the new files' names.

        Returns:
            dict of all segments by the name of a log.

        Raises:
            OSError: If they cannot be written.
        """
        pending, self._pending = self._pending, {}
        segments = {}
        for name, (stop, arrays) in pending.items():
            self.directory.mkdir(exist_ok=True)
            path = self.directory / f"{name}-{label}.npz"
            array_files.write(path, arrays)
            segments[name] = [*self.segments.get(name, []), (path.name, stop)]
        return segments
