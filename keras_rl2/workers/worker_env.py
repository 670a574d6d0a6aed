"""All environments of all workers, as one vector environment."""

from typing import Any

import numpy as np

from keras_rl2.envs.vector_env import Step
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.workers.worker_pool import WorkerPool


class WorkerEnv(VectorEnvAdapter):
    """The environments that workers hold, to be stepped from here.

    Rollouts are not collected through it: each step here is a message to each
    worker and back. It serves other uses of a dataset's environments, and has
    their spaces.

    Args:
        pool: `WorkerPool`. Holds them.

    Attributes:
        pool: `WorkerPool`.
        envs_per_worker: int. Environments of each worker.
    """

    def __init__(self, pool: WorkerPool) -> None:
        described = pool.descriptions[0]
        shares = pool.shares
        super().__init__(
            pool,
            sum(share.num_envs for share in shares),
            described["observation_space"],
            described["action_space"],
        )
        self.pool = pool
        self.envs_per_worker = shares[0].num_envs
        self.name = described["name"]
        self.masks_reset_rows = described["masks_reset_rows"]

    def _reset(self, seed: int | None) -> Any:
        """Resets the environments of all workers."""
        calls = [
            self.pool.submit(share.index, "reset", seed)
            for share in self.pool.shares
        ]
        return side_by_side(self.pool.gather(calls))

    def _step(self, action: Tree[np.ndarray]) -> Step:
        """Steps the environments of all workers."""
        action = self._to_action(action)
        calls = []
        for share in self.pool.shares:
            own = map_leaves(lambda each, s=share: each[s.envs], action)
            calls.append(self.pool.submit(share.index, "step", own))
        answers = self.pool.gather(calls)
        steps = [step for step, _ in answers]
        observation = side_by_side([step[0] for step in steps])
        outcome = [
            np.concatenate([step[place] for step in steps])
            for place in (1, 2, 3)
        ]
        final = None
        if any(step[4] is not None for step in steps):
            # Rows of episodes that have not ended have no meaning.
            final = side_by_side(
                [step[0] if step[4] is None else step[4] for step in steps]
            )
        self.pending_reset = np.concatenate([each for _, each in answers])
        return (observation, *outcome, final)

    def watch(self) -> None:
        """Does nothing: each worker notes its environments itself."""

    def restart(self, seed: int | None = None) -> Any:
        """Starts new episodes in every environment, after one has failed."""
        return self.reset(seed)

    def limit_steps(self, seconds: float) -> None:
        """Raises an error: the workers' own timeout limits whole rollouts."""
        raise ValueError(
            "Expected `step_timeout=None` with `workers`, which have a "
            f"`timeout` of their own. Received: step_timeout={seconds}"
        )


def side_by_side(trees: list[Any], axis: int = 0) -> Any:
    """Concatenates the arrays of all workers along the environments' axis."""
    return map_leaves(lambda *arrays: np.concatenate(arrays, axis=axis), *trees)
