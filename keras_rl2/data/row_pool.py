"""Rows that are few: their number is unknown, and they come and go."""

from collections.abc import Mapping

import numpy as np

from keras_rl2.data.memory import bytes_of
from keras_rl2.data.memory import check_memory
from keras_rl2.spaces.array_spec import ArraySpec

_FEWEST = 16


class RowPool:
    """Arrays that grow as rows are added, and reuse those that are removed.

    Args:
        specs: dict of `ArraySpec`. Shape and dtype of one row of each array.
        kind: str. Name of the rows, for the message of an error.

    Attributes:
        arrays: dict of `[room, ...]`.

    Example:

    >>> pool = RowPool({"reward": ArraySpec((), "float32")}, "rewards")
    >>> position = pool.add({"reward": np.array([1.0, 2.0])})
    >>> pool.arrays["reward"][position].tolist()
    [1.0, 2.0]
    """

    def __init__(self, specs: Mapping[str, ArraySpec], kind: str) -> None:
        self.arrays = {
            key: np.empty((0, *spec.shape), spec.dtype)
            for key, spec in specs.items()
        }
        self._kind = kind
        self._bytes = bytes_of(specs.values())
        self._room = 0
        self._free = np.empty(0, np.int32)

    def add(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Adds rows `[K, ...]`; returns their positions, `[K]` int32."""
        count = len(next(iter(rows.values())))
        if count > self._free.size:
            self._grow(count)
        position, self._free = np.split(self._free, [count])
        for key, array in self.arrays.items():
            array[position] = rows[key]
        return position

    def remove(self, position: np.ndarray) -> None:
        """Removes the rows of positions; those below 0 are of none."""
        position = position[position >= 0]
        if position.size:
            self._free = np.concatenate([self._free, position])

    def set_rows(self, rows: Mapping[str, np.ndarray]) -> None:
        """Replaces all rows; their positions are 0, 1, ..."""
        for key, array in self.arrays.items():
            self.arrays[key] = np.array(rows[key], array.dtype).reshape(
                -1, *array.shape[1:]
            )
            self._room = len(self.arrays[key])
        self._free = np.empty(0, np.int32)

    def _grow(self, count: int) -> None:
        """Makes room for more rows."""
        old = self._room
        needed = old - self._free.size + count
        self._room = room = max(needed, old * 3 // 2, _FEWEST)
        check_memory(room * self._bytes, f"{self._kind} {room}")
        for key, array in self.arrays.items():
            grown = np.empty((room, *array.shape[1:]), array.dtype)
            grown[:old] = array
            self.arrays[key] = grown
        added = np.arange(old, room, dtype=np.int32)
        self._free = np.concatenate([self._free, added])
