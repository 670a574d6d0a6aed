"""Worker processes wherever Ray runs them."""

import contextlib
import textwrap
import time
import weakref
from collections import deque
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from keras_rl2.workers.ray_connection import RayConnection
from keras_rl2.workers.ray_connection import import_ray
from keras_rl2.workers.ray_host import RayHost
from keras_rl2.workers.transport import Answer
from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport
from keras_rl2.workers.worker_host import packed_error

# An environment that is well may write files as it closes.
_SECONDS_TO_CLOSE = 5.0
# Ray kills an actor by a message to it.
_SECONDS_TO_DIE = 2.0


class RayLink(Link):
    """An actor of Ray.

    Args:
        actor: Handle of a `RayHost` that Ray runs.
        connection: `RayConnection`. To where it runs.
    """

    def __init__(self, actor: Any, connection: RayConnection) -> None:
        self.actor = actor
        self._connection = connection
        self._ray = connection.ray
        # The reference to the result of closing its environments.
        self.closing: Any = None
        self._lost: Exception | None = None
        # References to answers that have not been read.
        self._asked: deque[Any] = deque()

    @property
    def awaited(self) -> Any:
        """The reference to the next answer; None if there will be none."""
        return self._asked[0] if self._lost is None else None

    def send(self, index: int, method: str, arguments: Sequence[Any]) -> None:
        """Asks for a call; see `Link`."""
        try:
            with losses():
                answer = self.actor.call.remote(index, method, *arguments)
        except LinkLostError as error:
            self._lost = error
            raise
        self._asked.append(answer)

    def receive(self) -> Answer:
        """Returns the next answer; see `Link`."""
        if self._lost is not None:
            raise self._lost
        answer = self._asked.popleft()
        try:
            with losses():
                well, value = self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as error:
            # Of a value that cannot be sent: other errors are caught earlier.
            return Answer(False, packed_error(error.cause), answer)
        return Answer(well, value, answer)

    def release(self, token: Any) -> None:
        """Does nothing: Ray counts who refers to an answer."""

    def kill(self) -> None:
        """Ends the process at once."""
        self._lost = LinkLostError("killed")
        self._asked.clear()
        if self._connection.alive:
            # Raised for an actor that is unknown to Ray.
            with contextlib.suppress(ValueError, *_errors()):
                self._ray.kill(self.actor, no_restart=True)

    def close(self) -> None:
        """Asks the process to close its environments."""
        with contextlib.suppress(LinkLostError), losses():
            self.closing = self.actor.close.remote()


class RayTransport(Transport):
    """Runs an actor of Ray for each worker.

    Shared values lie in Ray's object store, which sends them to each machine
    once, and from which processes of that machine read them in place; so do
    answers, and the process that they are for.

    Args:
        address: str or None. Where Ray runs; see `RayConnection.to`.
        options: Mapping. Of each actor; see `ray.actor.ActorClass.options`.
    """

    def __init__(self, address: str | None, options: Mapping[str, Any]) -> None:
        self._connection = RayConnection.to(address)
        self._ray = self._connection.ray
        options = {**options, "max_restarts": 0, "max_task_retries": 0}
        if self._connection.starts_ray:
            # No one else uses this Ray: all workers run, whatever the cores.
            options["num_cpus"] = 0
        self._actor_class = self._ray.remote(RayHost).options(**options)
        self._links: list[RayLink] = []
        self._end = weakref.finalize(self, _end, self._links, self._connection)

    def start(self, count: int, seconds: float) -> list[Link]:
        """Starts actors; see `Transport`."""
        until = time.monotonic() + seconds
        links, waiting = [], []
        try:
            with losses():
                for _ in range(count):
                    actor = self._actor_class.remote()
                    links.append(RayLink(actor, self._connection))
                    waiting.append(actor.ping.remote())
                while waiting:
                    left = max(until - time.monotonic(), 0.0)
                    there, waiting = self._ray.wait(waiting, timeout=left)
                    if not there:
                        raise LinkLostError(self._too_late(waiting, seconds))
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

    def forget(self, shared: Any) -> None:
        """Does nothing: Ray counts the references to shared values."""

    def wait(self, links: Sequence[Link], seconds: float | None) -> list[Link]:
        """Waits for answers; see `Transport`."""
        ours = [link for link in links if isinstance(link, RayLink)]
        lost = [link for link in ours if link.awaited is None]
        if lost or not ours:
            return [*lost]
        awaited = {link.awaited: link for link in ours}
        ready, others = self._ray.wait([*awaited], timeout=seconds)
        if ready and others:
            # One at a time would be one wait over all for each of them.
            more, _ = self._ray.wait(others, num_returns=len(others), timeout=0)
            ready += more
        return [awaited[each] for each in ready]

    def close(self) -> None:
        """Ends all actors, and Ray if it was started here."""
        if self._end.alive and self._connection.alive:
            for link in self._links:
                link.close()
            closing = [link.closing for link in self._links if link.closing]
            if closing:
                self._ray.wait(
                    closing, num_returns=len(closing), timeout=_SECONDS_TO_CLOSE
                )
        self._end()

    def _too_late(self, waiting: Sequence[Any], seconds: float) -> str:
        """Returns a message with Ray's free resources, for a late start."""
        free = self._ray.available_resources().get("CPU", 0)
        return (
            f"{len(waiting)} that Ray did not start within {seconds:.0f} s, "
            f"with {free:g} CPUs left free"
        )


@contextlib.contextmanager
def losses() -> Iterator[None]:
    """Turns errors of a lost actor, or a lost answer, into `LinkLostError`."""
    ray = import_ray()
    try:
        yield
    except ray.exceptions.RayTaskError:
        # An error of the called method.
        raise
    except ray.exceptions.RayError as error:
        raise LinkLostError(_in_short(error)) from error


def _in_short(error: Exception) -> str:
    """Shortens an error of Ray, which has many lines."""
    lines = [
        textwrap.shorten(line, 200, placeholder=" ...")
        for line in str(error).splitlines()
        if line.strip() and not line.startswith("\t")
    ]
    return " ".join(lines if len(lines) < 2 else (lines[0], lines[-1]))


def _errors() -> tuple[type[Exception], ...]:
    """Returns the errors that Ray raises."""
    return (import_ray().exceptions.RayError,)


def _end(links: list[RayLink], connection: RayConnection) -> None:
    """Kills actors, and ends Ray if it was started here."""
    if connection.alive:
        gone = []
        for link in links:
            link.kill()
            with contextlib.suppress(LinkLostError), losses():
                gone.append(link.actor.ping.remote())
        if gone:
            # Answered with an error once a process is not there any more.
            connection.ray.wait(
                gone, num_returns=len(gone), timeout=_SECONDS_TO_DIE
            )
    connection.release()
