"""The interface of transports, which run worker processes."""

import abc
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple


class Answer(NamedTuple):
    """The answer of a process to a call.

    Attributes:
        well: bool. Whether the call succeeded.
        value: Its return value; else the error, in the form of
            `WorkerHost.call`. Arrays in it are valid until the answer is
            released.
        token: Token by which it is released.
    """

    well: bool
    value: Any
    token: Any


class LinkLostError(Exception):
    """A worker process is gone, or cannot be reached any more."""


class Link(abc.ABC):
    """The learner's connection to one worker process.

    Calls are executed and answered in the order in which they were sent.
    """

    @abc.abstractmethod
    def send(self, index: int, method: str, arguments: Sequence[Any]) -> None:
        """Asks for a call, without waiting for it.

        Args:
            index: int. Index of the worker; see `WorkerHost.call`.
            method: str. Name of the method.
            arguments: Sequence. Its arguments; a return value of
                `Transport.share` stands for the shared value.

        Raises:
            LinkLostError: If the process is gone.
        """

    @abc.abstractmethod
    def receive(self) -> Answer:
        """Returns the next answer.

        Raises:
            LinkLostError: If the process is gone.
        """

    @abc.abstractmethod
    def release(self, token: Any) -> None:
        """Frees an answer.

        Args:
            token: Token of the answer.
        """

    @abc.abstractmethod
    def kill(self) -> None:
        """Kills the process."""

    @abc.abstractmethod
    def close(self) -> None:
        """Asks the process to close its environments and to end."""


class Transport(abc.ABC):
    """Starts worker processes, and waits for their answers."""

    @abc.abstractmethod
    def start(self, count: int, seconds: float) -> list[Link]:
        """Starts processes.

        Args:
            count: int. Number of processes.
            seconds: float. Time limit.

        Returns:
            list of `Link`.

        Raises:
            LinkLostError: If one did not start.
        """

    @abc.abstractmethod
    def share(self, value: object) -> Any:
        """Sends a value once, for all processes.

        Args:
            value: Any picklable value, possibly with arrays.

        Returns:
            Placeholder for it among the arguments of calls.
        """

    @abc.abstractmethod
    def forget(self, shared: Any) -> None:
        """Frees a shared value."""

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
        """Ends all processes, and frees all memory."""
