"""Worker processes wherever Ray runs them."""

import contextlib
import os
import signal
import textwrap
import threading
import time
import weakref
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from keras_rl2.envs.errors import WorkerError
from keras_rl2.saving import fresh_python
from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport
from keras_rl2.workers.worker_host import WorkerHost
from keras_rl2.workers.worker_host import packed_error

# A healthy environment may write files as it closes.
_SECONDS_TO_CLOSE = 5.0
# Address of the Ray that this process is connected to, if it was done here.
_connected_to: dict[str, str] = {}


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


class RayLink(Link):
    """An actor of Ray.

    Args:
        actor: Handle of a `WorkerHost` that Ray runs.
    """

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        #: The reference to the answer; None if there will be none.
        self.awaited: Any = None
        self._lost = LinkLostError("killed")

    def send(self, index: int, method: str, arguments: Sequence[Any]) -> None:
        """Asks for a call; see `Link`."""
        try:
            with _losses():
                self.awaited = self.actor.call.remote(index, method, *arguments)
        except LinkLostError as error:
            self.awaited, self._lost = None, error
            raise

    def receive(self) -> tuple[bool, Any]:
        """Returns the answer; see `Link`."""
        if self.awaited is None:
            raise self._lost
        ray = import_ray()
        try:
            with _losses():
                well, value = ray.get(self.awaited)
        except ray.exceptions.RayTaskError as error:
            # Of a value that cannot be sent: other errors are caught earlier.
            return False, packed_error(error.cause)
        return well, value

    def kill(self) -> None:
        """Kills the process."""
        self.awaited = None
        ray = import_ray()
        if ray.is_initialized():
            # Raised for an actor that is unknown to Ray.
            with contextlib.suppress(ValueError, ray.exceptions.RayError):
                ray.kill(self.actor, no_restart=True)


class RayTransport(Transport):
    """Runs an actor of Ray for each worker.

    Shared values lie in Ray's object store, which sends them to each machine
    once, and from which processes of that machine read them in place.

    Args:
        address: str or None. Where Ray runs; see `RayWorkers`.
        options: Mapping. Of each actor; see `ray.actor.ActorClass.options`.
    """

    def __init__(self, address: str | None, options: Mapping[str, Any]) -> None:
        self._ray = import_ray()
        options = {**options, "max_restarts": 0, "max_task_retries": 0}
        if _connect(address) == "local":
            # No one else uses this Ray: all workers run, whatever the cores.
            options["num_cpus"] = 0
        self._actor_class = self._ray.remote(WorkerHost).options(**options)
        self._links: list[RayLink] = []
        self._end = weakref.finalize(self, _end, self._links)

    def start(self, count: int, seconds: float) -> list[Link]:
        """Starts actors; see `Transport`."""
        until = time.monotonic() + seconds
        links: list[RayLink] = []
        try:
            with _losses():
                for _ in range(count):
                    links.append(RayLink(self._actor_class.remote()))
                waiting = [link.actor.__ray_ready__.remote() for link in links]
                while waiting:
                    left = max(until - time.monotonic(), 0.0)
                    there, waiting = self._ray.wait(waiting, timeout=left)
                    if not there:
                        raise LinkLostError(
                            f"{len(waiting)} that Ray did not start within "
                            f"{seconds:.0f} s"
                        )
                    self._ray.get(there)
        except BaseException:
            for link in links:
                link.kill()
            raise
        self._links += links
        return [*links]

    def share(self, value: object) -> Any:
        """Puts something into the object store, and returns a reference."""
        return self._ray.put(value)

    def wait(self, links: Sequence[Link], seconds: float | None) -> list[Link]:
        """Waits for answers; see `Transport`."""
        ours = [link for link in links if isinstance(link, RayLink)]
        lost = [link for link in ours if link.awaited is None]
        if lost:
            return [*lost]
        awaited = {link.awaited: link for link in ours}
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
                    closing, num_returns=len(closing), timeout=_SECONDS_TO_CLOSE
                )
        self._end()


def _connect(address: str | None) -> str:
    """Connects this process to Ray, unless it is; returns where, if we did."""
    ray = import_ray()
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    if ray.is_initialized():
        if address not in (None, _connected_to.get("address")):
            raise ValueError(
                "Expected no `address` where Ray is connected already. "
                f"Received: address={address!r}"
            )
        return _connected_to.get("address", "")
    settings: dict[str, Any] = {}
    if where == "local":
        path = fresh_python.environ()["PYTHONPATH"]
        settings = {
            "include_dashboard": False,
            # On other clusters, each machine has its own installation.
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
        # An error of the called method.
        raise
    except ray.exceptions.RayError as error:
        # Of many lines.
        raise LinkLostError(textwrap.shorten(str(error), 300)) from error


def _end(links: list[RayLink]) -> None:
    """Kills actors."""
    for link in links:
        link.kill()
