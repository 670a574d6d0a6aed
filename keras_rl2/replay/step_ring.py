"""Where steps are kept, the newest in the place of the oldest."""

import abc
from collections.abc import Mapping
from typing import Any
from typing import cast

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.files.late_rows import LateRows
from keras_rl2.files.ring_log import StateLog
from keras_rl2.files.ring_log import new_name
from keras_rl2.files.ring_log import together
from keras_rl2.replay.final_observations import FinalObservations
from keras_rl2.replay.final_observations import Layout
from keras_rl2.replay.final_observations import check_final_index
from keras_rl2.replay.replay_sizes import check_settings
from keras_rl2.replay.ring_arrays import RingArrays
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree


class StepRing(abc.ABC):
    """Rows of steps of all environments, and their state as plain data.

    Steps are numbered from the first one on; step t lies in row t % rows.
    What one environment did in it has the number t * B + b, its place in the
    ring that modulo the number of places. One row more than there are steps is
    held, since the observation after the newest step has its row already.

    A subclass says what else is stored of a step, and what has to be done
    before rows are overwritten. What is asked by place are arrays of them.

    Args:
        capacity: int. Steps to hold, of all environments together, rounded
            down to a multiple of their number.
        num_envs: int. Environments, B.
        observation: tree of `ArraySpec`. Shapes and dtypes of one observation.
        action: tuple. Shape of one action, and its dtype.
        others: dict of name -> shape and dtype. What else is stored of a step.
        bytes_beside: int. What a step takes elsewhere, of the same memory.

    Attributes:
        capacity: int. Steps that are held when the ring is full.
        places: int. Steps that there are rows for: one row more.

    Raises:
        MemoryError: If the machine has not got the memory.
    """

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        observation: Tree[ArraySpec],
        action: Layout,
        others: Mapping[str, Layout],
        bytes_beside: int,
    ) -> None:
        self._rows = int(capacity) // int(num_envs) + 1
        self.capacity = (self._rows - 1) * int(num_envs)
        self.places = self._rows * int(num_envs)
        self.num_envs = int(num_envs)
        self._steps = 0
        self._arrays = RingArrays(
            self._rows,
            self.num_envs,
            observation,
            {
                "action": action,
                "reward": ((), np.float32),
                "ended": ((), np.bool_),
                "terminated": ((), np.bool_),
                "valid": ((), np.bool_),
                # Where the true next observation is kept, if it is; or -1.
                "slot": ((), np.int32),
                **others,
            },
            bytes_beside,
        )
        self._arrays["slot"][:] = -1
        # Where each array of an observation is stored, in order.
        self._keys = [*self._arrays.observation]
        self._final = FinalObservations(self._arrays.observation)
        self._log_name = new_name()
        # The first step of what was rewritten, and how many there were then.
        self._rewritten: list[tuple[int, int]] = []

    # What a subclass gives.

    @abc.abstractmethod
    def _close(self, rows: slice) -> None:
        """Does what has to be done before rows are overwritten."""

    @abc.abstractmethod
    def _settings(self) -> dict[str, float]:
        """Returns what a state must have in common with its ring."""

    @property
    @abc.abstractmethod
    def _unsettled(self) -> int:
        """How many of the newest steps later ones may add something to."""

    # Asking.

    @property
    def steps(self) -> int:
        """Environment steps stored so far, those overwritten included."""
        return self._steps * self.num_envs

    @property
    def oldest(self) -> int:
        """Number of the first step that has not been overwritten."""
        return max(0, self._steps - self._rows + 1) * self.num_envs

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, when the ring is full."""
        return self._arrays.nbytes + self._final.nbytes

    def index_of(self, place: np.ndarray) -> np.ndarray:
        """Returns the numbers of steps by their places.

        Args:
            place: `[M]` ints.

        Returns:
            `[M]` int64. The last number that was given to each place.
        """
        newest = self._steps * self.num_envs - 1
        newest_place = newest % self.places
        index: np.ndarray = place + (newest - newest_place)
        # Beyond the newest one are those of the last time around.
        index -= self.places * (place > newest_place)
        return index

    def ends(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Says which steps ended an episode.

        Args:
            place: `[M]` ints.

        Returns:
            `[M]` bool, those that terminated it, and those that ended it in
            any way; copied.
        """
        terminated = self._arrays["terminated"].take(place)
        return terminated, self._arrays["ended"].take(place)

    def gather_observations(self, place: np.ndarray) -> Any:
        """Returns observations by their places, copied.

        Args:
            place: `[M, ...]` ints.

        Returns:
            tree of `[M, ...]`.
        """
        flat = self._arrays.flat
        return self._arrays.as_tree(
            [flat(key).take(place, 0, mode="wrap") for key in self._keys]
        )

    # Storing.

    def _checked(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
        """Returns what is stored of a trajectory, or refuses all of it.

        Args:
            trajectory: `Trajectory` of T steps.

        Returns:
            Arrays of steps `[T, B, ...]`, of observations `[T + 1, B, ...]`;
            last observations `[E, ...]`; and the steps that they belong to,
            `t * B + b`, `[E]`.
        """
        given = {
            **self._arrays.by_key(trajectory.observation, "observation"),
            "action": np.asarray(trajectory.action),
            "reward": np.asarray(trajectory.reward),
            "terminated": np.asarray(trajectory.terminated),
            "ended": np.logical_or(trajectory.terminated, trajectory.truncated),
            "valid": np.asarray(trajectory.valid),
        }
        self._arrays.check_steps(given)
        final = self._arrays.by_key(
            trajectory.final_observation, "final_observation"
        )
        final_index = np.asarray(trajectory.final_index, np.int64)
        if final_index.size or any(map(len, final.values())):
            self._arrays.check_final(final, final_index.size)
            check_final_index(final_index, given["ended"])
        return given, final, final_index

    def _store(
        self,
        given: dict[str, np.ndarray],
        final: dict[str, np.ndarray],
        final_index: np.ndarray,
        start: int,
    ) -> int:
        """Stores steps up to the last row of the ring, as of `_checked`.

        Args:
            given: dict of `[T, B, ...]`.
            final: dict of `[E, ...]`.
            final_index: `[E]` ints.
            start: int. The first step that has not been stored.

        Returns:
            How many have been stored then.
        """
        row = self._steps % self._rows
        stop = min(len(given["reward"]), start + self._rows - row)
        self._write(given, start, stop)
        step = final_index // self.num_envs
        (here,) = np.nonzero((step >= start) & (step < stop))
        first = (row - start) * self.num_envs
        self._keep(
            first + final_index[here],
            {key: array[here] for key, array in final.items()},
        )
        return stop

    def _write(
        self, given: dict[str, np.ndarray], start: int, stop: int
    ) -> None:
        """Writes steps to rows that follow on each other in the ring."""
        row = self._steps % self._rows
        rows = slice(row, row + stop - start)
        self._close(rows)
        slot = self._arrays["slot"][rows]
        self._final.drop(int(np.count_nonzero(slot >= 0)))
        slot[:] = -1
        self._arrays.write(rows, given, start)
        self._steps += stop - start
        following = self._steps % self._rows
        self._close(slice(following, following + 1))
        next_one = {key: given[key] for key in self._keys}
        self._arrays.write(slice(following, following + 1), next_one, stop)

    def _keep(
        self, place: np.ndarray, observation: dict[str, np.ndarray]
    ) -> None:
        """Keeps the true next observations of transitions apart."""
        if not place.size:
            return
        moved = self._final.grow(place.size)
        slot = self._arrays.flat("slot")
        if moved is not None:
            slot[:] = moved[slot]
        slot[place] = self._final.push(observation, place.size)

    # Saving.

    def get_state(self, log: StateLog | None = None) -> dict[str, Any]:
        """Returns rows that are filled, what is kept apart, and settings.

        Args:
            log: `StateLog` or None. Where to add what is new since it was last
                added to; what the state then holds is the name of the log.
                Defaults to `None`: all is returned.
        """
        if log is not None:
            return self._logged(log)
        filled = self.filled(self._steps)
        ages = self._final.places()
        return {
            **self._arrays.first_rows(filled),
            "slot": ages[self._arrays["slot"][:filled]],
            **{
                f"final_{key}": array[self._final.slots]
                for key, array in self._final.arrays.items()
            },
            "steps": self._steps,
            **self._settings(),
        }

    def filled(self, steps: int) -> int:
        """Returns how many rows mean something after a number of steps."""
        return min(int(steps) + 1, self._rows)

    def _logged(self, log: StateLog) -> dict[str, Any]:
        """Adds what is new to a log, and returns what the rest is."""
        oldest = max(self._steps + 1 - self._rows, 0)
        stop = log.stop(self._log_name)
        self._rewritten = [each for each in self._rewritten if each[1] >= stop]
        since = min(
            [stop - self._unsettled, *(first for first, _ in self._rewritten)]
        )
        log.append(
            self._log_name, self._steps, self.steps_from(max(since, oldest))
        )
        log.forget(self._log_name, oldest)
        return {
            "log": self._log_name,
            "steps": self._steps,
            **self._settings(),
        }

    def steps_from(self, first: int) -> dict[str, np.ndarray | LateRows]:
        """Returns steps from one on, copied sooner or later.

        Args:
            first: int. The first step that is wanted, one that is held.

        Returns:
            dict of `[S + 1, B, ...]`, one row more for the observation after
            the newest step; the last observations `[K, ...]`, which `slot`
            numbers; and `first`, a number.
        """
        rows = self._arrays.rows_from(first, self._steps + 1 - first)
        slot = cast(np.ndarray, rows["slot"])
        kept = slot >= 0
        chosen = slot[kept]
        by_age = np.argsort(self._final.places()[chosen])
        chosen = chosen[by_age]
        rank = np.empty_like(chosen)
        rank[by_age] = np.arange(chosen.size)
        slot[kept] = rank
        final = {
            f"final_{key}": array[chosen]
            for key, array in self._final.arrays.items()
        }
        return {**rows, **final, "first": np.array(first)}

    def set_state(
        self, state: dict[str, Any], log: StateLog | None = None
    ) -> None:
        """Takes back what `get_state` gave, or refuses it before any change."""
        check_settings(state, self._settings())
        if "log" in state:
            assert log is not None
            parts = log.read(state["log"])
            state = state | together(parts, int(state["steps"]), self._rows)
            self._log_name = state["log"]
        filled = self.filled(state["steps"])
        given = self._arrays.check_first_rows(state, filled)
        final = {key: np.asarray(state[f"final_{key}"]) for key in self._keys}
        kept = int(np.count_nonzero(given["slot"] >= 0))
        for key, array in final.items():
            if len(array) != kept:
                raise ValueError(
                    f"Expected {kept} final observations. Received: "
                    f"final_{key} of shape {array.shape}"
                )
        self._arrays.set_first_rows(given)
        self._arrays["slot"][filled:] = -1
        self._final.replace(final, kept)
        self._steps = int(state["steps"])
        self._rewritten = []
