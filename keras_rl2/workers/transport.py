"""The interface of transports, which run worker processes."""

import abc
from collections.abc import Sequence
from typing import Any


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
        """Returns the answer, what `WorkerHost.call` has returned."""

    @abc.abstractmethod
    def kill(self) -> None:
        """Kills the process."""


class Transport(abc.ABC):
    """Starts worker processes, and waits for their answers."""

    @abc.abstractmethod
    def start(self, count: int, seconds: float) -> list[Link]:
        """Starts processes.

        Args:
            count: int. Number of processes.
            seconds: float. Time limit.

        Raises:
            LinkLostError: If one did not start.
        """

    def share(self, value: object) -> Any:
        """Returns a stand-in for a value, as an argument of many calls."""
        return value

    @abc.abstractmethod
    def wait(self, links: Sequence[Link], seconds: float | None) -> list[Link]:
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
