"""What a rollout leaves behind."""

from dataclasses import dataclass
from typing import Any

import numpy as np


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

    def arrays(self) -> dict[str, Any]:
        """Returns the arrays by name, as `agent.prepare` takes them."""
        return dict(vars(self))

    def padded_arrays(self) -> dict[str, Any]:
        """Returns the arrays with final rows filled up to a fixed number.

        A compiled function needs fixed shapes; rows that only fill up belong
        to the index T * B, just past the last step.
        """
        steps = self.reward.size
        rows = self.final_observation
        index = np.full(steps, steps, np.int32)
        index[: len(rows)] = self.final_index
        padded = np.zeros((steps, *rows.shape[1:]), rows.dtype)
        padded[: len(rows)] = rows
        return self.arrays() | {
            "final_observation": padded,
            "final_index": index,
        }

    @property
    def ended(self) -> np.ndarray:
        """`[T, B]` bool. Steps that were the last of their episode."""
        ended: np.ndarray = self.terminated | self.truncated
        return ended
