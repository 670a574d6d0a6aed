"""What a rollout leaves behind."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

_STATES = ("state", "final_state")


@dataclass(frozen=True)
class Trajectory:
    """T steps of B environments, holding nothing of any network.

    Log-probabilities and values are computed afresh from these arrays by
    `agent.prepare`, once for the whole rollout.

    Attributes:
        observation: `[T + 1, B, ...]`. Observation before each step, and the
            one to act on next: an array, or a tree of arrays for a Dict or
            Tuple.
        action: `[T, B, ...]`. The policy's action, before it was shifted or
            clipped for the environment.
        reward: `[T, B]` float32. Reward of the step, scaled if asked for.
        terminated: `[T, B]` bool. The episode reached a terminal state.
        truncated: `[T, B]` bool. The episode was cut off, by a time limit say.
        valid: `[T, B]` bool. False where the step is only the reset that
            NEXT_STEP environments make in place of a transition.
        final_observation: `[E, ...]`. True last observations of episodes
            whose environment had already been reset within the same step; a
            tree of arrays where `observation` is one.
        final_index: `[E]` int32. Where they belong: `t * B + b`.
        begins: `[T + 1, B]` float32. 1 where a step is the first of an
            episode. None if the policy remembers nothing.
        state: tuple of `[K, B, ...]`. What the policy remembered at the start
            of each of the K sequences that the steps are trained in.
        final_state: tuple of `[E, ...]`. What it remembered after the steps
            of `final_index`.
        log_prob: `[T, B]` float32. Log-probability of each action under the
            policy that took it, where that may have been another one than
            learns from it. None where it is the same.

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
        """Returns the arrays by their names, those that there are."""
        return {
            key: value
            for key, value in vars(self).items()
            if value is not None and not (key in _STATES and value == ())
        }

    def packed_arrays(self, with_final: bool) -> dict[str, Any]:
        """Returns the arrays packed for one compiled call; see `data.unpack`.

        Few arrays, since handing over each of them costs 30 to 50
        microseconds; of fixed shapes, since a compiled function needs them:
        rows that only fill up belong to the index T * B, past the last step.

        Args:
            with_final: bool. Whether final observations may ever be there.

        Returns:
            dict of `observation` and `action`, `outcome` `[4, T, B]` float32,
            and if asked for `final_observation` `[T * B, ...]` and
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
        """Steps that were the last of their episode, `[T, B]` bool."""
        ended: np.ndarray = self.terminated | self.truncated
        return ended


def as_sequences(array: np.ndarray, length: int) -> np.ndarray:
    """Cuts steps into sequences.

    Args:
        array: `[T, B, ...]`.
        length: int. Steps of a sequence, L, a divisor of T.

    Returns:
        `[T / L * B, L, ...]`: all that begin with step 0, then those of step
        L, and so on.

    Example:

    >>> as_sequences(np.arange(8).reshape(4, 2), 2).tolist()
    [[0, 2], [1, 3], [4, 6], [5, 7]]
    """
    steps, num_envs, *rest = array.shape
    # [T, B, ...] -> [K, L, B, ...] -> [K, B, L, ...]
    cut = array.reshape(steps // length, length, num_envs, *rest)
    return cut.swapaxes(1, 2).reshape(-1, length, *rest)
