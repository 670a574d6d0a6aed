"""The most recent steps: arrays in a ring, and how they are saved."""

import operator
import os
import secrets
import threading
import weakref
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import cast

import numpy as np
import numpy.typing as npt

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves

# Shape and dtype of an array, for one step of one environment.
Layout = tuple[tuple[int, ...], npt.DTypeLike]

# Common prefix of the names of arrays in a tree of observations.
_OBSERVATION = "observation"
_FINAL = "final_"
_FEWEST_FINAL = 16
_CHUNK_BYTES = 2**22


class Ring:
    """Rows of steps of all environments; new rows overwrite the oldest.

    Steps are numbered from the first one; step t is in row t % rows. The step
    of environment b has the number t * B + b; its *place* is this number modulo
    the number of places. There is one row more than steps, for the observation
    after the newest step.

    Each array of an observation is stored by itself, under its path. If an
    environment resets itself within the step that ends an episode, the last
    observation is stored separately, and `slot` holds its position there, else
    -1. The owner decides when rows are overwritten, and may change `arrays`.

    Args:
        capacity: int. Steps to hold, of all environments together, rounded
            down to a multiple of their number.
        num_envs: int. Environments, B.
        observation: tree of `ArraySpec`. Shapes and dtypes of one observation.
        others: dict of name -> shape and dtype. Further arrays of a step, in
            addition to `reward`, `ended`, `terminated`, `valid` and `slot`.
        bytes_beside: int. Further bytes that the owner needs for each step of
            an environment. Defaults to `0`.
        unsettled: int. Number of the newest steps that the owner may still
            change. Defaults to `0`.

    Attributes:
        rows: int. Rows of each array.
        places: int. Places for steps of single environments, rows * B.
        capacity: int. Steps of single environments in a full ring.
        time: int. Steps so far, each of all environments.
        arrays: dict of `[rows, B, ...]`.
        observation: list of str. Names of the arrays of an observation.

    Raises:
        MemoryError: If the memory is not available.

    Example:

    >>> camera = {"camera": ArraySpec((3,), "uint8")}
    >>> ring = Ring(14, 2, camera, {"action": ((), "int32")})
    >>> ring.arrays["observation.camera"].shape, ring.flat("valid").shape
    ((8, 2, 3), (16,))
    """

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        observation: Tree[ArraySpec],
        others: Mapping[str, Layout],
        bytes_beside: int = 0,
        unsettled: int = 0,
    ) -> None:
        self.num_envs = int(num_envs)
        self.rows = int(capacity) // self.num_envs + 1
        self.capacity = (self.rows - 1) * self.num_envs
        self.places = self.rows * self.num_envs
        self.time = 0
        self._form = observation
        self._unsettled = unsettled
        seen = dict(named_leaves(observation, _OBSERVATION))
        self.observation = [*seen]
        layout: dict[str, Layout] = {
            **{key: (spec.shape, spec.dtype) for key, spec in seen.items()},
            **others,
            "reward": ((), np.float32),
            "ended": ((), np.bool_),
            "terminated": ((), np.bool_),
            "valid": ((), np.bool_),
            "slot": ((), np.int32),
        }
        check_memory(
            self.places * (bytes_beside + _bytes_each(layout)),
            f"a replay buffer of {self.capacity} transitions",
        )
        leading = (self.rows, self.num_envs)
        # Zeros cost nothing until they are written to.
        self.arrays = {
            key: np.zeros((*leading, *shape), dtype)
            for key, (shape, dtype) in layout.items()
        }
        self.arrays["slot"][:] = -1
        self._final = _FinalObservations({k: layout[k] for k in seen})
        # Rows that a log has not read yet.
        self._late: list[weakref.ref[LateRows]] = []
        # A unique name, which the training does not depend on.
        self._log_name = f"replay-{secrets.token_hex(8)}"
        # The first step of each rewritten stretch, and the steps at that time.
        self._rewritten: list[tuple[int, int]] = []

    # Asking.

    @property
    def row(self) -> int:
        """Row of the next step."""
        return self.time % self.rows

    @property
    def oldest(self) -> int:
        """Number of the first step that has not been overwritten."""
        return max(0, self.time - self.rows + 1) * self.num_envs

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, when the ring is full."""
        arrays = [*self.arrays.values(), *self._final.arrays.values()]
        return sum(map(operator.attrgetter("nbytes"), arrays))

    def index_of(self, place: np.ndarray) -> np.ndarray:
        """Returns the numbers of steps by their places.

        Args:
            place: `[M]` ints.

        Returns:
            `[M]` int64. The newest number of each place.
        """
        newest = self.time * self.num_envs - 1
        newest_place = newest % self.places
        index: np.ndarray = place + (newest - newest_place)
        # Places beyond the newest one belong to the previous round.
        index -= self.places * (place > newest_place)
        return index

    def flat(self, key: str) -> np.ndarray:
        """Returns a view of an array by places, `[places, ...]`."""
        # Made each time, since a copy of a view is no longer a view.
        array = self.arrays[key]
        # [rows, B, ...] -> [rows * B, ...]
        return array.reshape(-1, *array.shape[2:])

    def observations(
        self, place: np.ndarray, slot: np.ndarray | None = None
    ) -> Any:
        """Returns observations by their places, copied.

        Args:
            place: `[M, ...]` ints. The first place follows the last one.
            slot: `[M]` ints or None. If not -1, the position of the last
                observation that is returned instead. Defaults to `None`.

        Returns:
            tree of `[M, ...]`.
        """
        found = []
        kept = None if slot is None else np.flatnonzero(slot >= 0)
        for key in self.observation:
            # `take` with "wrap" is faster than a division of each place.
            array = self.flat(key).take(place, 0, mode="wrap")
            if slot is not None and kept is not None and kept.size:
                array[kept] = self._final.arrays[key][slot[kept]]
            found.append(array)
        return with_leaves(self._form, found)

    # Storing.

    def checked(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
        """Checks a trajectory, and returns the arrays that `write` takes.

        Args:
            trajectory: `Trajectory` of T steps.

        Returns:
            Arrays of steps `[T, B, ...]`, of observations `[T + 1, B, ...]`;
            last observations `[E, ...]`; and their steps, `t * B + b`, `[E]`.

        Raises:
            ValueError: If an array has another shape, or cannot be cast safely
                to the dtype of the ring.
        """
        given = {
            **self._by_key(trajectory, _OBSERVATION),
            "action": np.asarray(trajectory.action),
            "reward": np.asarray(trajectory.reward),
            "terminated": np.asarray(trajectory.terminated),
            "ended": np.logical_or(trajectory.terminated, trajectory.truncated),
            "valid": np.asarray(trajectory.valid),
        }
        steps = given["reward"].shape[:1]
        for key, array in given.items():
            own = self.arrays[key]
            more = steps and key in self.observation
            rows = (steps[0] + 1,) if more else steps
            if not _fits(array, (*rows, *own.shape[1:]), own.dtype):
                raise ValueError(
                    f"Expected {key} of shape {own.shape[1:]} for each step "
                    f"and dtype {own.dtype}. Received: {key} of shape "
                    f"{array.shape} (steps first) and dtype {array.dtype}"
                )
        final = self._by_key(trajectory, f"{_FINAL}observation")
        index = np.asarray(trajectory.final_index, np.int64)
        if index.size or any(map(len, final.values())):
            self._check_final(final, index, given["ended"])
        return given, final, index

    def _by_key(
        self, trajectory: Trajectory, name: str
    ) -> dict[str, np.ndarray]:
        """Returns the arrays of an attribute, keyed by their names here."""
        tree = getattr(trajectory, name)
        given = dict(named_leaves(tree, _OBSERVATION))
        if [*given] != self.observation:
            raise ValueError(
                f"Expected {name} of the arrays {self.observation}. "
                f"Received: {[*given]}"
            )
        return {key: np.asarray(array) for key, array in given.items()}

    def _check_final(
        self, final: dict[str, np.ndarray], index: np.ndarray, ended: np.ndarray
    ) -> None:
        """Checks last observations `[E, ...]` and their steps."""
        for key, array in final.items():
            own = self.arrays[key]
            if not _fits(array, (index.size, *own.shape[2:]), own.dtype):
                raise ValueError(
                    f"Expected final_{key} of shape {own.shape[2:]} for each "
                    f"of {index.size} episodes and dtype {own.dtype}. "
                    f"Received: shape {array.shape} and dtype {array.dtype}"
                )
        # In order, so that they are also removed in order.
        inside = index.min() >= 0 and index.max() < ended.size
        if not (
            inside
            and (np.diff(index) > 0).all()
            and ended.reshape(-1)[index].all()
        ):
            raise ValueError(
                f"Expected final_index to name steps that ended an episode, in "
                f"ascending order. Received: final_index={index}"
            )

    def write(
        self,
        given: Mapping[str, np.ndarray],
        final: Mapping[str, np.ndarray],
        final_index: np.ndarray,
        start: int,
        stop: int,
    ) -> None:
        """Writes steps to rows, at most up to the last row of the ring.

        Args:
            given: dict of `[T, B, ...]`, as returned by `checked`.
            final: dict of `[E, ...]`.
            final_index: `[E]` ints.
            start: int. The first step to be written.
            stop: int. The step after the last one.
        """
        row, count = self.row, stop - start
        rows = slice(row, row + count)
        slot = self.arrays["slot"][rows]
        self._final.drop(int(np.count_nonzero(slot >= 0)))
        slot[:] = -1
        if self._late:
            self._keep_late(row, count + 1)
        for key, array in given.items():
            self.arrays[key][rows] = array[start:stop]
        self.time += count
        for key in self.observation:
            self.arrays[key][self.row] = given[key][stop]
        step = final_index // self.num_envs
        (here,) = np.nonzero((step >= start) & (step < stop))
        if here.size:
            place = (row - start) * self.num_envs + final_index[here]
            self.keep_final(
                place, {k: array[here] for k, array in final.items()}
            )

    def keep_final(
        self, place: np.ndarray, observation: Mapping[str, np.ndarray]
    ) -> None:
        """Stores the last observations of episodes separately.

        Args:
            place: `[K]` ints. Places of the last steps.
            observation: dict of `[K, ...]`.
        """
        if not place.size:
            return
        moved = self._final.grow(place.size)
        slot = self.flat("slot")
        if moved is not None:
            slot[:] = moved[slot]
        slot[place] = self._final.push(observation, place.size)

    def note_rewritten(self, step: int) -> None:
        """Records for logs that steps have changed.

        Args:
            step: int. The first step that has changed.
        """
        oldest = max(0, self.time - self.rows + 1)
        self._rewritten = [each for each in self._rewritten if each[1] > oldest]
        self._rewritten.append((step, self.time))

    def _keep_late(self, row: int, count: int) -> None:
        """Copies unread rows that are about to be overwritten."""
        alive = [late for ref in self._late if (late := ref()) is not None]
        self._late = [weakref.ref(each) for each in alive]
        for late in alive:
            late.keep(row, count)

    # Saving.

    def filled(self, steps: int) -> int:
        """Returns the number of filled rows after a number of steps."""
        return min(int(steps) + 1, self.rows)

    def get_state(self, log: "StateLog | None" = None) -> dict[str, Any]:
        """Returns the filled rows and the last observations.

        Args:
            log: `StateLog` or None. Receives the new steps; the state then
                holds only the name of the log. Defaults to `None`: all steps
                are returned.
        """
        if log is not None:
            self._append_to(log)
            return {"log": self._log_name, "steps": self.time}
        filled = self.filled(self.time)
        rows = {key: a[:filled].copy() for key, a in self.arrays.items()}
        return {
            **rows,
            "slot": self._final.ages()[rows["slot"]],
            **{
                f"{_FINAL}{key}": array[self._final.slots]
                for key, array in self._final.arrays.items()
            },
            "steps": self.time,
        }

    def _append_to(self, log: "StateLog") -> None:
        """Adds new and changed steps to a log."""
        oldest = max(0, self.time - self.rows + 1)
        stop = log.stop(self._log_name)
        self._rewritten = [each for each in self._rewritten if each[1] >= stop]
        since = min(
            [stop - self._unsettled, *(first for first, _ in self._rewritten)]
        )
        log.append(
            self._log_name, self.time, self.steps_from(max(since, oldest))
        )
        log.forget(self._log_name, oldest)

    def steps_from(self, first: int) -> "dict[str, np.ndarray | LateRows]":
        """Returns the steps from a given one.

        Args:
            first: int. The first step, which must be stored.

        Returns:
            dict of `[S + 1, B, ...]`, one row more for the observation after
            the newest step; the last observations `[K, ...]`, indexed by
            `slot`; and `first`, a number. Observations are copied when they are
            read or overwritten, all other arrays immediately.
        """
        place = np.arange(first, self.time + 1) % self.rows
        rows: dict[str, np.ndarray | LateRows] = {}
        for key, array in self.arrays.items():
            if key in self.observation:
                late = rows[key] = LateRows(array, int(place[0]), place.size)
                self._late.append(weakref.ref(late))
            else:
                rows[key] = array[place]
        slot = cast(np.ndarray, rows["slot"])
        kept = slot >= 0
        chosen = slot[kept]
        by_age = np.argsort(self._final.ages()[chosen])
        chosen = chosen[by_age]
        rank = np.empty_like(chosen)
        rank[by_age] = np.arange(chosen.size)
        slot[kept] = rank
        final = {
            f"{_FINAL}{key}": array[chosen]
            for key, array in self._final.arrays.items()
        }
        return {**rows, **final, "first": np.array(first)}

    def set_state(
        self, state: dict[str, Any], log: "StateLog | None" = None
    ) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
            log: `StateLog` or None. See `get_state`. Defaults to `None`.

        Raises:
            ValueError: If the state does not fit; the ring is then unchanged.
        """
        log_name = self._log_name
        if "log" in state:
            assert log is not None
            log_name = state["log"]
            parts = log.read(log_name)
            state = state | _together(parts, int(state["steps"]), self.rows)
        given = self._checked_rows(state)
        final = {
            key: np.asarray(state[f"{_FINAL}{key}"]) for key in self.observation
        }
        count = int(np.count_nonzero(given["slot"] >= 0))
        for key, array in final.items():
            if len(array) != count:
                raise ValueError(
                    f"Expected {count} final observations. Received: "
                    f"final_{key} of shape {array.shape}"
                )
        self._keep_late(0, self.rows)
        for key, own in self.arrays.items():
            filled = len(given[key])
            own[:filled] = given[key]
            own[filled:] = -1 if key == "slot" else 0
        self._final.replace(final, count)
        self.time = int(state["steps"])
        self._log_name = log_name
        self._rewritten = []

    def _checked_rows(self, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Returns the rows of a state, checking that they fit the ring."""
        seen = {key for key in state if key.split(".")[0] == _OBSERVATION}
        if seen != {*self.observation}:
            raise ValueError(
                f"Expected the state of a replay buffer of "
                f"{self.observation}. Received: {sorted(seen)}"
            )
        filled = self.filled(state["steps"])
        given = {key: np.asarray(state[key]) for key in self.arrays}
        for key, own in self.arrays.items():
            if given[key].shape != (filled, *own.shape[1:]):
                raise ValueError(
                    f"Expected {key} of shape {(filled, *own.shape[1:])}. "
                    f"Received: {key} of shape {given[key].shape}"
                )
        return given


class _FinalObservations:
    """Last observations of episodes, removed in the order of arrival.

    A ring that grows by half when it is full, since the number of episodes in a
    replay buffer is not known in advance.

    Attributes:
        arrays: dict of `[room, ...]`. The observations.
    """

    def __init__(self, layout: Mapping[str, Layout]) -> None:
        self.arrays = {
            key: np.empty((0, *shape), dtype)
            for key, (shape, dtype) in layout.items()
        }
        self._bytes_each = _bytes_each(layout)
        self._room = 0
        self._oldest = 0
        self._count = 0

    @property
    def slots(self) -> np.ndarray:
        """Positions of the observations, the oldest first, `[K]` int32."""
        return self._slots(self._oldest, self._count)

    def push(
        self, observation: Mapping[str, np.ndarray], count: int
    ) -> np.ndarray:
        """Adds `count` observations, for which `grow` has made room.

        Returns:
            Their positions, `[count]` int32.
        """
        slots = self._slots(self._oldest + self._count, count)
        for key, array in self.arrays.items():
            array[slots] = observation[key]
        self._count += count
        return slots

    def drop(self, count: int) -> None:
        """Removes the `count` oldest observations."""
        self._oldest = (self._oldest + count) % max(self._room, 1)
        self._count -= count

    def grow(self, count: int) -> np.ndarray | None:
        """Makes room for `count` more observations.

        Returns:
            None if there was room. Otherwise the previous `ages()`, the new
            positions of all observations.

        Raises:
            MemoryError: If the memory is not available.
        """
        needed = self._count + count
        if needed <= self._room:
            return None
        room = max(needed, self._room * 3 // 2, _FEWEST_FINAL)
        check_memory(
            room * self._bytes_each, f"the last observations of {room} episodes"
        )
        ages, slots = self.ages(), self.slots
        for key, array in self.arrays.items():
            grown = np.empty((room, *array.shape[1:]), array.dtype)
            grown[: self._count] = array[slots]
            self.arrays[key] = grown
        self._room, self._oldest = room, 0
        return ages

    def ages(self) -> np.ndarray:
        """Returns the rank by age of each position.

        Returns:
            `[room + 1]` int32. 0 for the oldest observation, 1 for the next,
            and -1 for an empty position, also for position -1.
        """
        ages = np.full(self._room + 1, -1, np.int32)
        ages[self.slots] = np.arange(self._count)
        return ages

    def replace(
        self, observation: Mapping[str, np.ndarray], count: int
    ) -> None:
        """Sets the positions to 0, 1, ... for `count` observations in order."""
        for key, array in self.arrays.items():
            self.arrays[key] = np.array(observation[key], array.dtype).reshape(
                -1, *array.shape[1:]
            )
        self._room = self._count = count
        self._oldest = 0

    def _slots(self, first: int, count: int) -> np.ndarray:
        """Returns consecutive positions around the ring."""
        return np.arange(first, first + count, dtype=np.int32) % np.int32(
            max(self._room, 1)
        )


class LateRows:
    """A snapshot of the rows of a ring, read later by another thread.

    A copy of all images of a replay buffer would double the memory, and take
    time. Instead, rows are copied when they are read, or by `keep` when they
    are overwritten earlier.

    Args:
        array: `[R, ...]`. All rows of the ring.
        first: int. The first row; row 0 follows the last row of the ring.
        count: int. Number of rows, N, at most R.

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
        # The first row that has not been read.
        self._read = 0
        self._kept: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()
        self.shape = (count, *array.shape[1:])
        self.dtype = array.dtype

    def keep(self, row: int, count: int) -> None:
        """Copies unread rows that are about to be overwritten.

        Args:
            row: int. The first of these rows in the ring.
            count: int. Number of rows.
        """
        with self._lock:
            if self._read == self.shape[0]:
                return
            for each in range(row, row + count):
                index = (each - self._first) % len(self._array)
                is_unread = self._read <= index < self.shape[0]
                # A row that was overwritten before has been copied.
                if is_unread and index not in self._kept:
                    at = each % len(self._array)
                    self._kept[index] = self._array[at].copy()

    def chunks(self) -> Iterator[np.ndarray]:
        """Yields the rows once, some at a time.

        Yields:
            `[n, ...]`, valid until the next iteration.
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


class StateLog(Protocol):
    """A log of rows that are written once; see `SegmentLog`."""

    def stop(self, name: str) -> int:
        """Returns the row at the end of a log."""

    def append(
        self, name: str, stop: int, arrays: Mapping[str, np.ndarray | LateRows]
    ) -> None:
        """Adds rows."""

    def forget(self, name: str, before: int) -> None:
        """Drops segments that only hold rows before a given one."""

    def read(self, name: str) -> list[dict[str, np.ndarray]]:
        """Returns all added parts, from old to new."""


def _together(
    parts: Sequence[Mapping[str, np.ndarray]], steps: int, rows: int
) -> dict[str, np.ndarray]:
    """Combines the parts of a log into the arrays of a ring's state.

    Args:
        parts: Sequence of dicts, as returned by `Ring.steps_from`, from old to
            new. If a step is in several parts, the last one counts.
        steps: int. Number of steps stored.
        rows: int. Rows of the ring.

    Returns:
        dict of `[filled rows, B, ...]` and last observations, as returned by
        `Ring.get_state`.
    """
    newest = parts[-1]
    whole = {
        key: np.zeros((min(steps + 1, rows), *array.shape[1:]), array.dtype)
        for key, array in newest.items()
        if array.ndim and not key.startswith(_FINAL)
    }
    slot = np.full(whole["slot"].shape, -1, np.int64)
    final_keys = [key for key in newest if key.startswith(_FINAL)]
    before = 0
    for part in parts:
        step = int(part["first"]) + np.arange(len(part["slot"]))
        (here,) = np.nonzero((step > steps - rows) & (step <= steps))
        place = step[here] % rows
        for key, array in whole.items():
            array[place] = part[key][here]
        own = part["slot"][here]
        slot[place] = np.where(own >= 0, own + before, -1)
        before += len(part[final_keys[0]])
    by_age = _by_age(slot, steps)
    chosen = slot.reshape(-1)[by_age]
    ages = np.full(slot.shape, -1, np.int64)
    ages.reshape(-1)[by_age] = np.arange(by_age.size)
    final = {
        key: np.concatenate([part[key] for part in parts])[chosen]
        for key in final_keys
    }
    return {**whole, **final, "slot": ages}


def _by_age(slot: np.ndarray, steps: int) -> np.ndarray:
    """Returns the places with a slot, the oldest first."""
    filled = len(slot)
    row, env = np.nonzero(slot >= 0)
    # Row `steps` comes first: it holds only the newest observation, and until
    # it is overwritten the slot of the oldest step.
    age = (row - steps) % filled
    # Within a row, in the order of arrival.
    order = np.lexsort((slot[row, env], age))
    places: np.ndarray = np.ravel_multi_index((row, env), slot.shape)[order]
    return places


def _bytes_each(layout: Mapping[str, Layout]) -> int:
    """Returns the bytes of one step of one environment."""
    return sum(
        int(np.prod(shape)) * np.dtype(dtype).itemsize
        for shape, dtype in layout.values()
    )


def _fits(
    array: np.ndarray, shape: tuple[int, ...], dtype: npt.DTypeLike
) -> bool:
    """Returns whether an array fits a shape, and casts safely to a dtype."""
    return array.shape == shape and np.can_cast(array.dtype, dtype, "same_kind")


def check_settings(
    state: Mapping[str, Any], settings: Mapping[str, float]
) -> None:
    """Checks that a state belongs to a replay buffer of the same settings.

    Args:
        state: dict, as returned by `get_state`.
        settings: name -> value. The settings of the buffer to restore.

    Raises:
        ValueError: If a setting differs.
    """
    for key, own in settings.items():
        if state[key] != own:
            raise ValueError(
                f"Expected the state of a replay buffer of {key}={own}. "
                f"Received: {key}={state[key]}"
            )


def available_memory() -> int | None:
    """Returns the bytes of memory available without swapping.

    If the system does not report them, these are the free bytes, or the bytes
    of the whole machine.

    Returns:
        int, or `None` if the system reports none of these.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        try:
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            continue
    return None


def check_memory(needed: int, purpose: str) -> None:
    """Checks that memory is available before it is allocated.

    Args:
        needed: int. Bytes needed.
        purpose: str. Purpose of the memory, e.g. "a buffer of 10 transitions".

    Raises:
        MemoryError: If they are not available; the message states both figures.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"Expected {purpose} to fit into the available memory, "
            f"{available / 2**30:.2f} GiB. Received: one that needs "
            f"{needed / 2**30:.2f} GiB"
        )
