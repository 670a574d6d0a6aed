"""The arrays of a ring, a row for each step of all environments."""

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_rl2.files.late_rows import LateRows
from keras_rl2.replay.final_observations import Layout
from keras_rl2.replay.memory import check_memory
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves

# What all arrays of observations are called that lie in a tree.
_OBSERVATION = "observation"


class RingArrays:
    """Arrays `[rows, B, ...]` by name, and what fits into them.

    What `StepRing` writes to: it knows which rows mean something, this
    knows what they look like. Each array of an observation lies by itself,
    under its path.

    Args:
        rows: int. Steps that there is room for.
        num_envs: int. Environments, B.
        observation: tree of `ArraySpec`. Of one observation.
        others: dict of name -> shape and dtype. What else is stored of a step.
        bytes_beside: int. What a step of one environment takes elsewhere, of
            the same memory.

    Attributes:
        observation: dict of name -> shape and dtype. Of one observation.

    Raises:
        MemoryError: If the machine has not got the memory.

    Example:

    >>> camera = {"camera": ArraySpec((3,), "uint8")}
    >>> arrays = RingArrays(8, 2, camera, {"valid": ((), bool)}, 0)
    >>> arrays["observation.camera"].shape, arrays.flat("valid").shape
    ((8, 2, 3), (16,))
    """

    def __init__(
        self,
        rows: int,
        num_envs: int,
        observation: Tree[ArraySpec],
        others: Mapping[str, Layout],
        bytes_beside: int,
    ) -> None:
        self._form = observation
        self.observation: dict[str, Layout] = {
            key: (spec.shape, spec.dtype)
            for key, spec in _by_key(observation).items()
        }
        layout = {**self.observation, **others}
        leading = (rows, num_envs)
        needed = rows * num_envs * bytes_beside + sum(
            int(np.prod((*leading, *shape))) * np.dtype(dtype).itemsize
            for shape, dtype in layout.values()
        )
        # One row is that of the observation after the newest step.
        capacity = (rows - 1) * num_envs
        check_memory(needed, f"a replay buffer of {capacity} transitions")
        # Of those that somebody is still to read.
        self._late: list[weakref.ref[LateRows]] = []
        # Zeros cost nothing until they are written to.
        self._arrays = {
            key: np.zeros((*leading, *shape), dtype)
            for key, (shape, dtype) in layout.items()
        }

    def __getitem__(self, key: str) -> np.ndarray:
        """Returns an array, `[rows, B, ...]`."""
        return self._arrays[key]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays.values())

    def flat(self, key: str) -> np.ndarray:
        """Returns a view of an array by places in the ring.

        Args:
            key: str. Its name.

        Returns:
            `[rows * B, ...]`.
        """
        # Made anew each time, since a copied view would be a view no more.
        array = self._arrays[key]
        # [rows, B, ...] -> [rows * B, ...]
        return array.reshape(-1, *array.shape[2:])

    def write(
        self, rows: slice, given: Mapping[str, np.ndarray], start: int
    ) -> None:
        """Writes rows of some arrays.

        Args:
            rows: slice. Where to.
            given: dict of `[T, B, ...]`.
            start: int. The first of their rows that is written.
        """
        stop = start + rows.stop - rows.start
        self._keep(rows.start, rows.stop - rows.start)
        for key, array in given.items():
            self._arrays[key][rows] = array[start:stop]

    def _keep(self, row: int, count: int) -> None:
        """Has rows copied that are to be overwritten and still to be read."""
        if self._late:
            alive = [late for ref in self._late if (late := ref()) is not None]
            self._late = [weakref.ref(each) for each in alive]
            for late in alive:
                late.keep(row, count)

    # Observations.

    def by_key(self, tree: Any, what: str) -> dict[str, np.ndarray]:
        """Returns the arrays of an observation by where they are stored.

        Args:
            tree: tree of arrays.
            what: str. What it is called in messages.

        Returns:
            dict of arrays.

        Raises:
            ValueError: If it is another tree than the one that is stored.
        """
        given = _by_key(tree)
        if [*given] != [*self.observation]:
            raise ValueError(
                f"Expected {what} of the arrays {[*self.observation]}. "
                f"Received: {[*given]}"
            )
        return {key: np.asarray(array) for key, array in given.items()}

    def as_tree(self, arrays: list[np.ndarray]) -> Any:
        """Returns arrays of an observation as the tree that they are of.

        Args:
            arrays: list. In the order of `observation`.

        Returns:
            tree of arrays.
        """
        return with_leaves(self._form, arrays)

    # Refusing.

    def check_steps(self, given: Mapping[str, np.ndarray]) -> None:
        """Refuses steps of another shape, or that would lose something.

        Args:
            given: dict of `[T, B, ...]`, of observations `[T + 1, B, ...]`.

        Raises:
            ValueError: If one of them does not fit.
        """
        steps = given["reward"].shape[:1]
        for key, array in given.items():
            own = self._arrays[key]
            more = steps and key in self.observation
            rows = (steps[0] + 1,) if more else steps
            if not _fits(array, (*rows, *own.shape[1:]), own.dtype):
                raise ValueError(
                    f"Expected {key} of shape {own.shape[1:]} for each step "
                    f"and dtype {own.dtype}. Received: {key} of shape "
                    f"{array.shape} (steps first) and dtype {array.dtype}"
                )

    def check_final(self, final: Mapping[str, np.ndarray], count: int) -> None:
        """Refuses last observations that are of another shape.

        Args:
            final: dict of `[K, ...]`.
            count: int. K.

        Raises:
            ValueError: If one of them does not fit.
        """
        for key, array in final.items():
            own = self._arrays[key]
            if not _fits(array, (count, *own.shape[2:]), own.dtype):
                raise ValueError(
                    f"Expected final_{key} of shape {own.shape[2:]} for each "
                    f"of {count} episodes and dtype {own.dtype}. "
                    f"Received: shape {array.shape} and dtype {array.dtype}"
                )

    # Saving.

    def first_rows(self, count: int) -> dict[str, np.ndarray]:
        """Returns rows from the first on, copied.

        Args:
            count: int. How many.

        Returns:
            dict of `[count, B, ...]`.
        """
        return {key: a[:count].copy() for key, a in self._arrays.items()}

    def rows_from(
        self, first: int, count: int
    ) -> dict[str, np.ndarray | LateRows]:
        """Returns rows that follow on each other in the ring.

        Args:
            first: int. The first of them.
            count: int. How many, N.

        Returns:
            dict of `[N, B, ...]`. Observations are copied when they are read,
            or overwritten; all else is copied.
        """
        place = np.arange(first, first + count) % len(self["reward"])
        found: dict[str, np.ndarray | LateRows] = {}
        for key, array in self._arrays.items():
            if key in self.observation:
                late = found[key] = LateRows(array, int(place[0]), count)
                self._late.append(weakref.ref(late))
            else:
                found[key] = array[place]
        return found

    def check_first_rows(
        self, state: Mapping[str, Any], count: int
    ) -> dict[str, np.ndarray]:
        """Refuses what `first_rows` of the same arrays would not have given.

        Args:
            state: dict. Other names than those of observations may be in it.
            count: int. Rows that are expected.

        Returns:
            dict of `[count, B, ...]`, no more than there are arrays.

        Raises:
            ValueError: If observations or shapes are others.
        """
        seen = {key for key in state if key.split(".")[0] == _OBSERVATION}
        if seen != {*self.observation}:
            raise ValueError(
                f"Expected the state of a replay buffer of "
                f"{[*self.observation]}. Received: {sorted(seen)}"
            )
        given = {key: np.asarray(state[key]) for key in self._arrays}
        for key, own in self._arrays.items():
            if given[key].shape != (count, *own.shape[1:]):
                raise ValueError(
                    f"Expected {key} of shape {(count, *own.shape[1:])}. "
                    f"Received: {key} of shape {given[key].shape}"
                )
        return given

    def set_first_rows(self, given: Mapping[str, np.ndarray]) -> None:
        """Writes rows from the first on, and zeros into the others.

        Args:
            given: dict, as of `check_first_rows`.
        """
        self._keep(0, len(self["reward"]))
        for key, own in self._arrays.items():
            count = len(given[key])
            own[:count] = given[key]
            own[count:] = 0


def _fits(
    array: np.ndarray, shape: tuple[int, ...], dtype: npt.DTypeLike
) -> bool:
    """Says whether an array has a shape, and loses nothing by a dtype."""
    return array.shape == shape and np.can_cast(array.dtype, dtype, "same_kind")


def _by_key(tree: Any) -> dict[str, Any]:
    """Returns the leaves of an observation by what they are called."""
    return {
        f"{_OBSERVATION}.{path}" if path else _OBSERVATION: leaf
        for path, leaf in named_leaves(tree)
    }
