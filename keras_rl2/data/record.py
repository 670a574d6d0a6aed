"""Writing a rollout down while it happens."""

import numpy as np

from keras_rl2.data.trajectory import Trajectory
from keras_rl2.envs import VectorEnvAdapter
from keras_rl2.envs.timed_env import TimedEnv
from keras_rl2.policy_heads import PolicyHead


class Record:
    """Arrays that a rollout in progress is written to.

    They are made anew for each rollout: TensorFlow may keep pointing at
    memory that it was given.

    Args:
        env: `VectorEnvAdapter`. The environments that are stepped.
        head: `PolicyHead`. Says what actions look like.
        horizon: int. Steps of the rollout, T.
        first: `[B, ...]`. What the environments were left with.
    """

    def __init__(
        self,
        env: VectorEnvAdapter | TimedEnv,
        head: PolicyHead,
        horizon: int,
        first: np.ndarray,
    ) -> None:
        leading = (horizon, env.num_envs)
        # [T + 1, B, ...]: one more than there are actions.
        self.observation = np.empty((horizon + 1, *first.shape), first.dtype)
        self.observation[0] = first
        self.action = np.empty(
            (*leading, *head.action_shape), head.action_dtype
        )
        self.reward = np.empty(leading, np.float32)
        self.terminated = np.empty(leading, np.bool_)
        self.truncated = np.empty(leading, np.bool_)
        self.steps = 0
        self.masks_reset_rows = env.masks_reset_rows
        self.pending_reset = np.array(env.pending_reset, np.bool_)
        self._final: list[np.ndarray] = []
        self._final_index: list[np.ndarray] = []

    def keep_final(self, t: int, final_observation: np.ndarray) -> None:
        """Keeps the true last observations of the episodes that ended.

        Args:
            t: int. The step.
            final_observation: `[B, ...]`. Rows of episodes that ended count.
        """
        (ended,) = np.nonzero(self.terminated[t] | self.truncated[t])
        # [B, ...] -> [E, ...]
        self._final.append(np.array(final_observation)[ended])
        self._final_index.append(t * self.reward.shape[1] + ended)

    def final(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the final observations `[E, ...]` and their index `[E]`."""
        if not self._final:
            shape = (0, *self.observation.shape[2:])
            return np.empty(shape, self.observation.dtype), np.empty(
                0, np.int32
            )
        # [E_t, ...] of each step t -> [E, ...]
        return (
            np.concatenate(self._final).astype(self.observation.dtype),
            np.concatenate(self._final_index).astype(np.int32),
        )

    def valid(self) -> np.ndarray:
        """Marks what is a transition and no mere reset, `[T, B]`."""
        valid = np.ones(self.reward.shape, np.bool_)
        if self.masks_reset_rows:
            valid[0] &= ~self.pending_reset
            valid[1:] &= ~(self.terminated[:-1] | self.truncated[:-1])
        return valid

    def trajectory(self) -> Trajectory:
        """Returns what was recorded."""
        final_observation, final_index = self.final()
        return Trajectory(
            observation=self.observation,
            action=self.action,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            valid=self.valid(),
            final_observation=final_observation,
            final_index=final_index,
        )


def check_finite(record: Record) -> None:
    """Refuses NaN and infinity, naming where they came from.

    Args:
        record: `Record` of a rollout, finished or broken off.

    Raises:
        ValueError: If an observation or a reward is not finite.
    """
    final, final_index = record.final()
    count = record.steps
    for key, array in (
        ("observation", record.observation[: count + 1]),
        ("reward", record.reward[:count]),
        ("final observation", final),
    ):
        if array.dtype.kind != "f" or np.isfinite(array).all():
            continue
        where = np.argwhere(~np.isfinite(array))[0]
        if key == "final observation":
            step, env = divmod(
                int(final_index[where[0]]), record.reward.shape[1]
            )
        else:
            step, env = int(where[0]), int(where[1])
        raise ValueError(
            f"Expected a finite {key} from every environment. Received: "
            f"{key}={array[tuple(where)]} from environment {env} at step "
            f"{step} of the rollout. No weight has been changed by it."
        )
