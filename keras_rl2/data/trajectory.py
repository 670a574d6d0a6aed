"""What a rollout leaves behind."""

from dataclasses import dataclass

import numpy as np

from keras_rl2.shapes import Tensor


@dataclass(frozen=True)
class Trajectory:
    """T steps of B environments, holding nothing of any network.

    Log-probabilities and values are computed afresh from these arrays by
    `agent.prepare`, once for the whole rollout.

    Attributes:
        observation: `[T + 1, B, ...]`. Observation before each step, and the
            one to act on next.
        action: `[T, B, ...]`. The policy's action, before it was shifted or
            clipped for the environment.
        reward: `[T, B]` float32. Reward of the step, scaled if asked for.
        terminated: `[T, B]` bool. The episode reached a terminal state.
        truncated: `[T, B]` bool. The episode was cut off, by a time limit say.
        valid: `[T, B]` bool. False where the step is only the reset that
            NEXT_STEP environments make in place of a transition.
        final_observation: `[E, ...]`. True last observations of episodes
            whose environment had already been reset within the same step.
        final_index: `[E]` int32. Where they belong: `t * B + b`.
    """

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    valid: np.ndarray
    final_observation: np.ndarray
    final_index: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by their names."""
        return dict(vars(self))

    def packed_arrays(self, with_final: bool) -> dict[str, np.ndarray]:
        """Returns the arrays packed for one compiled call; see `unpack`.

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
        packed = {
            "observation": self.observation,
            "action": self.action,
            "outcome": np.array([self.reward, *flags], np.float32),
        }
        if not with_final:
            return packed
        steps, rows = self.reward.size, self.final_observation
        index = np.full(steps, steps, np.int32)
        index[: len(rows)] = self.final_index
        # [E, ...] -> [T * B, ...]
        padded = np.zeros((steps, *rows.shape[1:]), rows.dtype)
        padded[: len(rows)] = rows
        return packed | {"final_observation": padded, "final_index": index}

    @property
    def ended(self) -> np.ndarray:
        """Steps that were the last of their episode, `[T, B]` bool."""
        ended: np.ndarray = self.terminated | self.truncated
        return ended


def unpack(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """Undoes `Trajectory.packed_arrays`, in the graph.

    Args:
        packed: dict of tensors.

    Returns:
        dict as of `Trajectory.arrays`; without final observations where none
        were packed.
    """
    arrays = {key: value for key, value in packed.items() if key != "outcome"}
    outcome = packed["outcome"]
    arrays["reward"] = outcome[0]
    for position, flag in enumerate(("terminated", "truncated", "valid"), 1):
        arrays[flag] = outcome[position] > 0.5
    return arrays
