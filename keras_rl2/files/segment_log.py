"""Append-only logs of rows, in files that are written once."""

import hashlib
import zipfile
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import NamedTuple
from typing import Protocol

import numpy as np

from keras_rl2.files.atomic_files import replacing


class Chunks(Protocol):
    """An array that is written in chunks of rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array."""

    def chunks(self) -> Iterator[np.ndarray]:
        """Yields the chunks of rows, each valid until the next iteration."""


Arrays = Mapping[str, np.ndarray | Chunks]


class Segment(NamedTuple):
    """A file of a log.

    Attributes:
        file: str. Name of the file.
        stop: int. Row at the end of the log when the file was written.
        bytes: int. Size of the file.
        sha256: str. Hash of its content.
    """

    file: str
    stop: int
    bytes: int
    sha256: str


class SegmentLog:
    """Logs of rows by name, each in segments from old to new.

    A replay buffer is too large to be written again and again: each checkpoint
    adds a segment with the new rows, and earlier segments stay.

    Args:
        directory: Path. Where the files are.
        segments: dict of lists of `Segment` by the name of a log. The existing
            segments. Defaults to `None`: none.

    Example:

    >>> import tempfile
    >>> log = SegmentLog(Path(tempfile.mkdtemp()))
    >>> log.append("replay", 2, {"reward": np.ones(2)})
    >>> log.accept(log.write("00000000"))
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
            name: [*each] for name, each in (segments or {}).items()
        }
        self._pending: dict[str, tuple[int, Arrays]] = {}

    def stop(self, name: str) -> int:
        """Returns the row after a log's last one; 0 if there is no log.

        Args:
            name: str. Name of the log.
        """
        segments = self.segments.get(name)
        return segments[-1].stop if segments else 0

    def append(self, name: str, stop: int, arrays: Arrays) -> None:
        """Adds rows, which `write` puts into a file.

        Args:
            name: str. Name of the log.
            stop: int. Row at the end of the log after adding them.
            arrays: dict of arrays, or of `Chunks`, which `write` reads. They
                are held until then, and not copied.
        """
        self._pending[name] = stop, arrays

    def forget(self, name: str, before: int) -> None:
        """Drops segments that only hold rows before a given one.

        Args:
            name: str. Name of the log.
            before: int. The first row to keep.
        """
        if name in self.segments:
            # The last segment stays, since the log continues at its end.
            kept = [s for s in self.segments[name] if s.stop >= before]
            self.segments[name] = kept

    def read(self, name: str) -> list[dict[str, np.ndarray]]:
        """Reads the segments of a log, from old to new.

        Args:
            name: str. Name of the log.

        Returns:
            list of dicts of arrays.

        Raises:
            ValueError: If a file is missing or has changed.
        """
        return [self._read(segment) for segment in self.segments[name]]

    def check(self) -> None:
        """Raises an error for files that are missing or have changed.

        Raises:
            ValueError: If one is missing or has changed.
        """
        for segments in self.segments.values():
            for segment in segments:
                path = self.directory / segment.file
                size = size_of(path)
                if size != segment.bytes or digest(path) != segment.sha256:
                    raise ValueError(f"{path} is damaged or incomplete.")

    def write(self, label: str) -> dict[str, list[Segment]]:
        """Writes the rows added since, each log to its own file.

        Logs without new rows are skipped. The new rows are released even if the
        write fails. The log is unchanged until `accept`; without it, all rows
        since then must be added again.

        Args:
            label: str. Part of the new files' names.

        Returns:
            dict of all segments by the name of a log, for `accept`.

        Raises:
            OSError: If they cannot be written.
        """
        pending, self._pending = self._pending, {}
        segments = {}
        for name, (stop, arrays) in pending.items():
            self.directory.mkdir(exist_ok=True)
            path = self.directory / f"{name}-{label}.npz"
            with replacing(path) as unfinished:
                _write_arrays(unfinished, arrays)
                size, its = unfinished.stat().st_size, digest(unfinished)
            segment = Segment(path.name, stop, size, its)
            segments[name] = [*self.segments.get(name, []), segment]
        return segments

    def accept(self, segments: Mapping[str, Iterable[Segment]]) -> None:
        """Accepts the segments of `write`, once a checkpoint refers to them.

        Args:
            segments: dict as returned by `write`.
        """
        self.segments = {name: [*each] for name, each in segments.items()}

    def _read(self, segment: Segment) -> dict[str, np.ndarray]:
        """Reads one file."""
        with np.load(
            self.directory / segment.file, allow_pickle=False
        ) as arrays:
            return {name: arrays[name] for name in arrays.files}


def _write_arrays(path: Path, arrays: Arrays) -> None:
    """Writes a file like `numpy.savez`, with arrays or chunks."""
    whole = {n: a for n, a in arrays.items() if isinstance(a, np.ndarray)}
    np.savez(path, **whole)  # type: ignore[arg-type]
    with zipfile.ZipFile(path, "a") as file:
        for name, array in arrays.items():
            if isinstance(array, np.ndarray):
                continue
            header = {
                "descr": np.lib.format.dtype_to_descr(array.dtype),
                "fortran_order": False,
                "shape": array.shape,
            }
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, header)
                for chunk in array.chunks():
                    member.write(chunk.data)


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file.

    Args:
        path: Path. The file.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_of(path: Path) -> int | None:
    """Returns the bytes of a file; None for a link or anything else.

    Args:
        path: Path. The file.
    """
    is_file = path.is_file() and not path.is_symlink()
    return path.stat().st_size if is_file else None


def segments_from(given: Mapping[str, Any]) -> dict[str, list[Segment]]:
    """Returns the segments from lists in JSON.

    Args:
        given: dict of lists of lists by the name of a log.
    """
    return {
        str(name): [Segment(*each) for each in segments]
        for name, segments in given.items()
    }
