"""Where a replay buffer keeps its transitions."""

from typing import Any

import numpy as np

from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import check_positive
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.files.ring_log import StateLog
from keras_rl2.replay.final_observations import Layout
from keras_rl2.replay.step_ring import StepRing
from keras_rl2.replay.windows import complete_windows
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree


class TransitionRing(StepRing):
    """Steps in a ring, and which of them begin a transition that is complete.

    The storage of `ReplayBuffer`, which says what is stored and draws from
    it. A transition has the number and the place of its first step. It can be
    drawn as soon as its window is complete, until its row is overwritten. What
    is asked by place or by number are arrays of them.

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
        n_step: int. Rewards of a transition, n.
        gamma: float. Discount factor.

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
        super().__init__(
            capacity,
            num_envs,
            observation,
            action,
            # Steps of the window, k, and 0 while it cannot be drawn.
            {"span": ((), np.min_scalar_type(int(n_step)))},
            bytes_beside,
        )
        self.n_step = int(n_step)
        self.gamma = float(gamma)
        self._discounts = self.gamma ** np.arange(n_step + 1.0)
        self._drawable = 0
        self._changes = changes

    def __len__(self) -> int:
        """Returns the number of transitions that can be drawn."""
        return self._drawable

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
        given, final, final_index = self._checked(trajectory)
        self._cut_where_adrift({key: given[key][0] for key in self._keys})
        start = 0
        while start < len(given["reward"]):
            stop = self._store(given, final, final_index, start)
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
        self._rewritten = [each for each in self._rewritten if each[1] > oldest]
        rows = np.arange(oldest, self._steps) % self._rows
        for env in np.flatnonzero(envs):
            ends = np.flatnonzero(self._arrays["ended"][rows, env])
            first = ends[-1] + 1 if ends.size else 0
            self._rewritten.append((int(oldest + first), self._steps))
            under_way = rows[first:]
            self._arrays["valid"][under_way, env] = False
            span = self._arrays["span"][under_way, env]
            self._arrays["span"][under_way, env] = 0
            place = under_way[span > 0] * self.num_envs + env
            self._drawable -= place.size
            self._note(place)

    def _close(self, rows: slice) -> None:
        """Takes transitions whose rows are to be overwritten out of reach."""
        span = self._arrays["span"][rows]
        place = np.flatnonzero(span) + rows.start * self.num_envs
        if place.size:
            span[:] = 0
            self._drawable -= place.size
            self._note(place)

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

    def set_state(
        self, state: dict[str, Any], log: StateLog | None = None
    ) -> None:
        """Takes back what `get_state` gave, or refuses it before any change."""
        super().set_state(state, log)
        self._drawable = int(np.count_nonzero(self._arrays["span"]))

    @property
    def _unsettled(self) -> int:
        """How many of the newest steps later ones may add something to."""
        # Rewards of the last steps go on being added up, and the end of the
        # last one may have been said since.
        return self.n_step

    def _settings(self) -> dict[str, float]:
        """Returns what a state must have in common with its ring."""
        return {
            "capacity": self.capacity,
            "num_envs": self.num_envs,
            "n_step": self.n_step,
            "gamma": self.gamma,
        }
