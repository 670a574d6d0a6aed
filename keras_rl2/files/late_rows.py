"""Rows that are copied while they are written away, not before."""

import threading
from collections.abc import Iterator

import numpy as np

_CHUNK_BYTES = 2**22


class LateRows:
    """Rows of a ring as they are now, which another thread reads later.

    To copy all pictures of a replay buffer at once would take as much memory
    again, and the time to get it. Here rows are copied as they are asked for;
    before one is overwritten that has not been, `keep` is told.

    Args:
        array: `[R, ...]`. All rows of the ring.
        first: int. The row that comes first; after the last one of the ring
            follows row 0.
        count: int. How many rows, N. No more than R.

    Attributes:
        shape: tuple. `(N, ...)`.
        dtype: NumPy dtype.

    Example:

    >>> ring = np.arange(5)
    >>> late = LateRows(ring, 3, 4)
    >>> late.keep(0, 2)
    >>> ring[:2] = -1
    >>> np.concatenate([each.copy() for each in late.chunks()]).tolist()
    [3, 4, 0, 1]
    """

    def __init__(self, array: np.ndarray, first: int, count: int) -> None:
        self._array = array
        self._first = first
        # Of those that come next, the first that has not been read.
        self._read = 0
        self._kept: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()
        self.shape = (count, *array.shape[1:])
        self.dtype = array.dtype

    def keep(self, row: int, count: int) -> None:
        """Copies rows that are to be overwritten and have not been read.

        Args:
            row: int. The first of them in the ring.
            count: int. How many.
        """
        with self._lock:
            if self._read == self.shape[0]:
                return
            for each in range(row, row + count):
                index = (each - self._first) % len(self._array)
                is_unread = self._read <= index < self.shape[0]
                # What was overwritten before is kept already.
                if is_unread and index not in self._kept:
                    at = each % len(self._array)
                    self._kept[index] = self._array[at].copy()

    def chunks(self) -> Iterator[np.ndarray]:
        """Gives the rows, once, some at a time.

        Yields:
            `[n, ...]`, which the next one takes the place of.
        """
        count = self.shape[0]
        row_bytes = max(1, self._array[:1].nbytes)
        size = max(1, min(count, _CHUNK_BYTES // row_bytes))
        buffer = np.empty((size, *self.shape[1:]), self.dtype)
        while self._read < count:
            first = self._read
            stop = min(first + size, count)
            chunk = buffer[: stop - first]
            with self._lock:
                rows = np.arange(first, stop) + self._first
                self._array.take(rows, 0, chunk, mode="wrap")
                for index in range(first, stop) if self._kept else ():
                    if index in self._kept:
                        chunk[index - first] = self._kept.pop(index)
                self._read = stop
            yield chunk
