"""Worker processes of a dataset on one machine or many."""

import contextlib
import os
import signal
import textwrap
import threading
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.envs.errors import WorkerError
from keras_rl2.saving import fresh_python
from keras_rl2.workers.worker_host import WorkerHost
from keras_rl2.workers.worker_host import packed_error
from keras_rl2.workers.worker_pool import SECONDS_TO_CLOSE
from keras_rl2.workers.worker_pool import Link
from keras_rl2.workers.worker_pool import LinkLostError
from keras_rl2.workers.worker_pool import Transport
from keras_rl2.workers.workers import Workers

# Address of the Ray that this process is connected to, if it was done here.
_connected_to: dict[str, str] = {}


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
        options: Mapping or None. Options of the actors, those of
            `ray.actor.ActorClass.options`: `{"num_cpus": 0.5}` reserves half a
            CPU for each, for environments that mostly wait. A Ray that is
            started here runs all workers regardless of it. Defaults to `None`:
            a CPU for each.
        timeout: float or None. Seconds that a worker may take for its share
            of a rollout, after which it is replaced as if it had died.
            Defaults to `None`: no limit.
        start_timeout: float. Seconds that the processes may take to start and
            to make their environments: some minutes where Ray has to start
            machines for them. Defaults to `60.0`.

    Raises:
        ValueError: If a number is out of bounds.

    Example:

    No process starts before a dataset uses the workers, for example
    `rl.RolloutDataset("HalfCheetah-v5", workers=workers)` in a training:

    >>> workers = RayWorkers(100, envs_per_worker=8)
    >>> workers.count, workers.envs_per_worker
    (100, 8)
    """

    @refusing_unknown
    def __init__(
        self,
        count: int,
        envs_per_worker: int | None = None,
        *,
        address: str | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        super().__init__(
            count,
            envs_per_worker,
            timeout=timeout,
            start_timeout=start_timeout,
        )
        self.address = address
        self.options = dict(options or {})

    def _transport(self) -> Transport:
        """Makes the transport that runs the processes."""
        return RayTransport(self.address, {"num_cpus": 1, **self.options})


class RayTransport(Transport):
    """Runs an actor of Ray for each worker.

    Shared values lie in Ray's object store, which sends them to each machine
    once, and from which processes of that machine read them in place.
    """

    def __init__(self, address: str | None, options: Mapping[str, Any]) -> None:
        super().__init__()
        self._ray = import_ray()
        options = {**options, "max_restarts": 0, "max_task_retries": 0}
        if _connect(address) == "local":
            # No one else uses this Ray: all workers run, whatever the cores.
            options["num_cpus"] = 0
        self._actor_class = self._ray.remote(WorkerHost).options(**options)

    def _begin(self) -> Link:
        """Asks for an actor."""
        with _losses():
            return RayLink(self._actor_class.remote())

    def _wait_for_start(self, links: Sequence[Any], seconds: float) -> None:
        """Waits until all actors are there."""
        with _losses():
            starting = [link.actor.__ray_ready__.remote() for link in links]
            there, missing = self._ray.wait(
                starting, num_returns=len(starting), timeout=seconds
            )
            self._ray.get(there)
        if missing:
            raise LinkLostError(
                f"Expected {len(links)} workers. Received: {len(missing)} that "
                f"Ray did not start within {seconds:.0f} s"
            )

    def share(self, value: object) -> Any:
        """Puts something into the object store, and returns a reference."""
        return self._ray.put(value)

    def wait(self, links: Sequence[Any], seconds: float | None) -> list[Link]:
        """Waits for answers; see `Transport`."""
        lost = [link for link in links if link.awaited is None]
        if lost:
            return lost
        awaited = {link.awaited: link for link in links}
        ready, _ = self._ray.wait([*awaited], timeout=seconds)
        return [awaited[each] for each in ready]

    def close(self) -> None:
        """Ends all actors; see `Transport`."""
        if self._end.alive and self._ray.is_initialized():
            closing = []
            for link in self._links:
                with contextlib.suppress(LinkLostError), _losses():
                    closing.append(link.actor.close.remote())
            if closing:
                self._ray.wait(
                    closing, num_returns=len(closing), timeout=SECONDS_TO_CLOSE
                )
        self._end()


class RayLink(Link):
    """An actor of Ray."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        #: The reference to the answer; None if there will be none.
        self.awaited: Any = None

    def send(self, method: str, arguments: Sequence[Any]) -> None:
        """Asks for a call; see `Link`."""
        self.awaited = None
        with _losses():
            self.awaited = self.actor.call.remote(method, *arguments)

    def receive(self) -> tuple[bool, Any]:
        """Returns the answer; see `Link`."""
        if self.awaited is None:
            raise LinkLostError("its actor cannot be reached")
        ray = import_ray()
        try:
            with _losses():
                well, value = ray.get(self.awaited)
        except ray.exceptions.RayTaskError as error:
            # The value cannot be sent: other errors are caught earlier.
            return False, packed_error(error.cause)
        return well, value

    def kill(self) -> None:
        """Kills the process."""
        self.awaited = None
        ray = import_ray()
        if ray.is_initialized():
            # They are raised for an actor that is unknown to Ray.
            with contextlib.suppress(ValueError, ray.exceptions.RayError):
                ray.kill(self.actor, no_restart=True)


def import_ray() -> Any:
    """Imports Ray, which is optional and slow to import."""
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "Expected Ray, which `RayWorkers` need: "
            f'pip install "keras-rl2-fit[ray]". Received: {error}'
        ) from error
    return ray


def _connect(address: str | None) -> str:
    """Connects this process to Ray, unless it is; returns where, if we did."""
    ray = import_ray()
    if ray.is_initialized():
        return _connected_to.get("address", "")
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    settings: dict[str, Any] = {}
    if where == "local":
        path = fresh_python.environ()["PYTHONPATH"]
        settings = {
            "include_dashboard": False,
            # The machines of other clusters have their own installations.
            "runtime_env": {"env_vars": {"PYTHONPATH": path}},
        }
    # Ray takes the signal for itself.
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(where, configure_logging=False, **settings)
    except (OSError, RuntimeError) as error:
        raise WorkerError(
            f"Expected to reach Ray at {where!r}. Received: {error}"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)
    _connected_to["address"] = where
    return where


@contextlib.contextmanager
def _losses() -> Iterator[None]:
    """Turns errors of a lost actor, or a lost answer, into `LinkLostError`."""
    ray = import_ray()
    try:
        yield
    except ray.exceptions.RayTaskError:
        # The called method has raised the error.
        raise
    except ray.exceptions.RayError as error:
        # Ray's message has many lines.
        raise LinkLostError(textwrap.shorten(str(error), 300)) from error
