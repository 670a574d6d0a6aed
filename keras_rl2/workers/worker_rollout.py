"""A rollout of which each worker collects a share."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.collecting.broken_episodes import BrokenEpisodes
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.files import plain_data
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.workers.calls import Call
from keras_rl2.workers.worker import Collected
from keras_rl2.workers.worker import Share
from keras_rl2.workers.worker_env import side_by_side
from keras_rl2.workers.worker_pool import WorkerPool


class WorkerRollout:
    """A rollout that workers are collecting, or have collected.

    Args:
        pool: `WorkerPool` of the workers.
        calls: Sequence of `Call`, one of each worker, for a `Collected`.
    """

    def __init__(self, pool: WorkerPool, calls: Sequence[Call]) -> None:
        self._pool = pool
        self._calls = calls
        self._gathered: Collected | None = None

    def gather(self) -> Collected:
        """Waits for all workers, and joins their shares.

        Returns:
            `Collected` of all environments.

        Raises:
            WorkerError: If too few workers are left.
            Exception: The error of an environment.
        """
        if self._gathered is None:
            parts: list[Collected] = self._pool.gather(self._calls)
            self._gathered = _joined(parts, self._pool.shares)
            self._pool.release(self._calls)
        return self._gathered

    def drop(self) -> None:
        """Discards the rollout."""
        if self._gathered is None:
            self._pool.drop(self._calls)

    def get_state(self) -> dict[str, Any]:
        """Waits for the rollout, and returns it as plain data."""
        gathered = self.gather()
        broken = gathered.broken
        return {
            "trajectory": plain_data.copied(gathered.trajectory.arrays()),
            "broken": None
            if broken is None
            else plain_data.copied(vars(broken)),
            "env_restarts": gathered.env_restarts,
            "pending_reset": gathered.pending_reset.copy(),
        }

    @classmethod
    def of_state(
        cls, pool: WorkerPool, state: dict[str, Any]
    ) -> "WorkerRollout":
        """Returns a rollout that was collected before.

        Args:
            pool: `WorkerPool`.
            state: dict, as returned by `get_state`.
        """
        rollout = cls(pool, ())
        trajectory = Trajectory(**state["trajectory"])
        broken = None
        if state["broken"] is not None:
            broken = BrokenEpisodes(trajectory.reward.shape)
            vars(broken).update(state["broken"])
        rollout._gathered = Collected(
            trajectory,
            broken,
            int(state["env_restarts"]),
            state["pending_reset"],
        )
        return rollout


def _joined(parts: list[Collected], shares: Sequence[Share]) -> Collected:
    """Joins the workers' shares of a rollout."""
    return Collected(
        _trajectory([each.trajectory for each in parts], shares),
        _broken(parts),
        sum(each.env_restarts for each in parts),
        side_by_side([each.pending_reset for each in parts]),
    )


def _trajectory(parts: list[Trajectory], shares: Sequence[Share]) -> Trajectory:
    """Concatenates trajectories, in new arrays."""
    joined: dict[str, Any] = {}
    for name in parts[0].arrays():
        if not name.startswith("final"):
            # [T, B of each worker, ...] -> [T, B, ...]
            joined[name] = side_by_side(
                [vars(part)[name] for part in parts], axis=1
            )
    num_envs = sum(share.num_envs for share in shares)
    index = np.concatenate(
        [
            _index_among_all(part.final_index, share, num_envs)
            for part, share in zip(parts, shares, strict=True)
        ]
    )
    order = np.argsort(index)

    def ordered(*rows: np.ndarray) -> np.ndarray:
        # [E of each worker, ...] -> [E, ...]
        return np.concatenate(rows)[order]

    for name in ("final_observation", "final_state"):
        joined[name] = map_leaves(
            ordered, *(vars(part)[name] for part in parts)
        )
    return Trajectory(final_index=index[order], **joined)


def _index_among_all(
    final_index: np.ndarray, share: Share, num_envs: int
) -> np.ndarray:
    """Returns the indices of final observations in the whole rollout."""
    step, env = np.divmod(final_index, share.num_envs)
    index: np.ndarray = step * num_envs + env + share.first
    return index.astype(np.int32)


def _broken(parts: Sequence[Collected]) -> BrokenEpisodes | None:
    """Returns the broken episodes of all workers, if there are any."""
    if all(each.broken is None for each in parts):
        return None
    return BrokenEpisodes.joined(
        [
            each.broken or BrokenEpisodes(each.trajectory.reward.shape)
            for each in parts
        ]
    )
