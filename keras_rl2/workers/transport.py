"""The interface of transports, which run worker processes."""

import abc
import os
import weakref
from collections.abc import Sequence
from typing import Any

# A healthy environment may write files as it closes.
SECONDS_TO_CLOSE = 5.0


class LinkLostError(Exception):
    """A worker process is gone, or cannot be reached any more."""


class Link(abc.ABC):
    """The learner's connection to one worker process.

    A call is sent only when the one before it has been answered. All methods
    but `kill` raise a `LinkLostError` if the process is gone.
    """

    @abc.abstractmethod
    def send(self, index: int, method: str, arguments: Sequence[Any]) -> None:
        """Asks for `WorkerHost.call`, without waiting for it.

        Args:
            index: int. Index of the worker.
            method: str. Name of the method.
            arguments: Sequence. Its arguments.
        """

    @abc.abstractmethod
    def receive(self) -> tuple[bool, Any]:
        """Returns the answer of `WorkerHost.call`."""

    @abc.abstractmethod
    def kill(self) -> None:
        """Kills the process."""


class Transport(abc.ABC):
    """Starts worker processes, and waits for their answers."""

    def __init__(self) -> None:
        self._links: list[Any] = []
        self._end = weakref.finalize(self, _kill, self._links, os.getpid())

    def start(self, count: int, seconds: float) -> list[Link]:
        """Starts processes.

        Args:
            count: int. Number of processes.
            seconds: float. Time limit.

        Raises:
            LinkLostError: If one did not start.
        """
        links: list[Link] = []
        try:
            for _ in range(count):
                links.append(self._begin())
            self._wait_for_start(links, seconds)
        except BaseException:
            _kill(links, os.getpid())
            raise
        self._links += links
        return links

    @abc.abstractmethod
    def _begin(self) -> Link:
        """Begins to start a process."""

    @abc.abstractmethod
    def _wait_for_start(self, links: Sequence[Any], seconds: float) -> None:
        """Waits until processes have started, or raises a `LinkLostError`."""

    def share(self, value: object) -> Any:
        """Returns a stand-in for a value, as an argument of many calls."""
        return value

    @abc.abstractmethod
    def wait(self, links: Sequence[Any], seconds: float | None) -> list[Link]:
        """Waits until there is an answer, or a process is gone.

        Args:
            links: Sequence of `Link`. The processes.
            seconds: float or None. Time limit.

        Returns:
            list of `Link` with `receive` ready to return at once; empty after
            the time limit.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Lets all processes close their environments and end."""


def _kill(links: Sequence[Link], owner: int) -> None:
    """Kills processes, unless in a forked copy of the process that has them."""
    if os.getpid() == owner:
        for link in links:
            link.kill()
