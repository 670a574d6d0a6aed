"""What worker processes have been asked for, each in its order."""

import logging
import math
import pickle
import time
from collections import deque
from collections.abc import Iterable
from collections.abc import Iterator
from typing import NamedTuple

from keras_rl2.workers.call import Call
from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport

logger = logging.getLogger(__name__)


class Loss(NamedTuple):
    """A process that is gone, or is taken for it.

    Attributes:
        link: `Link`.
        why: str. What it did.
        hangs: bool. Whether it lives, and did not answer in time.
    """

    link: Link
    why: str
    hangs: bool = False


class CallQueues:
    """Sends calls to processes, and receives their answers in turn.

    Args:
        transport: `Transport`. Waits for them.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._asked: dict[Link, deque[Call]] = {}

    def add(self, links: Iterable[Link]) -> None:
        """Begins with processes that have been asked for nothing.

        Args:
            links: Iterable of `Link`.
        """
        self._asked.update((link, deque()) for link in links)

    def end(self, link: Link) -> list[Call]:
        """Ends a process, whatever it is at.

        Args:
            link: `Link`.

        Returns:
            list of `Call` that it has not answered.
        """
        link.kill()
        return list(self._asked.pop(link))

    def end_all(self) -> None:
        """Ends all processes, whatever they are at."""
        for link in [*self._asked]:
            self.end(link)

    def end_busy(self) -> None:
        """Ends the processes that are at something."""
        for link in [link for link, calls in self._asked.items() if calls]:
            self.end(link)

    def clear(self) -> None:
        """Forgets all processes, which somebody else ends."""
        self._asked.clear()

    def send(self, link: Link, call: Call) -> None:
        """Sends a call; a process that is gone is found out by waiting.

        Args:
            link: `Link`. To whom.
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
            # It cannot be sent at all, say.
            calls.remove(call)
            raise

    def receive(self) -> Iterator[Call | Loss]:
        """Waits for one answer at least, or for a process to be lost.

        Yields:
            `Call` that are done, and `Loss`, of which each is to be dealt
            with before the next.
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
        """Says that the arrays of answers are not used any more.

        Args:
            calls: Iterable of `Call` that are done.
        """
        for call in calls:
            call.answer = None
            if call.link in self._asked:
                call.link.release(call.token)
            call.link = call.token = None

    def _answered(self, link: Link) -> Call | Loss:
        """Receives the answer to what a process was asked first."""
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
        """Yields those that have not answered in time."""
        for link in links:
            call = self._asked[link][0]
            if time.monotonic() >= call.deadline:
                yield Loss(
                    link,
                    f"it did not answer {call.method!r} within "
                    f"{call.seconds:.3g} s",
                    hangs=True,
                )
