"""Where a replay buffer keeps its transitions."""

from typing import Any

import numpy as np

from keras_rl2.data.final_observations import FinalObservations
from keras_rl2.data.memory import check_memory
from keras_rl2.data.windows import complete_windows


class TransitionRing:
    """The storing half of `ReplayBuffer`, which says what it does.

    Steps are numbered from the first one on; step t lies in row t % rows. A
    transition's number is t * B + b, its place in the ring that modulo the
    number of places. One row more than there are steps is held, since the
    observation after the newest step has its row already.

    Args:
        capacity: int. Transitions to hold.
        num_envs: int. Environments, B.
        observation_shape: tuple. Shape of one observation.
        observation_dtype: Its dtype.
        action_shape: tuple. Shape of one action.
        action_dtype: Its dtype.
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
        observation_shape: tuple[int, ...],
        observation_dtype: Any,
        action_shape: tuple[int, ...],
        action_dtype: Any,
        n_step: int,
        gamma: float,
    ) -> None:
        if num_envs < 1 or n_step < 1:
            raise ValueError(
                f"Expected one environment and one step at least. Received: "
                f"num_envs={num_envs}, n_step={n_step}"
            )
        if not 0 <= gamma <= 1:
            raise ValueError(f"Expected 0 to 1. Received: gamma={gamma}")
        if capacity < num_envs * n_step:
            raise ValueError(
                f"Expected a capacity of at least num_envs * n_step = "
                f"{num_envs * n_step}, for one transition of each environment. "
                f"Received: capacity={capacity}"
            )
        self._rows = int(capacity) // int(num_envs) + 1
        self.capacity = (self._rows - 1) * int(num_envs)
        self.num_envs = int(num_envs)
        self.n_step = int(n_step)
        self.gamma = float(gamma)
        self._discounts = self.gamma ** np.arange(n_step + 1.0)
        self._steps = 0
        self._drawable = 0
        self._allocate(
            (tuple(observation_shape), np.dtype(observation_dtype)),
            (tuple(action_shape), np.dtype(action_dtype)),
        )

    def _allocate(
        self,
        observation: tuple[tuple[int, ...], np.dtype[Any]],
        action: tuple[tuple[int, ...], np.dtype[Any]],
    ) -> None:
        """Makes the arrays, if there is memory for them."""
        layout: dict[str, tuple[tuple[int, ...], Any]] = {
            "observation": observation,
            "action": action,
            "reward": ((), np.float32),
            "ended": ((), np.bool_),
            "terminated": ((), np.bool_),
            "valid": ((), np.bool_),
            # Steps of the window, k, and 0 while it cannot be drawn.
            "span": ((), np.min_scalar_type(self.n_step)),
            # Where the true next observation is kept, if it is; or -1.
            "slot": ((), np.int32),
        }
        leading = (self._rows, self.num_envs)
        needed = self._rows * self.num_envs * self._extra_bytes() + sum(
            int(np.prod((*leading, *shape))) * np.dtype(dtype).itemsize
            for shape, dtype in layout.values()
        )
        check_memory(needed, f"a replay buffer of {self.capacity} transitions")
        # Zeros cost nothing until they are written to.
        self._arrays = {
            key: np.zeros((*leading, *shape), dtype)
            for key, (shape, dtype) in layout.items()
        }
        self._arrays["slot"][:] = -1
        self._final = FinalObservations(*observation)

    def __len__(self) -> int:
        """Returns the number of transitions that can be drawn."""
        return self._drawable

    @property
    def steps(self) -> int:
        """Environment steps stored so far, those overwritten included."""
        return self._steps * self.num_envs

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, when the buffer is full."""
        arrays = [*self._arrays.values(), self._final.array]
        return sum(array.nbytes for array in arrays)

    def _gather(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """Returns transitions by their places in the ring."""
        arrays, observation = self._arrays, self._flat("observation")
        # `take` goes by places in the ring where nothing is said of an axis.
        length = arrays["span"].take(flat).astype(np.int64)
        following = flat + length * self.num_envs
        last = following - self.num_envs
        # After the last place comes the first one: `take` sees to it, in less
        # time than a division of each.
        terminated = arrays["terminated"].take(last, mode="wrap")
        slot = arrays["slot"].take(last, mode="wrap")
        next_observation = observation.take(following, axis=0, mode="wrap")
        (kept,) = np.nonzero(slot >= 0)
        if kept.size:
            next_observation[kept] = self._final.array[slot[kept]]
        discount = self._discounts.take(length)
        discount[terminated] = 0.0
        return {
            "observation": observation.take(flat, axis=0),
            "action": self._flat("action").take(flat, axis=0),
            "reward": arrays["reward"].take(flat),
            "discount": discount.astype(np.float32),
            "next_observation": next_observation,
        }

    def _extra_bytes(self) -> int:
        """Bytes that a subclass adds for each transition."""
        return 0

    def _changed(self, flat: np.ndarray) -> None:
        """Tells a subclass which transitions came or went."""

    def _flat(self, key: str) -> np.ndarray:
        """Returns a view of an array by places in the ring."""
        # Made anew each time, since a copied view would be a view no more.
        array = self._arrays[key]
        return array.reshape(-1, *array.shape[2:])

    def _index_of(self, flat: np.ndarray) -> np.ndarray:
        """Returns the numbers of transitions by their places in the ring."""
        count = self._rows * self.num_envs
        newest = self._steps * self.num_envs - 1
        place = newest % count
        index: np.ndarray = flat + (newest - place)
        # Beyond the newest one are those of the last time around.
        index -= count * (flat > place)
        return index

    def _check(self, given: dict[str, np.ndarray]) -> None:
        """Refuses arrays of another shape, or that would lose something."""
        steps = given["reward"].shape[:1]
        for key, array in given.items():
            own = self._arrays[key]
            rows = (steps[0] + 1,) if steps and key == "observation" else steps
            if array.shape != (*rows, *own.shape[1:]) or not np.can_cast(
                array.dtype, own.dtype, "same_kind"
            ):
                raise ValueError(
                    f"Expected {key} of shape {own.shape[1:]} for each step "
                    f"and dtype {own.dtype}. Received: {key} of shape "
                    f"{array.shape} (steps first) and dtype {array.dtype}"
                )

    def _check_final(
        self, final: np.ndarray, index: np.ndarray, ended: np.ndarray
    ) -> None:
        """Refuses last observations that are none, or belong nowhere."""
        own = self._arrays["observation"]
        if not index.size and not len(final):
            return
        if final.shape != (index.size, *own.shape[2:]) or not np.can_cast(
            final.dtype, own.dtype, "same_kind"
        ):
            raise ValueError(
                f"Expected final_observation of shape {own.shape[2:]} for each "
                f"of {index.size} episodes and dtype {own.dtype}. Received: "
                f"shape {final.shape} and dtype {final.dtype}"
            )
        # In order, so that they are forgotten in order, too.
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
        for key, array in given.items():
            self._arrays[key][rows] = array[start:stop]
        self._steps += stop - start
        following = self._steps % self._rows
        self._close(slice(following, following + 1))
        self._arrays["observation"][following] = given["observation"][stop]

    def _close(self, rows: slice) -> None:
        """Takes transitions whose rows are to be overwritten out of reach."""
        span = self._arrays["span"][rows]
        flat = np.flatnonzero(span) + rows.start * self.num_envs
        if flat.size:
            span[:] = 0
            self._drawable -= flat.size
            self._changed(flat)

    def _keep(self, flat: np.ndarray, observation: np.ndarray) -> None:
        """Keeps the true next observations of transitions apart."""
        if not flat.size:
            return
        moved = self._final.grow(flat.size)
        slot = self._flat("slot")
        if moved is not None:
            slot[:] = moved[slot]
        slot[flat] = self._final.push(observation)

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
        flat = rows[step] * self.num_envs + env
        # No window that is still open reaches back to these rewards.
        self._flat("reward")[flat] = total[complete]
        self._flat("span")[flat] = length[complete]
        self._drawable += flat.size
        self._changed(flat)

    def _cut_where_adrift(self, observation: np.ndarray) -> None:
        """Cuts episodes that do not go on with the observation expected."""
        stored = self._arrays["observation"]
        expected = stored[self._steps % self._rows]
        observation = observation.astype(stored.dtype, copy=False)
        if self._steps and not np.array_equal(expected, observation):
            adrift = (expected != observation).reshape(self.num_envs, -1)
            self._cut(adrift.any(axis=1))

    def _cut(self, envs: np.ndarray) -> None:
        """Truncates the episodes of some environments after the last step."""
        if not self._steps:
            return
        row = (self._steps - 1) % self._rows
        expected = self._arrays["observation"][self._steps % self._rows]
        (env,) = np.nonzero(
            envs & self._arrays["valid"][row] & (self._arrays["slot"][row] < 0)
        )
        self._keep(row * self.num_envs + env, expected[env])
        self._arrays["ended"][row, env] = True
        self._complete(0)

    def _settings(self) -> dict[str, Any]:
        """Returns what a state must have in common with its buffer."""
        return {
            "capacity": self.capacity,
            "num_envs": self.num_envs,
            "n_step": self.n_step,
            "gamma": self.gamma,
        }
