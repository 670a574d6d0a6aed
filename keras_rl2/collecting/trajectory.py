"""A rollout: its arrays while they are written, and the finished ones."""

import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_rl2.collecting.checks import check_finite
from keras_rl2.envs.vector_env import TimedEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

_STATES = ("state", "final_state")
# TensorFlow shares memory that begins at a multiple of so many bytes.
_ALIGNMENT = 64


@dataclass(frozen=True)
class Trajectory:
    """T steps of B environments, without outputs of a network.

    `agent.prepare` computes log-probabilities and values from these arrays,
    once for the whole rollout.

    Attributes:
        observation: `[T + 1, B, ...]`. Observation before each step, and the
            one to act on next: an array, or a tree of arrays for a Dict or
            Tuple.
        action: `[T, B, ...]`. The policy's action, before it is shifted or
            clipped for the environment.
        reward: `[T, B]` float32. Reward of the step, scaled if enabled.
        terminated: `[T, B]` bool. The episode reached a terminal state.
        truncated: `[T, B]` bool. The episode was cut off, for example by a time
            limit.
        valid: `[T, B]` bool. False if the environment took no action: the step
            is only the reset that NEXT_STEP environments make in place of a
            transition, the row is that of a player who is out of the game, or
            follows the end of a rollout of whole episodes.
        final_observation: `[E, ...]`. True last observations of episodes after
            which the environment was reset within the same step; a tree of
            arrays if `observation` is one.
        final_index: `[E]` int32. Steps of the final observations: `t * B + b`.
        begins: `[T + 1, B]` float32. 1 where a step is the first of an episode.
            None if the policy is not recurrent.
        state: tuple of `[K, B, ...]`. Recurrent state at the start of each of
            the K sequences that the steps are trained in.
        final_state: tuple of `[E, ...]`. Recurrent state after the steps of
            `final_index`.
        log_prob: `[T, B]` float32. Log-probability of each action under the
            policy that took it, if that may differ from the policy that learns
            from it. None if they are the same.

    Example:

    >>> trajectory = Trajectory(
    ...     observation=np.zeros((3, 2, 4), "float32"),
    ...     action=np.zeros((2, 2), "int32"),
    ...     reward=np.ones((2, 2), "float32"),
    ...     terminated=np.array([[False, False], [True, False]]),
    ...     truncated=np.zeros((2, 2), bool),
    ...     valid=np.ones((2, 2), bool),
    ...     final_observation=np.zeros((0, 4), "float32"),
    ...     final_index=np.zeros(0, "int32"))
    >>> trajectory.ended.tolist()
    [[False, False], [True, False]]
    """

    observation: Tree[np.ndarray]
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    valid: np.ndarray
    final_observation: Tree[np.ndarray]
    final_index: np.ndarray
    begins: np.ndarray | None = None
    state: tuple[np.ndarray, ...] = ()
    final_state: tuple[np.ndarray, ...] = ()
    log_prob: np.ndarray | None = None

    def arrays(self) -> dict[str, Any]:
        """Returns the existing arrays by their names."""
        return {
            key: value
            for key, value in vars(self).items()
            if value is not None and not (key in _STATES and value == ())
        }

    def packed_arrays(self, with_final: bool) -> dict[str, Any]:
        """Returns the arrays packed for one compiled call; see `data.unpack`.

        There are few arrays, since passing each of them costs 30 to 50
        microseconds. Their shapes are fixed, as a compiled function requires:
        padding rows have the index T * B, past the last step.

        Args:
            with_final: bool. Whether there may be final observations.

        Returns:
            dict of `observation` and `action`, `outcome` `[4, T, B]` float32,
            and with `with_final` also `final_observation` `[T * B, ...]` and
            `final_index` `[T * B]`.
        """
        flags = [self.terminated, self.truncated, self.valid]
        packed: dict[str, Any] = {
            "observation": self.observation,
            "action": self.action,
            "outcome": np.array([self.reward, *flags], np.float32),
        }
        if not with_final:
            return packed
        steps = self.reward.size
        index = np.full(steps, steps, np.int32)
        index[: len(self.final_index)] = self.final_index

        def padded(rows: np.ndarray) -> np.ndarray:
            # [E, ...] -> [T * B, ...]
            filled = np.zeros((steps, *rows.shape[1:]), rows.dtype)
            filled[: len(rows)] = rows
            return filled

        return packed | {
            "final_observation": map_leaves(padded, self.final_observation),
            "final_index": index,
        }

    @property
    def ended(self) -> np.ndarray:
        """Whether steps are the last of their episode, `[T, B]` bool."""
        return self.terminated | self.truncated


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns an empty array that a tensor can share the memory of."""
    count = math.prod(shape) * dtype.itemsize
    memory = np.empty(count + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + count].view(dtype).reshape(shape)


def unpack(packed: dict[str, Any]) -> dict[str, Any]:
    """Undoes `Trajectory.packed_arrays`, for example in the graph.

    Args:
        packed: dict of tensors. Arrays that are not packed are returned as
            they are.

    Returns:
        dict with the keys of `Trajectory.arrays`; without final observations if
        none were packed.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=8, seed=0)
    >>> rollouts.bind(rl.PPO.for_env(rollouts.env, hidden=(8,), seed=0))
    >>> trajectory = rollouts.collect()
    >>> arrays = unpack(trajectory.packed_arrays(with_final=False))
    >>> arrays["reward"].shape
    (8, 1)
    """
    arrays = {key: value for key, value in packed.items() if key != "outcome"}
    if len(arrays) == len(packed):
        return arrays
    outcome = packed["outcome"]
    arrays["reward"] = outcome[0]
    for position, flag in enumerate(("terminated", "truncated", "valid"), 1):
        arrays[flag] = outcome[position] > 0.5
    return arrays


class RolloutStorage:
    """A trajectory in progress: the arrays that store a rollout.

    They are allocated anew for each rollout, since TensorFlow may still
    reference the memory of earlier ones.

    Args:
        env: `VectorEnvAdapter`. The environments that are stepped.
        head: `ActionFormat`. Shape and dtype of the policy's actions.
        horizon: int. Steps of the rollout, T.
        first: `[B, ...]`. The first observations: an array, or a tree of
            arrays.

    Attributes:
        steps: int. Steps taken so far.
        log_prob: `[T, B]` float32. Log-probabilities of the actions; None, the
            default, if they are not stored.
        final_step: int. The last step with stored final observations; -1 at
            first.
        begins: list of `[B]`. Whether each step is the first of an episode,
            for a recurrent policy.
        states: list of tuples of `[B, ...]`. Its state at the start of each
            sequence.
    """

    def __init__(
        self,
        env: VectorEnvAdapter | TimedEnv,
        head: ActionFormat,
        horizon: int,
        first: Tree[np.ndarray],
    ) -> None:
        leading = (horizon, env.num_envs)

        def rows(array: np.ndarray) -> np.ndarray:
            # [T + 1, B, ...]: one more than there are actions.
            return _aligned((horizon + 1, *array.shape), array.dtype)

        self.observation: Any = map_leaves(rows, first)
        self._is_array = is_leaf(first)
        self.keep_observation(0, first)
        self.action = np.empty(
            (*leading, *head.action_shape), head.action_dtype
        )
        self.reward = np.empty(leading, np.float32)
        self.terminated = np.empty(leading, np.bool_)
        self.truncated = np.empty(leading, np.bool_)
        self.log_prob: np.ndarray | None = None
        self.steps = 0
        #: Whether each step takes no action, `[B]`; see `VectorEnvAdapter`.
        self.pending: list[np.ndarray] = []
        self.final_step = -1
        self.begins: list[np.ndarray] = []
        self.states: list[tuple[np.ndarray, ...]] = []
        self._final: list[Any] = []
        self._final_states: list[tuple[np.ndarray, ...]] = []
        self._final_index: list[np.ndarray] = []

    def acted_on(self, t: int) -> Any:
        """Returns the observations that step `t` acts on, `[B, ...]`."""
        if self._is_array:
            return self.observation[t]
        return map_leaves(operator.itemgetter(t), self.observation)

    def keep_observation(self, t: int, observation: Any) -> None:
        """Stores the observations before step `t`, `[B, ...]`."""
        if self._is_array:
            self.observation[t] = observation
            return
        for array, row in zip(
            leaves(self.observation), leaves(observation), strict=True
        ):
            array[t] = row

    def ended(self, t: int) -> np.ndarray:
        """Returns whether step `t` is the last of its episode, `[B]`."""
        return self.terminated[t] | self.truncated[t]

    def keep_final(self, t: int, final_observation: Any) -> None:
        """Stores the true last observations of the episodes that step `t` ends.

        Only rows `[B, ...]` of finished episodes count.
        """
        (ended,) = np.nonzero(self.ended(t))
        self.final_step = t
        # [B, ...] -> [E, ...]
        self._final.append(
            map_leaves(operator.itemgetter(ended), final_observation)
        )
        self._final_index.append(t * self.reward.shape[1] + ended)

    def keep_final_state(self, t: int, state: tuple[np.ndarray, ...]) -> None:
        """Stores the recurrent states `[B, ...]` of finished episodes."""
        ended = self.ended(t)
        # [B, ...] -> [E, ...]
        self._final_states.append(tuple(each[ended] for each in state))

    def final(self) -> tuple[Any, np.ndarray]:
        """Returns the final observations `[E, ...]` and their index `[E]`."""
        if not self._final:
            # [T + 1, B, ...] -> [0, ...]
            none = operator.itemgetter((0, slice(0)))
            return map_leaves(none, self.observation), np.empty(0, np.int32)

        def joined(array: np.ndarray, *parts: np.ndarray) -> np.ndarray:
            # [E_t, ...] of each step t -> [E, ...]
            return np.concatenate(parts).astype(array.dtype)

        return (
            map_leaves(joined, self.observation, *self._final),
            np.concatenate(self._final_index).astype(np.int32),
        )

    def is_complete(self, t: int) -> bool:
        """Returns whether no step is needed after step `t`."""
        return False

    def is_over(self, t: int) -> np.ndarray:
        """Returns whether step `t` does not count, `[B]` bool."""
        return np.zeros(self.reward.shape[1], np.bool_)

    def valid(self) -> np.ndarray:
        """Returns whether steps are transitions, `[T, B]`."""
        return ~np.array(self.pending, np.bool_)

    def check_finite(self) -> None:
        """Raises a `ValueError` if an observation or reward is not finite."""
        final, final_index = self.final()

        def in_rows(where: tuple[int, ...]) -> str:
            step, env = where[:2]
            return (
                f"{env} at step {step} of the rollout. No weight has been "
                "changed by it."
            )

        def in_final(where: tuple[int, ...]) -> str:
            return in_rows(
                divmod(int(final_index[where[0]]), self.reward.shape[1])
            )

        rows = operator.itemgetter(slice(self.steps + 1))
        check_finite("observation", map_leaves(rows, self.observation), in_rows)
        check_finite("reward", self.reward[: self.steps], in_rows)
        check_finite("final observation", final, in_final)

    def trajectory(self) -> Trajectory:
        """Returns the finished trajectory."""
        final_observation, final_index = self.final()
        memory: dict[str, Any] = {}
        if self.states:
            none = tuple(each[:0] for each in self.states[0])
            finals = [none, *self._final_states]
            # [B, ...] of each -> [K, B, ...], and [E_t, ...] -> [E, ...]
            memory = {
                "begins": np.array(self.begins, np.float32),
                "state": tuple(map(np.stack, zip(*self.states, strict=True))),
                "final_state": tuple(
                    map(np.concatenate, zip(*finals, strict=True))
                ),
            }
        return Trajectory(
            observation=self.observation,
            action=self.action,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            valid=self.valid(),
            final_observation=final_observation,
            final_index=final_index,
            log_prob=self.log_prob,
            **memory,
        )


class EpisodeStorage(RolloutStorage):
    """Stores only the first episode of each environment.

    Steps that are never taken, or follow the episode, are not valid and hold
    its last observation, in every autoreset mode. Anything that an environment
    returns after its episode, such as NaN, is ignored.
    """

    #: Observations of all environments, including those of finished episodes.
    present: Any

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        flags = self.terminated, self.truncated
        for array in (self.action, self.reward, *flags):
            array[:] = 0
        #: Steps up to the end of the episodes, `[T, B]`.
        self.alive = np.zeros(self.reward.shape, np.bool_)
        self.alive[0] = True
        self._running = self.alive[0].copy()
        #: Whether steps act on `present` instead of the stored observations.
        self.acts_on_present = False

    def acted_on(self, t: int) -> Any:
        """Returns the observations that step `t` acts on, `[B, ...]`."""
        if not self.acts_on_present:
            return super().acted_on(t)
        return map_leaves(np.ascontiguousarray, self.present)

    def keep_observation(self, t: int, observation: Any) -> None:
        """Stores the observations before step `t`, `[B, ...]`."""
        super().keep_observation(t, observation)
        self.present = observation

    def keep_final(self, t: int, final_observation: Any) -> None:
        """Replaces observations after resets by the last ones `[B, ...]`."""
        ended = self.ended(t)

        def put(array: np.ndarray, last: np.ndarray) -> None:
            array[t + 1, ended] = last[ended]

        map_leaves(put, self.observation, final_observation)

    def is_complete(self, t: int) -> bool:
        """Returns whether each episode has ended, and prepares the next step.

        Results of environments after the end of their episodes are removed.
        """
        over = ~self._running
        if over.any():
            for array in leaves(self.observation):
                array[t + 1, over] = array[t, over]
            for array in (self.action, self.reward, self.terminated):
                array[t, over] = 0
            self.truncated[t, over] = False
        self._running = ~(over | self.ended(t))
        if t + 1 < len(self.alive):
            self.alive[t + 1] = self._running
        return not self._running.any()

    def finish(self) -> None:
        """Truncates unfinished episodes, and fills the rows without steps."""
        for array in leaves(self.observation):
            array[self.steps + 1 :] = array[self.steps]
        self.truncated[-1] |= self.valid()[-1] & ~self.terminated[-1]

    def is_over(self, t: int) -> np.ndarray:
        """Marks environments with a finished episode, `[B]`."""
        return ~self.alive[t]

    def valid(self) -> np.ndarray:
        """Marks the steps of the episodes, `[T, B]`."""
        valid = self.alive.copy()
        valid[: self.steps] &= super().valid()
        return valid


def as_sequences(array: np.ndarray, length: int) -> np.ndarray:
    """Splits steps into sequences.

    Args:
        array: `[T, B, ...]`.
        length: int. Steps of a sequence, L, a divisor of T.

    Returns:
        `[T / L * B, L, ...]`: first all sequences from step 0, then all from
        step L, and so on.

    Example:

    >>> as_sequences(np.arange(8).reshape(4, 2), 2).tolist()
    [[0, 2], [1, 3], [4, 6], [5, 7]]
    """
    steps, num_envs, *rest = array.shape
    # [T, B, ...] -> [K, L, B, ...] -> [K, B, L, ...]
    cut = array.reshape(steps // length, length, num_envs, *rest)
    return cut.swapaxes(1, 2).reshape(-1, length, *rest)
