"""A replay buffer of sequences, for recurrent agents."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_positive
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


class SequenceReplayBuffer(ReplayBuffer):
    """The last steps of B environments, drawn uniformly as sequences.

    A sequence consists of `burn_in` steps that bring the recurrent state up to
    date, then `sequence_length` transitions of n steps to learn from, then n
    steps to bootstrap from. It may contain the end of an episode and the
    beginning of the next; `begins` marks the first steps. It starts where the
    recurrent state of the policy was stored, every `stride` steps. This state
    may come from older weights.

    A transition has `weight` 0 if it is only the reset of an environment, or if
    its episode was truncated and the environment reset within the same step:
    the recurrent state of its last observation is unknown.

    Args:
        state: Sequence of `ArraySpec`. Recurrent state of the policy for one
            environment.
        sequence_length: int. Transitions of a sequence, L.
        burn_in: int. Steps before the transitions.
        stride: int. Steps from one start of a sequence to the next, a divisor
            of the steps of a trajectory.

    Raises:
        ValueError: If an argument is out of bounds, or the capacity is too
            small for one sequence of each environment.

    Example:

    >>> number = ArraySpec((), "float32")
    >>> buffer = SequenceReplayBuffer(
    ...     100, 1, number, (), np.int32, state=[ArraySpec((8,), "float32")],
    ...     sequence_length=4, burn_in=2, stride=2)
    >>> len(buffer)
    0
    >>> buffer.spec["observation"], buffer.spec["reward"]
    (ArraySpec(shape=(5,), dtype='float32'),
     ArraySpec(shape=(4,), dtype='float32'))

    Reference:
        [Kapturowski et al., 2019](https://openreview.net/forum?id=r1lyTjAqYX),
        R2D2.
    """

    _settings = (
        *ReplayBuffer._settings,
        *("sequence_length", "burn_in", "stride"),
    )

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        *args: Any,
        state: Sequence[ArraySpec],
        sequence_length: int,
        burn_in: int,
        stride: int,
        n_step: int = 1,
        **kwargs: Any,
    ) -> None:
        check_positive(sequence_length=sequence_length, stride=stride)
        check_at_least(0, burn_in=burn_in)
        self.sequence_length = sequence_length
        self.burn_in = burn_in
        self.stride = stride
        # Steps of a drawn sequence that have an observation.
        self.steps_drawn = burn_in + sequence_length + n_step
        needed = (self.steps_drawn + stride) * num_envs
        if capacity < needed:
            raise ValueError(
                f"Expected a capacity of at least {needed}, a sequence of "
                f"{self.steps_drawn} steps and {stride} more in each of "
                f"{num_envs} environments. Received: capacity={capacity}"
            )
        numbers = sum(int(np.prod(each.shape)) for each in state)
        self._bytes_beside += 1 + -(-4 * numbers // stride)
        super().__init__(capacity, num_envs, *args, n_step=n_step, **kwargs)
        self._state = tuple(state)
        rows = self._ring.rows
        self._begins = np.zeros((rows, num_envs), np.bool_)
        # One more than the most starts that fit into all rows.
        starts = rows // stride + 2
        self._states = [
            np.zeros((starts, num_envs, *each.shape), each.dtype)
            for each in self._state
        ]

    def __len__(self) -> int:
        """Returns the number of sequences that can be drawn."""
        first, end = self._starts()
        return max(end - first, 0) * self.num_envs

    def _starts(self) -> tuple[int, int]:
        """Returns the numbers of the first start to draw, and past the last."""
        oldest = self._ring.oldest // self.num_envs
        # The observation after the newest step is already stored.
        last = self._ring.time + 1 - self.steps_drawn
        return -(-oldest // self.stride), last // self.stride + 1

    @property
    def spec(self) -> dict[str, Tree[ArraySpec]]:
        """Shapes and dtypes of one sequence; see `sample`."""
        spec = super().spec
        before, after = self.burn_in, self.steps_drawn - self.burn_in
        spec["begins"] = ArraySpec((), "float32")
        spec["span"] = ArraySpec((), "int32")

        def repeated(count: int, *keys: str) -> dict[str, Any]:
            return map_leaves(
                lambda each: ArraySpec((count, *each.shape), each.dtype),
                {key: spec[key] for key in keys},
            )

        learned = ("action", "reward", "discount", "weight", "span")
        return {
            **repeated(after, "observation", "begins"),
            **repeated(self.sequence_length, *learned),
            "burn_in": repeated(before, "observation", "begins"),
            "state": self._state,
        }

    def extend(self, trajectory: Trajectory) -> None:
        """Stores T steps of all environments; see `ReplayBuffer.extend`.

        Args:
            trajectory: `Trajectory` of a recurrent policy, with its state every
                `stride` steps.

        Raises:
            ValueError: If a shape or a dtype does not fit.
        """
        begins, horizon = trajectory.begins, len(trajectory.reward)
        states = [len(each) for each in trajectory.state]
        expected = [horizon // self.stride] * len(self._state)
        if begins is None or horizon % self.stride or states != expected:
            raise ValueError(
                "Expected a trajectory with the state of its policy every "
                f"{self.stride} steps. Received: {horizon} steps with "
                f"{states or 'no'} states"
            )
        step = self._ring.time
        super().extend(trajectory)
        rows = np.arange(step, step + horizon + 1) % len(self._begins)
        # If there are more steps than rows, the last ones remain.
        self._begins[rows] = begins
        for array, state in zip(self._states, trajectory.state, strict=True):
            start = step // self.stride + np.arange(len(state))
            array[start % len(array)] = state

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws sequences uniformly, with replacement.

        Args:
            batch_size: int. Number of sequences, M.

        Returns:
            dict of `observation` `[M, L + n, ...]` and `begins` `[M, L + n]`
            float32, 1 where a step is the first of an episode; of the L
            transitions, `[M, L]`: `action`, `reward`, `discount`, `span` int32,
            the steps from each to its bootstrap observation, and `weight`;
            `burn_in`, a dict of `observation` and `begins` of the steps before
            the transitions; `state`, a tuple of `[M, ...]`, before the first of
            these steps; and `index` `[M]` int64, the number of that step.
        """
        self._check_batch_size(batch_size)
        first, end = self._starts()
        drawn = self._generator.integers(
            first * self.num_envs, end * self.num_envs, batch_size
        )
        start, env = np.divmod(drawn, self.num_envs)
        index = start * self.stride * self.num_envs + env
        return {**self._sequences(index), "index": index}

    def _sequences(self, index: np.ndarray) -> dict[str, Any]:
        """Returns sequences by the numbers of their first steps, `[M]`."""
        step, env = np.divmod(index, self.num_envs)
        start = step // self.stride
        # [M] -> [M, burn-in + L + n]
        every = index[:, None] + self.num_envs * np.arange(self.steps_drawn)
        every %= self._ring.places
        before, learned = self.burn_in, self.burn_in + self.sequence_length
        return {
            **self._observed(every[:, before:]),
            **self._gather_ahead(every[:, before:learned]),
            "burn_in": self._observed(every[:, :before]),
            "state": tuple(
                each[start % len(each), env] for each in self._states
            ),
        }

    def _observed(self, place: np.ndarray) -> dict[str, Any]:
        """Returns observations, and the first steps of episodes, by places."""
        return {
            "observation": self._ring.observations(place),
            "begins": self._begins.take(place).astype(np.float32),
        }

    def _gather_ahead(self, place: np.ndarray) -> dict[str, np.ndarray]:
        """Returns transitions without their observations, `[M, L]` places.

        `span` is the number of steps from each to its bootstrap observation.
        `weight` is 0 if there is no transition, or if its next observation is
        stored separately.
        """
        outcome, length, terminated, slot = self._outcome(place)
        learned = (length > 0) & (terminated | (slot < 0))
        return {
            **outcome,
            "span": length.astype(np.int32),
            "weight": learned.astype(np.float32),
        }

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns everything as plain data; see `ReplayBuffer`."""
        return {
            **super().get_state(log),
            "begins": self._begins.copy(),
            "states": [each.copy() for each in self._states],
        }

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`."""
        super().set_state(state, log)
        self._begins[:] = state["begins"]
        for array, value in zip(self._states, state["states"], strict=True):
            array[:] = value
