"""Where a replay buffer keeps its transitions."""

from typing import Any

import numpy as np

from keras_rl2.arguments import check_in_range
from keras_rl2.arguments import check_positive
from keras_rl2.array_spec import ArraySpec
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.final_observations import FinalObservations
from keras_rl2.data.final_observations import Layout
from keras_rl2.data.final_observations import check_final_index
from keras_rl2.data.replay_sizes import check_settings
from keras_rl2.data.ring_arrays import RingArrays
from keras_rl2.data.ring_log import StateLog
from keras_rl2.data.ring_log import new_name
from keras_rl2.data.ring_log import together
from keras_rl2.data.windows import complete_windows
from keras_rl2.trees import Tree


class TransitionRing:
    """Rows of steps, and which of them begin a transition that is complete.

    The storage of `ReplayBuffer`, which says what is stored and draws from
    it. Steps are numbered from the first one on; step t lies in row t % rows.
    A transition's number is t * B + b, its place in the ring that modulo the
    number of places. One row more than there are steps is held, since the
    observation after the newest step has its row already.

    A transition can be drawn as soon as its window is complete, until its row
    is overwritten. What is asked by place or by number are arrays of them.

    Args:
        capacity: int. Transitions to hold, of all environments together,
            rounded down to a multiple of their number.
        num_envs: int. Environments, B.
        observation: tree of `ArraySpec`. Shapes and dtypes of one observation.
        action: tuple. Shape of one action, and its dtype.
        n_step: int. Rewards of a transition, n.
        gamma: float. Discount factor.
        bytes_beside: int. What a transition takes elsewhere, of the same
            memory. Defaults to `0`.
        changes: list or None. Where the places of transitions that came or
            went are appended, for somebody who keeps a record of them.
            Defaults to `None`.

    Attributes:
        capacity: int. Transitions that are held when the ring is full.
        places: int. Transitions that there are rows for: one row more.

    Raises:
        ValueError: If an argument is out of bounds.
        MemoryError: If the machine has not got the memory.
    """

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        observation: Tree[ArraySpec],
        action: Layout,
        n_step: int,
        gamma: float,
        *,
        bytes_beside: int = 0,
        changes: list[np.ndarray] | None = None,
    ) -> None:
        check_positive(capacity=capacity, num_envs=num_envs, n_step=n_step)
        check_in_range(gamma=(gamma, 0.0, 1.0))
        if capacity < num_envs * n_step:
            raise ValueError(
                f"Expected a capacity of at least num_envs * n_step = "
                f"{num_envs * n_step}, for one transition of each environment. "
                f"Received: capacity={capacity}"
            )
        self._rows = int(capacity) // int(num_envs) + 1
        self.capacity = (self._rows - 1) * int(num_envs)
        self.places = self._rows * int(num_envs)
        self.num_envs = int(num_envs)
        self.n_step = int(n_step)
        self.gamma = float(gamma)
        self._discounts = self.gamma ** np.arange(n_step + 1.0)
        self._steps = 0
        self._drawable = 0
        self._changes = changes
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
                # Steps of the window, k, and 0 while it cannot be drawn.
                "span": ((), np.min_scalar_type(self.n_step)),
                # Where the true next observation is kept, if it is; or -1.
                "slot": ((), np.int32),
            },
            bytes_beside,
        )
        self._arrays["slot"][:] = -1
        # Where each array of an observation is stored, in order.
        self._keys = [*self._arrays.observation]
        self._final = FinalObservations(self._arrays.observation)
        self._log_name = new_name()
        # The first step of what was discarded, and how many there were then.
        self._discarded: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """Returns the number of transitions that can be drawn."""
        return self._drawable

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

    # Asking.

    def drawable(self, place: np.ndarray) -> np.ndarray:
        """Says which transitions can be drawn.

        Args:
            place: `[M]` ints.

        Returns:
            `[M]` bool.
        """
        drawable: np.ndarray = self._arrays.flat("span").take(place) > 0
        return drawable

    def drawable_places(self) -> np.ndarray:
        """Returns the places of all transitions that can be drawn, in order."""
        return np.flatnonzero(self._arrays["span"])

    def index_of(self, place: np.ndarray) -> np.ndarray:
        """Returns the numbers of transitions by their places.

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

    def gather(self, place: np.ndarray) -> dict[str, Any]:
        """Returns transitions by their places.

        Args:
            place: `[M]` ints, of transitions that can be drawn.

        Returns:
            dict as of `ReplayBuffer.sample`, without numbers, copied.
        """
        arrays = self._arrays
        # `take` goes by places in the ring where nothing is said of an axis:
        # [rows, B] -> [M].
        length = arrays["span"].take(place).astype(np.int64)
        following = place + length * self.num_envs
        last = following - self.num_envs
        # After the last place comes the first one: `take` sees to it, in less
        # time than a division of each.
        terminated = arrays["terminated"].take(last, mode="wrap")
        slot = arrays["slot"].take(last, mode="wrap")
        (kept,) = np.nonzero(slot >= 0)
        observation, next_observation = [], []
        for key in self._keys:
            stored = self._arrays.flat(key)
            # [rows * B, ...] -> [M, ...]
            observation.append(stored.take(place, axis=0))
            following_one = stored.take(following, axis=0, mode="wrap")
            if kept.size:
                following_one[kept] = self._final.arrays[key][slot[kept]]
            next_observation.append(following_one)
        discount = self._discounts.take(length)
        discount[terminated] = 0.0
        return {
            "observation": arrays.as_tree(observation),
            "action": self._arrays.flat("action").take(place, axis=0),
            "reward": arrays["reward"].take(place),
            "discount": discount.astype(np.float32),
            "next_observation": arrays.as_tree(next_observation),
        }

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

    def gather_ahead(self, place: np.ndarray) -> dict[str, np.ndarray]:
        """Returns transitions whose next observations are looked up elsewhere.

        Args:
            place: `[M, L]` ints. Of steps, transitions or not.

        Returns:
            dict of `[M, L]`: `action`, `reward` and `discount` as `gather`
            gives them, `span` int32, the steps from each to the one that it
            bootstraps from, and `weight` float32, 0 where there is no
            transition, or its next observation is kept apart.
        """
        arrays = self._arrays
        length = arrays["span"].take(place, mode="wrap").astype(np.int64)
        last = place + (length - 1) * self.num_envs
        terminated = arrays["terminated"].take(last, mode="wrap")
        apart = arrays["slot"].take(last, mode="wrap") >= 0
        discount = self._discounts.take(length)
        discount[terminated] = 0.0
        return {
            "action": self._arrays.flat("action").take(place, 0, mode="wrap"),
            "reward": arrays["reward"].take(place, mode="wrap"),
            "discount": discount.astype(np.float32),
            "span": length.astype(np.int32),
            "weight": ((length > 0) & (terminated | ~apart)).astype(np.float32),
        }

    # Storing.

    def extend(self, trajectory: Trajectory) -> None:
        """Stores T steps of all environments; see `ReplayBuffer.extend`."""
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
        self._cut_where_adrift({key: given[key][0] for key in self._keys})
        steps, start = len(given["reward"]), 0
        while start < steps:
            row = self._steps % self._rows
            stop = min(steps, start + self._rows - row)
            self._write(given, start, stop)
            step = final_index // self.num_envs
            (here,) = np.nonzero((step >= start) & (step < stop))
            first = (row - start) * self.num_envs
            self._keep(
                first + final_index[here],
                {key: array[here] for key, array in final.items()},
            )
            self._complete(stop - start)
            start = stop

    def cut(self, envs: np.ndarray | None = None) -> None:
        """Says that the next step does not follow on the last one.

        Args:
            envs: `[B]` bool. Which environments; None for all. Defaults to
                `None`.
        """
        every = np.ones(self.num_envs, np.bool_)
        self._cut(every if envs is None else envs)

    def discard_episodes(self, envs: np.ndarray) -> None:
        """Takes the episodes under way out of reach, of some environments.

        Args:
            envs: `[B]` bool.
        """
        filled = min(self._steps, self._rows - 1)
        oldest = self._steps - filled
        self._discarded = [d for d in self._discarded if d[1] > oldest]
        rows = np.arange(oldest, self._steps) % self._rows
        for env in np.flatnonzero(envs):
            ends = np.flatnonzero(self._arrays["ended"][rows, env])
            first = ends[-1] + 1 if ends.size else 0
            self._discarded.append((int(oldest + first), self._steps))
            under_way = rows[first:]
            self._arrays["valid"][under_way, env] = False
            span = self._arrays["span"][under_way, env]
            self._arrays["span"][under_way, env] = 0
            place = under_way[span > 0] * self.num_envs + env
            self._drawable -= place.size
            self._note(place)

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
        for key in self._keys:
            self._arrays[key][following] = given[key][stop]

    def _close(self, rows: slice) -> None:
        """Takes transitions whose rows are to be overwritten out of reach."""
        span = self._arrays["span"][rows]
        place = np.flatnonzero(span) + rows.start * self.num_envs
        if place.size:
            span[:] = 0
            self._drawable -= place.size
            self._note(place)

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

    def _complete(self, steps: int) -> None:
        """Opens transitions whose windows the last `steps` steps closed."""
        first = self._steps - min(steps + self.n_step - 1, self._rows - 1)
        rows = np.arange(max(first, 0), self._steps) % self._rows
        arrays = self._arrays
        complete, total, length = complete_windows(
            arrays["reward"][rows],
            arrays["ended"][rows],
            arrays["valid"][rows] & (arrays["span"][rows] == 0),
            self.n_step,
            self.gamma,
        )
        step, env = np.nonzero(complete)
        # [K] rows and environments -> [K] places
        place = rows[step] * self.num_envs + env
        # No window that is still open reaches back to these rewards.
        self._arrays.flat("reward")[place] = total[complete]
        self._arrays.flat("span")[place] = length[complete]
        self._drawable += place.size
        self._note(place)

    def _cut_where_adrift(self, observation: dict[str, np.ndarray]) -> None:
        """Cuts episodes that do not go on with the observation expected."""
        if not self._steps:
            return
        adrift = np.zeros(self.num_envs, np.bool_)
        for key, given in observation.items():
            stored = self._arrays[key]
            expected = stored[self._steps % self._rows]
            given = given.astype(stored.dtype, copy=False)
            if not np.array_equal(expected, given):
                # [B, ...] -> [B, numbers of one observation]
                differs = (expected != given).reshape(self.num_envs, -1)
                adrift |= differs.any(axis=1)
        if adrift.any():
            self._cut(adrift)

    def _cut(self, envs: np.ndarray) -> None:
        """Truncates the episodes of some environments after the last step."""
        if not self._steps:
            return
        row = (self._steps - 1) % self._rows
        following = self._steps % self._rows
        (env,) = np.nonzero(
            envs & self._arrays["valid"][row] & (self._arrays["slot"][row] < 0)
        )
        self._keep(
            row * self.num_envs + env,
            {key: self._arrays[key][following, env] for key in self._keys},
        )
        self._arrays["ended"][row, env] = True
        self._complete(0)

    def _note(self, place: np.ndarray) -> None:
        """Notes which transitions came or went, if anybody wants to know."""
        if self._changes is not None and place.size:
            self._changes.append(place)

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
        # Rewards of the last steps go on being added up, and the end of the
        # last one may have been said since.
        self._discarded = [d for d in self._discarded if d[1] >= stop]
        since = min(
            [stop - self.n_step, *(first for first, _ in self._discarded)]
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

    def steps_from(self, first: int) -> dict[str, np.ndarray]:
        """Returns steps from one on, copied.

        Args:
            first: int. The first step that is wanted, one that is held.

        Returns:
            dict of `[S + 1, B, ...]`, one row more for the observation after
            the newest step; the last observations `[K, ...]`, which `slot`
            numbers; and `first`, a number.
        """
        place = np.arange(first, self._steps + 1) % self._rows
        rows = self._arrays.rows_at(place)
        kept = rows["slot"] >= 0
        chosen = rows["slot"][kept]
        by_age = np.argsort(self._final.places()[chosen])
        chosen = chosen[by_age]
        rank = np.empty_like(chosen)
        rank[by_age] = np.arange(chosen.size)
        rows["slot"][kept] = rank
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
        self._discarded = []
        self._drawable = int(np.count_nonzero(self._arrays["span"]))

    def _settings(self) -> dict[str, float]:
        """Returns what a state must have in common with its ring."""
        return {
            "capacity": self.capacity,
            "num_envs": self.num_envs,
            "n_step": self.n_step,
            "gamma": self.gamma,
        }
