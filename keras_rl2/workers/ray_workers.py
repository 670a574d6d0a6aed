"""Worker processes of one machine or many, given to a dataset."""

from collections.abc import Mapping
from typing import Any

from keras_rl2.basics.arguments import check_in_range
from keras_rl2.workers.ray_transport import RayTransport
from keras_rl2.workers.transport import Transport
from keras_rl2.workers.workers import Workers


class RayWorkers(Workers):
    """Steps a dataset's environments in actors of Ray, on any machine.

    As `LocalWorkers`, whose processes are lighter, but wherever Ray runs them:
    weights go out through its object store, once a round to each machine, and
    trajectories come back through it. Needs the extra `ray`; machines other
    than this one need the package, and what the environments need, but no
    graphics card.

    Where `ray.init` has been called before, that is used, and left running.
    Otherwise Ray is connected to, or started, here, and left with `close` of
    the last dataset that uses it.

    Args:
        count: int. Workers.
        envs_per_worker: int or None. Environments of each; None for
            `num_envs` of the dataset, shared out evenly. Defaults to `None`.
        address: str or None. Where Ray runs, as of `ray.init`: `"auto"` on a
            machine of a cluster. None for what the environment variable
            `RAY_ADDRESS` says, as it does in jobs, and without it for a Ray
            of its own on this machine. Defaults to `None`.
        num_cpus_per_worker: float. What Ray sets aside for each, below 1 for
            environments that mostly wait. Of no effect on a Ray that is
            started here, which runs as many as are asked for. Defaults to `1`.
        options: Mapping or None. Other options of the actors, those of
            `ray.actor.ActorClass.options`: `{"scheduling_strategy": "SPREAD"}`
            or `{"resources": {"simulator": 1}}`, say. Defaults to `None`.
        min_workers: int. Processes below which there is an error. One that is
            lost, with its machine perhaps, is replaced; one that cannot be
            leaves its environments to those that are left. Defaults to `1`.
        timeout: float or None. Seconds that a worker may take for its share
            of a rollout, after which it is replaced. Defaults to `None`: as
            long as it likes.
        start_timeout: float. Seconds that the processes may take to start and
            to make their environments: some minutes where Ray has to start
            machines for them. Defaults to `60.0`.

    Raises:
        ValueError: If a number is out of bounds, or an option is what workers
            set themselves.

    Example:

    Nothing is started before a dataset asks for it, here
    `rl.RolloutDataset("HalfCheetah-v5", workers=workers)` in a training:

    >>> workers = RayWorkers(100, envs_per_worker=8, min_workers=80)
    >>> workers.count, workers.envs_per_worker, workers.min_workers
    (100, 8, 80)
    """

    def __init__(
        self,
        count: int,
        envs_per_worker: int | None = None,
        *,
        address: str | None = None,
        num_cpus_per_worker: float = 1,
        options: Mapping[str, Any] | None = None,
        min_workers: int = 1,
        timeout: float | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        super().__init__(
            count,
            envs_per_worker,
            min_workers=min_workers,
            timeout=timeout,
            start_timeout=start_timeout,
        )
        check_in_range(num_cpus_per_worker=(num_cpus_per_worker, 0.0, 1e6))
        own = {"num_cpus", "max_restarts", "max_task_retries"}
        if taken := own & set(options or ()):
            raise ValueError(
                "Expected `options` without what workers set themselves, "
                f"{sorted(own)}. Received: {sorted(taken)}"
            )
        self.address = address
        self.num_cpus_per_worker = num_cpus_per_worker
        self.options = dict(options or {})

    def _transport(self) -> Transport:
        """Makes what runs the processes."""
        return RayTransport(
            self.address, {**self.options, "num_cpus": self.num_cpus_per_worker}
        )
