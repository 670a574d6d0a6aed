"""The most recent steps: arrays in a ring, and how they are saved."""

import contextlib
import gc
import secrets
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

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
# Of the rows that are copied at a time.
_PART_BYTES = 2**26
# From which on garbage may hold as much.
_LARGE_BYTES = 10**8


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
        self.arrays: dict[str, np.ndarray] = {}
        for key, spec in specs.items():
            shape = (self.rows, self.num_envs, *spec.shape)
            self.arrays[key] = np.zeros(shape, spec.dtype)
        self.arrays["slot"][:] = -1
        # Last observations of episodes, [room, ...], and the free positions.
        self._final: dict[str, np.ndarray] = {}
        for key, spec in seen.items():
            self._final[key] = np.empty((0, *spec.shape), spec.dtype)
        self._free = np.empty(0, np.int32)
        self._final_bytes = bytes_of(seen.values())
        # A unique name, which the training does not depend on.
        self._log_name = f"replay-{secrets.token_hex(8)}"

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
        """Returns the newest numbers of steps by their places, `[M]` int64."""
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

        These are arrays of steps `[T, B, ...]`, of observations
        `[T + 1, B, ...]`; last observations `[E, ...]`; and their steps,
        `t * B + b`, `[E]`.
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
        given = {}
        tree = getattr(trajectory, name)
        for key, array in named_leaves(tree, _OBSERVATION):
            given[key] = np.asarray(array)
        if [*given] != self.observation:
            raise ValueError(
                f"Expected {name} of the arrays {self.observation}. "
                f"Received: {[*given]}"
            )
        return given

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
        """Writes the steps from `start` up to `stop`, to the last row at most.

        The arrays are those returned by `checked`.
        """
        row, count = self.row, stop - start
        rows = slice(row, row + count)
        slot = self.arrays["slot"][rows]
        unused = slot[slot >= 0]
        if unused.size:
            self._free = np.concatenate([self._free, unused])
        slot[:] = -1
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
        """Stores last observations `[K, ...]` separately, by their places."""
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

    # Saving.

    def filled(self, steps: int) -> int:
        """Returns the number of filled rows after a number of steps."""
        return min(int(steps) + 1, self.rows)

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the filled rows and the last observations.

        With a log, which receives the new steps, only its name is returned.
        """
        if log is None:
            rows = np.arange(self.filled(self.time))
            return self._copies(rows) | {"steps": self.time}
        oldest = max(0, self.time - self.rows + 1)
        first = max(log.stop(self._log_name) - self._unsettled, oldest)
        row = sum(array[0].nbytes for array in self.arrays.values())
        size = max(_PART_BYTES // row, 1)
        starts = range(first, max(self.time, first + 1), size)
        log.append(
            self._log_name,
            (
                (stop, self._part(start, stop))
                for start in starts
                for stop in [min(start + size, self.time)]
            ),
        )
        log.forget(self._log_name, oldest)
        return {"log": self._log_name, "steps": self.time}

    def _part(self, start: int, stop: int) -> dict[str, Any]:
        """Returns steps, and one row more for the observation after them."""
        rows = np.arange(start, stop + 1) % self.rows
        return self._copies(rows) | {"first": np.array(start)}

    def _copies(self, rows: np.ndarray) -> dict[str, Any]:
        """Returns rows, and the last observations that they refer to."""
        copied = {key: array[rows] for key, array in self.arrays.items()}
        chosen = _renumber(copied["slot"])
        for key, array in self._final.items():
            copied[f"{_FINAL}{key}"] = array[chosen]
        return copied

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores a state, or raises a `ValueError` and changes nothing."""
        steps = int(state["steps"])
        filled = self.filled(steps)
        if "log" in state:
            assert log is not None
            fresh = self.time == 0
            final = self._write_parts(log.read(state["log"]), steps)
            self._log_name = state["log"]
        else:
            given = {
                key: np.asarray(state[key], own.dtype)
                for key, own in self.arrays.items()
            }
            for key, array in given.items():
                self._check_fits(key, key, array, (filled, self.num_envs))
            fresh = self.time == 0
            for key, own in self.arrays.items():
                own[:filled] = given[key]
            final = {key: state[f"{_FINAL}{key}"] for key in self._final}
        # Rows that were never written to take no memory yet.
        for key, own in self.arrays.items() if not fresh else ():
            own[filled:] = -1 if key == "slot" else 0
        for key, own in self._final.items():
            array = np.asarray(final[key], own.dtype)
            self._final[key] = array.reshape(-1, *own.shape[1:]).copy()
        self._free = np.empty(0, np.int32)
        self.time = steps

    def _write_parts(
        self, parts: Iterable[Mapping[str, np.ndarray]], steps: int
    ) -> dict[str, np.ndarray]:
        """Writes parts of a log, of which the last counts for each step.

        Returns:
            Last observations, in the order of `slot`.
        """
        final: dict[str, list[np.ndarray]] = {key: [] for key in self._final}
        before = 0
        for part in parts:
            step = int(part["first"]) + np.arange(len(part["slot"]))
            (here,) = np.nonzero((step > steps - self.rows) & (step <= steps))
            place = step[here] % self.rows
            for key, own in self.arrays.items():
                self._check_fits(
                    *(key, key, part[key], (len(step), self.num_envs))
                )
            # Nothing counts until all is written.
            self.time = 0
            for key, own in self.arrays.items():
                own[place] = part[key][here]
            slot = self.arrays["slot"]
            slot[place] += before * (slot[place] >= 0).astype(np.int32)
            for key, found in final.items():
                found.append(part[f"{_FINAL}{key}"])
            before += len(part[f"{_FINAL}{self.observation[0]}"])
        chosen = _renumber(self.arrays["slot"][: self.filled(steps)])
        return {k: np.concatenate(each)[chosen] for k, each in final.items()}


def _renumber(slot: np.ndarray) -> np.ndarray:
    """Numbers the positions that are in use, and returns the old ones."""
    kept = slot >= 0
    chosen: np.ndarray = slot[kept]
    slot[kept] = np.arange(chosen.size)
    return chosen


def bytes_of(specs: Iterable[ArraySpec]) -> int:
    """Returns the bytes of one array of each spec."""
    total = 0
    for spec in specs:
        total += int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize
    return total


def available_memory() -> int | None:
    """Returns the bytes available without swapping, as Linux reports them."""
    with (
        contextlib.suppress(OSError),
        open("/proc/meminfo", encoding="ascii") as file,
    ):
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def check_memory(needed: int, purpose: str) -> None:
    """Raises a `MemoryError` unless the bytes for a purpose are available."""
    if needed > _LARGE_BYTES:
        # Agent and dataset of an earlier training refer to each other.
        gc.collect()
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"Expected {purpose} to fit into the available memory, "
            f"{available / 2**30:.2f} GiB. Received: one that needs "
            f"{needed / 2**30:.2f} GiB"
        )
