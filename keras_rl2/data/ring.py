"""The most recent steps: arrays in a ring, and how they are saved."""

import secrets
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.frame_stacks import FrameStacks
from keras_rl2.data.frame_stacks import can_be_stack
from keras_rl2.data.frame_stacks import follows
from keras_rl2.data.frame_stacks import frame_spec
from keras_rl2.data.memory import bytes_of
from keras_rl2.data.memory import check_memory
from keras_rl2.data.row_pool import RowPool
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves

# Common prefix of the names of arrays in a tree of observations.
_OBSERVATION = "observation"
_FINAL = "final_"
# Rows of at most so many bytes are copied at a time.
_PART_BYTES = 2**26


class Ring:
    """Rows of steps of all environments; new rows overwrite the oldest.

    Steps are numbered from the first one; step t is in row t % rows. The step
    of environment b has the number t * B + b; its *place* is this number modulo
    the number of places. There is one row more than steps, for the observation
    after the newest step.

    Each array of an observation is stored by itself, under its path. If those
    of the first steps are stacks of frames, each frame is stored once. If an
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
        arrays: dict of `[rows, B, ...]`, without stacks of frames.
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
        specs = dict(named_leaves(observation, _OBSERVATION))
        self.observation = [*specs]
        flag = ArraySpec((), "bool")
        self._specs = {
            **specs,
            **others,
            "reward": ArraySpec((), "float32"),
            **dict.fromkeys(("ended", "terminated", "valid"), flag),
            "slot": ArraySpec((), "int32"),
        }
        self._stacks: dict[str, FrameStacks] = {}
        self.arrays: dict[str, np.ndarray] = {}
        # Observations may be stacks until the first ones are there.
        stacked = {key for key, spec in specs.items() if can_be_stack(spec)}
        least = bytes_of(
            frame_spec(spec) if key in stacked else spec
            for key, spec in self._specs.items()
        )
        check_memory(
            self.places * (bytes_beside + least),
            f"a replay buffer of {self.capacity} transitions",
        )
        for key in self._specs:
            self._set_form(key, key in stacked)
        self.arrays["slot"][:] = -1
        # Last observations of episodes.
        self._final = RowPool(specs, "the last observations of episodes:")
        # A unique name, which the training does not depend on.
        self._log_name = f"replay-{secrets.token_hex(8)}"

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
        stacks = sum(each.nbytes for each in self._stacks.values())
        return stacks + sum(array.nbytes for array in arrays)

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
        # It is made each time: a copy of a view is no longer a view.
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
        arrays = {key: self.read(key, place) for key in self.observation}
        if slot is not None and (final := np.flatnonzero(slot >= 0)).size:
            for key, array in arrays.items():
                array[final] = self._final.arrays[key][slot[final]]
        return with_leaves(self._form, arrays.values())

    def read(self, key: str, place: np.ndarray) -> np.ndarray:
        """Returns an array of observations by their places, copied."""
        if key not in self._stacks:
            # `take` with "wrap" is faster than a division of each place.
            return self.flat(key).take(place, 0, mode="wrap")
        row, env = np.divmod(place, self.num_envs)
        step = self.time - (self.time - row) % self.rows
        return self._stacks[key].read(step, env)

    def checked(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
        """Checks a trajectory, and returns the arrays that `write` takes.

        These are arrays of steps `[T, B, ...]`, of observations
        `[T + 1, B, ...]`; last observations `[E, ...]`; and their steps,
        `t * B + b`, `[E]`.
        """
        steps = {
            **self._by_key(trajectory, _OBSERVATION),
            "action": np.asarray(trajectory.action),
            "reward": np.asarray(trajectory.reward),
            "terminated": np.asarray(trajectory.terminated),
            "ended": np.logical_or(trajectory.terminated, trajectory.truncated),
            "valid": np.asarray(trajectory.valid),
        }
        final = self._by_key(trajectory, f"{_FINAL}{_OBSERVATION}")
        index = np.asarray(trajectory.final_index, np.int64)
        for key, array in steps.items():
            rows = len(steps["reward"]) + (key in self.observation)
            _check_fits(key, array, (rows, self.num_envs), self._specs[key])
        for key, array in final.items():
            name = f"{_FINAL}{key}"
            _check_fits(name, array, index.shape, self._specs[key])
        if not steps["ended"].reshape(-1)[index].all():
            raise ValueError(
                "Expected final_index to name steps that ended an episode. "
                f"Received: final_index={index}"
            )
        return steps, final, index

    def _by_key(
        self, trajectory: Trajectory, name: str
    ) -> dict[str, np.ndarray]:
        """Returns the arrays of an attribute, keyed by their names here."""
        tree = map_leaves(np.asarray, getattr(trajectory, name))
        arrays = dict(named_leaves(tree, _OBSERVATION))
        if [*arrays] != self.observation:
            raise ValueError(
                f"Expected {name} of the arrays {self.observation}. "
                f"Received: {[*arrays]}"
            )
        return arrays

    def write(
        self,
        steps: Mapping[str, np.ndarray],
        final: Mapping[str, np.ndarray],
        final_index: np.ndarray,
        start: int,
        stop: int,
    ) -> None:
        """Writes the steps from `start` up to `stop`, to the last row at most.

        The arrays are those returned by `checked`.
        """
        if not self.time:
            self._find_stacks(steps)
        row, count = self.row, stop - start
        rows = slice(row, row + count)
        slot = self.arrays["slot"][rows]
        self._final.remove(slot)
        slot[:] = -1
        for key, array in steps.items():
            if key in self._stacks:
                self._stacks[key].write(self.time, array[start : stop + 1])
            else:
                self.arrays[key][rows] = array[start:stop]
        self.time += count
        for key in self.arrays.keys() & self.observation:
            self.arrays[key][self.row] = steps[key][stop]
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
        self.flat("slot")[place] = self._final.add(observation)

    def _find_stacks(self, steps: Mapping[str, np.ndarray]) -> None:
        """Stores observations as stacks if those of the first steps are."""
        going_on = np.logical_and(steps["valid"], ~steps["ended"])
        for key in [*self._stacks]:
            found = follows(steps[key])[going_on]
            self._set_form(key, bool(found.size and found.all()))

    def _set_form(self, key: str, stacked: bool) -> None:
        """Makes the memory of an array, as stacks of frames or as it is."""
        spec = self._specs[key]
        if stacked:
            self.arrays.pop(key, None)
            self._stacks[key] = FrameStacks(self.rows, self.num_envs, spec)
        elif key not in self.arrays:
            check_memory(
                self.places * bytes_of([spec]),
                f"{key} of {self.capacity} transitions",
            )
            self._stacks.pop(key, None)
            # Zeros cost nothing until they are written to.
            shape = (self.rows, self.num_envs, *spec.shape)
            self.arrays[key] = np.zeros(shape, spec.dtype)

    def filled(self, steps: int) -> int:
        """Returns the number of filled rows after a number of steps."""
        return min(int(steps) + 1, self.rows)

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the filled rows and the last observations.

        With a log, which receives the new steps, only its name is returned.
        """
        oldest = max(0, self.time - self.rows + 1)
        if log is None:
            return self._part(oldest, self.time) | {"steps": self.time}
        first = max(log.stop(self._log_name) - self._unsettled, oldest)
        log.append(self._log_name, self._parts(first))
        log.forget(self._log_name, oldest)
        return {"log": self._log_name, "steps": self.time}

    def _parts(self, first: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields the steps from the first on, in parts of limited size."""
        size = max(_PART_BYTES // (self.nbytes // self.rows), 1)
        for start in range(first, max(self.time, first + 1), size):
            stop = min(start + size, self.time)
            yield stop, self._part(start, stop)

    def _part(self, start: int, stop: int) -> dict[str, Any]:
        """Returns steps, and one row more for the observation after them."""
        rows = np.arange(start, stop + 1) % self.rows
        part = {key: array[rows] for key, array in self.arrays.items()}
        chosen = _renumber(part["slot"])
        for key, array in self._final.arrays.items():
            part[f"{_FINAL}{key}"] = array[chosen]
        for key, stacks in self._stacks.items():
            part |= stacks.get_part(key, start, stop)
        return part | {"first": np.array(start)}

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores a state, or raises a `ValueError` and changes nothing."""
        steps = int(state["steps"])
        parts: Iterable[Mapping[str, np.ndarray]] = [state]
        if "log" in state:
            assert log is not None
            parts = log.read(state["log"])
        unused = self.time == 0
        self._final.set_rows(self._write_parts(parts, steps))
        # Rows that were never written to take no memory yet.
        for key, array in self.arrays.items() if not unused else ():
            array[self.filled(steps) :] = -1 if key == "slot" else 0
        self._log_name = state.get("log", self._log_name)
        self.time = steps

    def _check_part(self, part: Mapping[str, np.ndarray]) -> None:
        """Raises a `ValueError` if the arrays of a part do not fit."""
        leading = len(part["slot"]), self.num_envs
        for key, spec in self._specs.items():
            name = f"frame_{key}"
            if name in part:
                _check_fits(name, part[name], leading, frame_spec(spec))
            else:
                _check_fits(key, part[key], leading, spec)

    def _write_parts(
        self, parts: Iterable[Mapping[str, np.ndarray]], steps: int
    ) -> dict[str, np.ndarray]:
        """Writes parts of a state, of which the last counts for each step.

        Returns:
            Last observations, in the order of `slot`.
        """
        final: dict[str, list[np.ndarray]] = {k: [] for k in self.observation}
        before = 0
        for number, part in enumerate(parts):
            step = int(part["first"]) + np.arange(len(part["slot"]))
            self._check_part(part)
            if number == 0:
                for key in self.observation:
                    self._set_form(key, f"frame_{key}" in part)
            # Nothing counts until all is written.
            self.time = 0
            (here,) = np.nonzero((step > steps - self.rows) & (step <= steps))
            place = step[here] % self.rows
            for key, array in self.arrays.items():
                array[place] = part[key][here]
            for key, stacks in self._stacks.items():
                oldest = steps - stacks.rows
                (rows,) = np.nonzero((step > oldest) & (step <= steps))
                stacks.set_part(key, rows, step[rows], part)
            slot = self.arrays["slot"]
            slot[place] += before * (slot[place] >= 0).astype(np.int32)
            for key, found in final.items():
                found.append(part[f"{_FINAL}{key}"])
            before += len(part[f"{_FINAL}{self.observation[0]}"])
        chosen = _renumber(self.arrays["slot"][: self.filled(steps)])
        return {k: np.concatenate(each)[chosen] for k, each in final.items()}


def _check_fits(
    name: str, array: np.ndarray, leading: tuple[int, ...], spec: ArraySpec
) -> None:
    """Raises an error for another shape, or an unsafe cast."""
    shape = (*leading, *spec.shape)
    castable = np.can_cast(array.dtype, spec.dtype, "same_kind")
    if array.shape != shape or not castable:
        raise ValueError(
            f"Expected {name} of shape {shape} and dtype {spec.dtype}. "
            f"Received: shape {array.shape} and dtype {array.dtype}"
        )


def _renumber(slot: np.ndarray) -> np.ndarray:
    """Numbers the positions that are in use, and returns the old ones."""
    used = slot >= 0
    chosen: np.ndarray = slot[used]
    slot[used] = np.arange(chosen.size)
    return chosen
