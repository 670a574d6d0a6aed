"""Worker processes of a dataset on one machine or many."""

from collections.abc import Mapping
from typing import Any

from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.workers.ray_transport import RayTransport
from keras_rl2.workers.transport import Transport
from keras_rl2.workers.workers import Workers


class RayWorkers(Workers):
    """Steps a dataset's environments in actors of Ray, on any machine.

    They work as `LocalWorkers`, which are lighter, but on any machine of Ray:
    weights go out through its object store, once a round to each machine, and
    trajectories come back through it. The extra `ray` is required; machines
    other than this one need the package and the environments' requirements, but
    no graphics card.

    An existing connection to Ray is used. Otherwise Ray is connected to, or
    started, here; it ends with the program, or by `ray.shutdown`.

    Args:
        count: int. Number of workers.
        envs_per_worker: int or None. Environments of each; None for
            `num_envs` of the dataset, shared out evenly. Defaults to `None`.
        address: str or None. Address of Ray, as for `ray.init`: `"auto"` on a
            machine of a cluster. None for the environment variable
            `RAY_ADDRESS`, and without it for a Ray of its own on this machine.
            Defaults to `None`.
        num_cpus_per_worker: float. CPUs that Ray reserves for each, below 1 for
            environments that mostly wait. A Ray that is started here runs all
            workers regardless of it. Defaults to `1`.
        options: Mapping or None. Other options of the actors, those of
            `ray.actor.ActorClass.options`. Defaults to `None`.
        min_workers: int. Number of processes below which an error is raised. A
            process that is lost, perhaps with its machine, is replaced; if that
            fails, the remaining ones take over its environments. Defaults to
            `1`.
        timeout: float or None. Seconds that a worker may take for its share
            of a rollout, after which it is replaced. Defaults to `None`: no
            limit.
        start_timeout: float. Seconds that the processes may take to start and
            to make their environments: some minutes where Ray has to start
            machines for them. Defaults to `60.0`.

    Raises:
        ValueError: If a number is out of bounds, or an option is one that
            workers set themselves.

    Example:

    No process starts before a dataset uses the workers, e.g.
    `rl.RolloutDataset("HalfCheetah-v5", workers=workers)` in a training:

    >>> workers = RayWorkers(100, envs_per_worker=8, min_workers=80)
    >>> workers.count, workers.envs_per_worker, workers.min_workers
    (100, 8, 80)
    """

    @refusing_unknown
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
                "Expected `options` without those that workers set themselves, "
                f"{sorted(own)}. Received: {sorted(taken)}"
            )
        self.address = address
        self.num_cpus_per_worker = num_cpus_per_worker
        self.options = dict(options or {})

    def _transport(self) -> Transport:
        """Makes the transport that runs the processes."""
        return RayTransport(
            self.address, {**self.options, "num_cpus": self.num_cpus_per_worker}
        )
