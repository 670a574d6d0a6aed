"""What is asked of a way to run worker processes."""

import abc
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple


class Answer(NamedTuple):
    """What a process says to a call.

    Attributes:
        well: bool. Whether the call went well.
        value: What it returned; else the error, as `WorkerHost.call` has it.
            Arrays in it are good until the answer is released.
        token: What it is released by.
    """

    well: bool
    value: Any
    token: Any


class LinkLostError(Exception):
    """A worker process is gone, or cannot be reached any more."""


class Link(abc.ABC):
    """One worker process, as it is seen from the learner's.

    Calls are done in the order in which they were sent, and answered in it.
    """

    @abc.abstractmethod
    def send(self, index: int, method: str, arguments: Sequence[Any]) -> None:
        """Asks for a call, without waiting for it.

        Args:
            index: int. Which of its workers; see `WorkerHost.call`.
            method: str. What is called.
            arguments: Sequence. What it is given; what `Transport.share`
                returned stands for what was shared.

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
        """Says that an answer is not used any more.

        Args:
            token: That of the answer.
        """

    @abc.abstractmethod
    def kill(self) -> None:
        """Ends the process at once, whatever it is at."""

    @abc.abstractmethod
    def close(self) -> None:
        """Asks the process to close its environments and to end."""


class Transport(abc.ABC):
    """Starts worker processes, and waits for what they say."""

    @abc.abstractmethod
    def start(self, count: int, seconds: float) -> list[Link]:
        """Starts processes.

        Args:
            count: int. How many.
            seconds: float. How long they may take.

        Returns:
            list of `Link`.

        Raises:
            LinkLostError: If one did not start.
        """

    @abc.abstractmethod
    def share(self, value: Any) -> Any:
        """Makes something known to all processes, once.

        Args:
            value: Anything that can be pickled, with arrays in it perhaps.

        Returns:
            What stands for it among the arguments of calls.
        """

    @abc.abstractmethod
    def forget(self, shared: Any) -> None:
        """Says that what was shared is not used any more, by anybody."""

    @abc.abstractmethod
    def wait(self, links: Sequence[Link], seconds: float | None) -> list[Link]:
        """Waits until there is an answer, or a process is gone.

        Args:
            links: Sequence of `Link`. Those that are waited for.
            seconds: float or None. How long at most.

        Returns:
            list of those that `receive` may be called of, which will not
            wait; empty after so many seconds.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Leaves nothing behind: no process, and no memory."""
