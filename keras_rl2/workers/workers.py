"""The base of settings for collecting with several processes."""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NoReturn

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
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

    @arguments.refusing_unknown
    def __init__(
        self,
        count: int,
        envs_per_worker: int | None = None,
        *,
        timeout: float | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        arguments.check_positive(
            count=count, **arguments.present(envs_per_worker=envs_per_worker)
        )
        arguments.check_above_zero(
            **arguments.present(timeout=timeout), start_timeout=start_timeout
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
        # The default is one environment for each worker.
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
    """The spaces of environments that workers hold.

    Rollouts are not collected through it, and nothing else can step them.

    Attributes:
        pool: `WorkerPool`.
        envs_per_worker: int. Rows of the batch of each worker.
        shares: list of slices. Rows of each worker.
    """

    def __init__(self, pool: WorkerPool) -> None:
        spaces, attributes = pool.description
        # Of games, more than those that a worker makes: a row for each player.
        each = self.envs_per_worker = attributes["num_envs"]
        workers = range(len(pool.shares))
        super().__init__(pool, len(workers) * each, *spaces)
        vars(self).update(attributes, num_envs=self.num_envs)
        self.players *= len(workers)
        self.pool = pool
        self.shares = [slice(i * each, (i + 1) * each) for i in workers]

    @property
    def source_kind(self) -> type[Any]:
        """Class of the source of a dataset's steps."""
        # Workers do without it: it imports TensorFlow.
        from keras_rl2.workers.worker_source import WorkerSource

        return WorkerSource

    def _one(self) -> Any:
        """Returns another environment like those of the workers."""
        return self.pool.maker(1)

    def reset_envs(self, seed: int | None) -> NoReturn:
        """Raises an error: only rollouts begin episodes there."""
        raise ValueError(
            "Expected environments of their own for other uses than the "
            "rollouts of a dataset, e.g. an id. Received: those that workers "
            "hold"
        )

    def step_envs(self, action: Tree[np.ndarray]) -> NoReturn:
        """Raises an error: there are no episodes of which it could be one."""
        self.reset_envs(None)


def side_by_side(trees: Sequence[Any], axis: int = 0) -> Any:
    """Concatenates the arrays of all workers along the environments' axis."""
    return map_leaves(lambda *arrays: np.concatenate(arrays, axis=axis), *trees)
