"""HDF5 files on disks that may be full."""

import io
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class Hdf5Output(io.RawIOBase):
    """A file for `h5py.File` to write to, which fails only when it is closed.

    Where a write fails, HDF5 ends the whole process when it closes the file.
    So it never learns of it: what comes after is not written, and the error
    is raised in the end.

    Args:
        path: Path. The file, which is made.

    Raises:
        OSError: On leaving the `with` block, if something was not written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = open(path, "w+b", buffering=0)  # noqa: SIM115
        self._error: OSError | None = None

    def write(self, data: object) -> int:
        """Writes, or keeps in mind why it could not."""
        view = memoryview(data)  # type: ignore[arg-type]
        done = 0
        while self._error is None and done < view.nbytes:
            try:
                done += self._file.write(view[done:]) or 0
            except OSError as error:
                self._error = error
        return view.nbytes

    def readinto(self, buffer: object) -> int:
        """Reads, and zeros where nothing was written."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        count = self._file.readinto(view) or 0
        view[count:] = bytes(view.nbytes - count)
        return view.nbytes

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Goes to a byte."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Returns where it is."""
        return self._file.tell()

    def truncate(self, size: int | None = None) -> int:
        """Makes the file so long, or keeps in mind why it could not."""
        try:
            return self._file.truncate(size)
        except OSError as error:
            self._error = self._error or error
            return size or 0

    def flush(self) -> None:
        """Has nothing to do: nothing is held back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        # Whatever else went wrong, went wrong because of it.
        if self._error is not None:
            raise self._error
