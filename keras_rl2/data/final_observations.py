"""The last observations of episodes, which the environments have reset."""

import numpy as np
import numpy.typing as npt

from keras_rl2.data.memory import check_memory

_FEWEST = 16


class FinalObservations:
    """Observations that are forgotten in the order in which they came.

    A ring that grows by half when it is full, since how many episodes end
    while a replay buffer fills up cannot be known beforehand.

    Args:
        shape: tuple. Shape of one observation.
        dtype: Its dtype.

    Attributes:
        slots: `[K]` int32. Where each of the K observations that are kept
            lies in `array`, the oldest one first.
        array: `[room, ...]`. The observations.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self.array = np.empty((0, *shape), dtype)
        self._oldest = 0
        self._count = 0

    @property
    def slots(self) -> np.ndarray:
        """Places of what is kept, the oldest first."""
        return self._slots(self._oldest, self._count)

    def push(self, observation: np.ndarray) -> np.ndarray:
        """Keeps observations; `grow` has made room for them.

        Args:
            observation: `[K, ...]`.

        Returns:
            Where they lie, `[K]` int32.
        """
        slots = self._slots(self._oldest + self._count, len(observation))
        self.array[slots] = observation
        self._count += len(observation)
        return slots

    def drop(self, count: int) -> None:
        """Forgets the oldest observations.

        Args:
            count: int. How many.
        """
        self._oldest = (self._oldest + count) % max(len(self.array), 1)
        self._count -= count

    def grow(self, count: int) -> np.ndarray | None:
        """Makes room for `count` more.

        Args:
            count: int. How many.

        Returns:
            `None` if there was room. Otherwise all that is kept was moved,
            and `places()` as it was before says where to.

        Raises:
            MemoryError: If there is no memory for it.
        """
        needed = self._count + count
        if needed <= len(self.array):
            return None
        room = max(needed, len(self.array) * 3 // 2, _FEWEST)
        shape = self.array.shape[1:]
        check_memory(
            room * int(np.prod(shape)) * self.array.itemsize,
            f"the last observations of {room} episodes",
        )
        places = self.places()
        grown = np.empty((room, *shape), self.array.dtype)
        grown[: self._count] = self.array[self.slots]
        self.array, self._oldest = grown, 0
        return places

    def places(self) -> np.ndarray:
        """Returns how old each slot's observation is, for all slots.

        Returns:
            `[room + 1]` int32. 0 for the oldest observation, 1 for the next,
            and -1 where nothing is kept, also for slot -1.
        """
        places = np.full(len(self.array) + 1, -1, np.int32)
        places[self.slots] = np.arange(self._count)
        return places

    def replace(self, observation: np.ndarray) -> None:
        """Forgets everything and keeps these, at 0, 1, ...

        Args:
            observation: `[K, ...]`, the oldest one first.
        """
        self.array = np.array(observation, self.array.dtype).reshape(
            -1, *self.array.shape[1:]
        )
        self._oldest, self._count = 0, len(observation)

    def _slots(self, first: int, count: int) -> np.ndarray:
        """Returns places that follow on each other around the ring."""
        return np.arange(first, first + count, dtype=np.int32) % np.int32(
            max(len(self.array), 1)
        )
