"""Calls of workers' methods, and the queues of each process."""

import dataclasses
import logging
import math
import pickle
import time
from collections import deque
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport

logger = logging.getLogger(__name__)


# Compared by identity, like calls.
@dataclasses.dataclass(eq=False)
class Shared:
    """A value that all worker processes can read.

    Attributes:
        value: Return value of `Transport.share`.
        calls: int. Number of open calls with it as an argument.
        forgotten: bool. Whether no further call will use it.
    """

    value: Any
    calls: int = 0
    forgotten: bool = False


# Compared by identity: arrays in it cannot be compared.
@dataclasses.dataclass(eq=False)
class Call:
    """A call of a worker's method, under way or answered.

    Attributes:
        index: int. Index of the worker.
        method: str. Name of the method.
        arguments: tuple. Its arguments.
        repeatable: bool. Whether another worker may repeat the call if the
            process is lost.
        seconds: float or None. Time limit from its beginning.
        since: float. Time of its beginning, as far as is known.
        link: `Link` or None. The process that has answered.
        answer: Return value of the method.
        error: Exception or None. Error of the method.
        done: bool. Whether it has been answered.
        dropped: bool. Whether the answer is not needed any more.
        own: bool. Whether it is the pool's own, and no caller waits for it.
        token: Token by which the answer is released.
    """

    index: int
    method: str
    arguments: tuple[Any, ...]
    repeatable: bool
    seconds: float | None
    since: float = 0.0
    link: Link | None = None
    answer: Any = None
    error: BaseException | None = None
    done: bool = False
    dropped: bool = False
    own: bool = False
    token: Any = None

    @property
    def shared(self) -> list[Shared]:
        """The shared values among its arguments."""
        return [each for each in self.arguments if isinstance(each, Shared)]

    def sent_arguments(self) -> list[Any]:
        """Returns the arguments in the form of `Link.send`."""
        return [
            each.value if isinstance(each, Shared) else each
            for each in self.arguments
        ]

    @property
    def deadline(self) -> float:
        """End of its time limit, on the clock of `since`."""
        return math.inf if self.seconds is None else self.since + self.seconds


class Loss(NamedTuple):
    """A process that is gone, or is treated as such.

    Attributes:
        link: `Link`.
        why: str. The reason.
        hangs: bool. Whether it is alive, and did not answer in time.
    """

    link: Link
    why: str
    hangs: bool = False


class CallQueues:
    """Sends calls to processes, and receives their answers in turn.

    Args:
        transport: `Transport`. Waits for answers.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._asked: dict[Link, deque[Call]] = {}

    def add(self, links: Iterable[Link]) -> None:
        """Adds processes without calls.

        Args:
            links: Iterable of `Link`.
        """
        self._asked.update((link, deque()) for link in links)

    def end(self, link: Link) -> list[Call]:
        """Kills a process.

        Args:
            link: `Link`.

        Returns:
            list of `Call` without an answer.
        """
        link.kill()
        return list(self._asked.pop(link))

    def end_all(self) -> None:
        """Kills all processes."""
        for link in [*self._asked]:
            self.end(link)

    def end_busy(self) -> None:
        """Kills the processes with open calls."""
        for link in [link for link, calls in self._asked.items() if calls]:
            self.end(link)

    def clear(self) -> None:
        """Forgets all processes, without ending them."""
        self._asked.clear()

    def send(self, link: Link, call: Call) -> None:
        """Sends a call; `receive` reports a process that is gone.

        Args:
            link: `Link`. The process.
            call: `Call`.
        """
        calls = self._asked[link]
        if not calls:
            call.since = time.monotonic()
        calls.append(call)
        try:
            link.send(call.index, call.method, call.sent_arguments())
        except LinkLostError as error:
            logger.debug("A worker is gone: %s", error)
        except BaseException:
            # E.g. arguments that cannot be pickled.
            calls.remove(call)
            raise

    def receive(self) -> Iterator[Call | Loss]:
        """Waits for one answer at least, or for a process to be lost.

        Yields:
            `Call` that are done, and `Loss`. Each has to be handled before the
            next.
        """
        links = [link for link, calls in self._asked.items() if calls]
        first = min(self._asked[link][0].deadline for link in links)
        seconds = None
        if first < math.inf:
            seconds = max(first - time.monotonic(), 0.0)
        ready = self._transport.wait(links, seconds)
        for link in ready:
            yield self._answered(link)
        if not ready:
            yield from self._late(links)

    def release(self, calls: Iterable[Call]) -> None:
        """Frees the arrays of answers.

        Args:
            calls: Iterable of `Call` that are done.
        """
        for call in calls:
            call.answer = None
            if call.link in self._asked:
                call.link.release(call.token)
            call.link = call.token = None

    def _answered(self, link: Link) -> Call | Loss:
        """Receives the answer to the oldest call of a process."""
        try:
            well, answer, token = link.receive()
        except LinkLostError as error:
            return Loss(
                link, f"it ended ({error})" if str(error) else "it ended"
            )
        calls = self._asked[link]
        call = calls.popleft()
        if calls:
            calls[0].since = time.monotonic()
        call.done, call.link, call.token = True, link, token
        if well:
            call.answer = answer
        else:
            call.error = pickle.loads(answer)
        return call

    def _late(self, links: Iterable[Link]) -> Iterator[Loss]:
        """Yields the processes that have not answered in time."""
        for link in links:
            call = self._asked[link][0]
            if time.monotonic() >= call.deadline:
                yield Loss(
                    link,
                    f"it did not answer {call.method!r} within "
                    f"{call.seconds:.3g} s",
                    hangs=True,
                )
