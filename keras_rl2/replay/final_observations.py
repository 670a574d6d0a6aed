"""The last observations of episodes, which the environments have reset."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from keras_rl2.replay.memory import check_memory

# Shape and dtype of what one step of one environment stores.
Layout = tuple[tuple[int, ...], npt.DTypeLike]

_FEWEST = 16


class FinalObservations:
    """Observations that are forgotten in the order in which they came.

    A ring that grows by half when it is full, since how many episodes end
    while a replay buffer fills up cannot be known beforehand.

    Args:
        layout: dict from names to shape and dtype. The arrays of one
            observation.

    Attributes:
        slots: `[K]` int32. Where each of the K observations that are kept
            lies in `arrays`, the oldest one first.
        arrays: dict of `[room, ...]`. The observations.
    """

    def __init__(self, layout: Mapping[str, Layout]) -> None:
        self.arrays = {
            key: np.empty((0, *shape), dtype)
            for key, (shape, dtype) in layout.items()
        }
        self._room = 0
        self._oldest = 0
        self._count = 0

    @property
    def slots(self) -> np.ndarray:
        """Places of what is kept, the oldest first."""
        return self._slots(self._oldest, self._count)

    def push(
        self, observation: Mapping[str, np.ndarray], count: int
    ) -> np.ndarray:
        """Keeps observations; `grow` has made room for them.

        Args:
            observation: dict of `[K, ...]`.
            count: int. K.

        Returns:
            Where they lie, `[K]` int32.
        """
        slots = self._slots(self._oldest + self._count, count)
        for key, array in self.arrays.items():
            array[slots] = observation[key]
        self._count += count
        return slots

    def drop(self, count: int) -> None:
        """Forgets the oldest observations.

        Args:
            count: int. How many.
        """
        self._oldest = (self._oldest + count) % max(self._room, 1)
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
        if needed <= self._room:
            return None
        room = max(needed, self._room * 3 // 2, _FEWEST)
        check_memory(
            room * self.bytes_each, f"the last observations of {room} episodes"
        )
        places, slots = self.places(), self.slots
        for key, array in self.arrays.items():
            grown = np.empty((room, *array.shape[1:]), array.dtype)
            grown[: self._count] = array[slots]
            self.arrays[key] = grown
        self._room, self._oldest = room, 0
        return places

    @property
    def bytes_each(self) -> int:
        """Bytes of one observation."""
        return sum(
            int(np.prod(array.shape[1:])) * array.itemsize
            for array in self.arrays.values()
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def places(self) -> np.ndarray:
        """Returns how old each slot's observation is, for all slots.

        Returns:
            `[room + 1]` int32. 0 for the oldest observation, 1 for the next,
            and -1 where nothing is kept, also for slot -1.
        """
        places = np.full(self._room + 1, -1, np.int32)
        places[self.slots] = np.arange(self._count)
        return places

    def replace(
        self, observation: Mapping[str, np.ndarray], count: int
    ) -> None:
        """Forgets everything and keeps these, at 0, 1, ...

        Args:
            observation: dict of `[K, ...]`, the oldest one first.
            count: int. K.
        """
        for key, array in self.arrays.items():
            self.arrays[key] = np.array(observation[key], array.dtype).reshape(
                -1, *array.shape[1:]
            )
        self._room = self._count = count
        self._oldest = 0

    def _slots(self, first: int, count: int) -> np.ndarray:
        """Returns places that follow on each other around the ring."""
        return np.arange(first, first + count, dtype=np.int32) % np.int32(
            max(self._room, 1)
        )


def check_final_index(index: np.ndarray, ended: np.ndarray) -> None:
    """Refuses last observations that belong nowhere.

    Args:
        index: `[E]` ints. Which steps they belong to, `t * B + b`.
        ended: `[T, B]` bool. Last steps of episodes.

    Raises:
        ValueError: If one belongs to no such step, or they are not in order.
    """
    # In order, so that they are forgotten in order, too.
    inside = index.min() >= 0 and index.max() < ended.size
    if not (
        inside and (np.diff(index) > 0).all() and ended.reshape(-1)[index].all()
    ):
        raise ValueError(
            f"Expected final_index to name steps that ended an episode, in "
            f"ascending order. Received: final_index={index}"
        )
