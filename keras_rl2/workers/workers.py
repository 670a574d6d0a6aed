"""The base of settings for collecting with several processes."""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.basics.arguments import check_above_zero
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.envs.vector_env import Step
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.workers.worker import env_maker
from keras_rl2.workers.worker_pool import Transport
from keras_rl2.workers.worker_pool import WorkerPool


class Workers(abc.ABC):
    """Base of settings for stepping a dataset's environments in processes.

    Each worker is a process that holds as many environments as the others and
    a copy of the policy, and imports no TensorFlow. Arguments are described by
    `LocalWorkers`.
    """

    @refusing_unknown
    def __init__(
        self,
        count: int,
        envs_per_worker: int | None = None,
        *,
        timeout: float | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        check_positive(
            count=count,
            envs_per_worker=1 if envs_per_worker is None else envs_per_worker,
        )
        check_above_zero(
            **present(timeout=timeout), start_timeout=start_timeout
        )
        self.count = count
        self.envs_per_worker = envs_per_worker
        self.timeout = timeout
        self.start_timeout = start_timeout

    @abc.abstractmethod
    def _transport(self) -> Transport:
        """Makes the transport that runs the processes."""

    def start(
        self,
        env: GivenEnv,
        num_envs: int,
        *,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
        seed: int = 0,
    ) -> "WorkerEnv":
        """Starts the processes and makes the environments in them."""
        maker = env_maker(env, env_kwargs, wrappers)
        each = self._envs_of_each(num_envs)
        shares = [slice(i * each, (i + 1) * each) for i in range(self.count)]
        return WorkerEnv(
            WorkerPool(
                self._transport(),
                maker,
                shares,
                timeout=self.timeout,
                start_timeout=self.start_timeout,
                seed=seed,
            )
        )

    def _envs_of_each(self, num_envs: int) -> int:
        """Returns the number of environments of each worker."""
        # By default, one for each worker.
        each = self.envs_per_worker or max(num_envs // self.count, 1)
        if num_envs not in (1, each * self.count):
            raise ValueError(
                "Expected `num_envs` to be left out, or to be a multiple of "
                f"the number of workers, {self.count}, and `count` x "
                f"`envs_per_worker`, {self.count} x {each}. "
                f"Received: num_envs={num_envs}"
            )
        return each


class WorkerEnv(VectorEnvAdapter):
    """The environments that workers hold, to be stepped from here.

    Rollouts are not collected through it: each step here is a message to each
    worker and back. It serves other uses of a dataset's environments, and has
    their spaces.

    Attributes:
        pool: `WorkerPool`.
        envs_per_worker: int. Environments of each worker.
    """

    def __init__(self, pool: WorkerPool) -> None:
        name, observation_space, action_space, masks = pool.description
        num_envs = pool.shares[-1].stop
        super().__init__(pool, num_envs, observation_space, action_space)
        self.pool = pool
        self.envs_per_worker = pool.shares[0].stop
        self.name = name
        self.masks_reset_rows = masks

    def _reset(self, seed: int | None) -> Any:
        """Resets the environments of all workers."""
        return side_by_side(self.pool.call_all("reset", seed))

    def _step(self, action: Tree[np.ndarray]) -> Step:
        """Steps the environments of all workers."""
        action = self._to_action(action)
        own = [
            (map_leaves(lambda each, s=share: each[s], action),)
            for share in self.pool.shares
        ]
        answers = self.pool.gather(self.pool.submit("step", own))
        steps, pending = zip(*answers, strict=True)
        self.pending_reset = np.concatenate(pending)
        observation, *outcome, final = zip(*steps, strict=True)
        finals = None
        if any(each is not None for each in final):
            # Rows of episodes that have not ended have no meaning.
            finals = side_by_side(
                [
                    seen if last is None else last
                    for seen, last in zip(observation, final, strict=True)
                ]
            )
        reward, terminated, truncated = map(np.concatenate, outcome)
        return (
            side_by_side(observation),
            reward,
            terminated,
            truncated,
            finals,
        )


def side_by_side(trees: Sequence[Any], axis: int = 0) -> Any:
    """Concatenates the arrays of all workers along the environments' axis."""
    return map_leaves(lambda *arrays: np.concatenate(arrays, axis=axis), *trees)
