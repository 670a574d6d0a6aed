"""The most recent steps: arrays in a ring, and how they are saved."""

import os
import secrets
import threading
import weakref
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves

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
        others: dict of `ArraySpec`. Further arrays of a step, in addition to
            `reward`, `ended`, `terminated`, `valid` and `slot`.
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
    >>> ring = Ring(14, 2, camera, {"action": ArraySpec((), "int32")})
    >>> ring.arrays["observation.camera"].shape, ring.flat("valid").shape
    ((8, 2, 3), (16,))
    """

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        observation: Tree[ArraySpec],
        others: Mapping[str, ArraySpec],
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
        flag = ArraySpec((), "bool")
        specs = {
            **seen,
            **others,
            "reward": ArraySpec((), "float32"),
            **dict.fromkeys(("ended", "terminated", "valid"), flag),
            "slot": ArraySpec((), "int32"),
        }
        check_memory(
            self.places * (bytes_beside + bytes_of(specs.values())),
            f"a replay buffer of {self.capacity} transitions",
        )
        # Zeros cost nothing until they are written to.
        self.arrays = {
            key: np.zeros((self.rows, self.num_envs, *spec.shape), spec.dtype)
            for key, spec in specs.items()
        }
        self.arrays["slot"][:] = -1
        # Last observations of episodes, [room, ...], and the free positions.
        self._final = {
            key: np.empty((0, *spec.shape), spec.dtype)
            for key, spec in seen.items()
        }
        self._free = np.empty(0, np.int32)
        self._final_bytes = bytes_of(seen.values())
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
        arrays = [*self.arrays.values(), *self._final.values()]
        return sum(array.nbytes for array in arrays)

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
                array[kept] = self._final[key][slot[kept]]
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
        final = self._by_key(trajectory, f"{_FINAL}{_OBSERVATION}")
        index = np.asarray(trajectory.final_index, np.int64)
        steps = len(given["reward"])
        for key, array in given.items():
            rows = steps + 1 if key in self.observation else steps
            self._check_fits(key, key, array, (rows, self.num_envs))
        for key, array in final.items():
            self._check_fits(f"{_FINAL}{key}", key, array, index.shape)
        if not given["ended"].reshape(-1)[index].all():
            raise ValueError(
                "Expected final_index to name steps that ended an episode. "
                f"Received: final_index={index}"
            )
        return given, final, index

    def _by_key(
        self, trajectory: Trajectory, name: str
    ) -> dict[str, np.ndarray]:
        """Returns the arrays of an attribute, keyed by their names here."""
        given = dict(named_leaves(getattr(trajectory, name), _OBSERVATION))
        if [*given] != self.observation:
            raise ValueError(
                f"Expected {name} of the arrays {self.observation}. "
                f"Received: {[*given]}"
            )
        return {key: np.asarray(array) for key, array in given.items()}

    def _check_fits(
        self, name: str, key: str, array: np.ndarray, leading: tuple[int, ...]
    ) -> None:
        """Raises an error for another shape, or an unsafe cast."""
        own = self.arrays[key]
        shape = (*leading, *own.shape[2:])
        castable = np.can_cast(array.dtype, own.dtype, "same_kind")
        if array.shape != shape or not castable:
            raise ValueError(
                f"Expected {name} of shape {shape} and dtype {own.dtype}. "
                f"Received: shape {array.shape} and dtype {array.dtype}"
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
        unused = slot[slot >= 0]
        if unused.size:
            self._free = np.concatenate([self._free, unused])
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
        if place.size > self._free.size:
            self._grow_final(place.size)
        slot, self._free = np.split(self._free, [place.size])
        for key, array in self._final.items():
            array[slot] = observation[key]
        self.flat("slot")[place] = slot

    def _grow_final(self, count: int) -> None:
        """Makes room for more last observations, whose number is unknown."""
        old = len(self._final[self.observation[0]])
        needed = old - self._free.size + count
        room = max(needed, old * 3 // 2, _FEWEST_FINAL)
        check_memory(
            room * self._final_bytes,
            f"the last observations of {room} episodes",
        )
        for key, array in self._final.items():
            grown = np.empty((room, *array.shape[1:]), array.dtype)
            grown[:old] = array
            self._final[key] = grown
        added = np.arange(old, room, dtype=np.int32)
        self._free = np.concatenate([self._free, added])

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

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the filled rows and the last observations.

        Args:
            log: `SegmentLog` or None. Receives the new steps; the state then
                holds only the name of the log. Defaults to `None`: all steps
                are returned.
        """
        if log is not None:
            self._append_to(log)
            return {"log": self._log_name, "steps": self.time}
        filled = self.filled(self.time)
        rows = {key: a[:filled].copy() for key, a in self.arrays.items()}
        return _with_final(rows, self._final) | {"steps": self.time}

    def _append_to(self, log: SegmentLog) -> None:
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
        return _with_final(rows, self._final) | {"first": np.array(first)}

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. See `get_state`. Defaults to `None`.

        Raises:
            ValueError: If the state does not fit; the ring is then unchanged.
        """
        log_name = self._log_name
        if "log" in state:
            assert log is not None
            log_name = state["log"]
            parts = log.read(log_name)
            state = state | _together(parts, int(state["steps"]), self.rows)
        filled = self.filled(state["steps"])
        given = {
            key: np.asarray(state[key], own.dtype)
            for key, own in self.arrays.items()
        }
        for key, array in given.items():
            self._check_fits(key, key, array, (filled, self.num_envs))
        self._keep_late(0, self.rows)
        for key, own in self.arrays.items():
            own[:filled] = given[key]
            own[filled:] = -1 if key == "slot" else 0
        for key, own in self._final.items():
            final = np.asarray(state[f"{_FINAL}{key}"], own.dtype)
            self._final[key] = final.reshape(-1, *own.shape[1:]).copy()
        self._free = np.empty(0, np.int32)
        self.time = int(state["steps"])
        self._log_name = log_name
        self._rewritten = []


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
    >>> np.concatenate([*late.chunks()]).tolist()
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
            `[n, ...]`, copied.
        """
        row_bytes = max(1, self._array[:1].nbytes)
        size = max(1, _CHUNK_BYTES // row_bytes)
        while self._read < self.shape[0]:
            first, stop = self._read, min(self._read + size, self.shape[0])
            with self._lock:
                rows = np.arange(first, stop) + self._first
                chunk = self._array.take(rows, 0, mode="wrap")
                for index in range(first, stop) if self._kept else ():
                    if index in self._kept:
                        chunk[index - first] = self._kept.pop(index)
                self._read = stop
            yield chunk


def _with_final(
    rows: Mapping[str, Any], final: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Adds the last observations that `slot` refers to, and renumbers it.

    Args:
        rows: dict of `[rows, B, ...]`. Its `slot` is changed.
        final: dict of `[room, ...]`. The last observations.
    """
    slot = cast(np.ndarray, rows["slot"])
    kept = slot >= 0
    chosen = slot[kept]
    slot[kept] = np.arange(chosen.size)
    found = {f"{_FINAL}{key}": array[chosen] for key, array in final.items()}
    return {**rows, **found}


def _together(
    parts: Sequence[Mapping[str, np.ndarray]], steps: int, rows: int
) -> dict[str, np.ndarray]:
    """Combines the parts of a log into the arrays of a ring's state.

    Args:
        parts: Sequence of dicts, as returned by `Ring.steps_from`, from old to
            new. If a step is in several parts, the last one counts.
        steps: int. Number of steps stored.
        rows: int. Rows of the ring.
    """
    newest = parts[-1]
    final = [key for key in newest if key.startswith(_FINAL)]
    whole = {
        key: np.zeros((min(steps + 1, rows), *array.shape[1:]), array.dtype)
        for key, array in newest.items()
        if array.ndim and key not in final
    }
    whole["slot"][:] = -1
    before = 0
    for part in parts:
        step = int(part["first"]) + np.arange(len(part["slot"]))
        (here,) = np.nonzero((step > steps - rows) & (step <= steps))
        place = step[here] % rows
        for key, array in whole.items():
            array[place] = part[key][here]
        own = part["slot"][here]
        whole["slot"][place] = np.where(own >= 0, own + before, -1)
        before += len(part[final[0]])
    return _with_final(
        whole,
        {
            key.removeprefix(_FINAL): np.concatenate([p[key] for p in parts])
            for key in final
        },
    )


def bytes_of(specs: Iterable[ArraySpec]) -> int:
    """Returns the bytes of one array of each spec.

    Args:
        specs: Iterable of `ArraySpec`.

    Returns:
        int.
    """
    return sum(
        int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize
        for spec in specs
    )


def available_memory() -> int | None:
    """Returns the bytes of memory available without swapping.

    If the system does not report them, these are the bytes of the machine.

    Returns:
        int, or `None` if the system reports neither.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            sizes = dict(line.split(":") for line in file)
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
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
