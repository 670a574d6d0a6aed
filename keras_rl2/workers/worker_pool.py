"""Processes of workers: their calls, and the replacement of lost ones."""

import abc
import dataclasses
import logging
import math
import os
import pickle
import time
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any
from typing import NoReturn

import cloudpickle

from keras_rl2.envs.errors import WorkerError
from keras_rl2.workers.worker import EnvMaker
from keras_rl2.workers.worker import derived_seed
from keras_rl2.workers.worker_host import unpacked_error

# A healthy environment may write files as it closes.
SECONDS_TO_CLOSE = 5.0
# Losses of one worker in a row, without a rollout between them, after which
# replacing it is given up.
MOST_LOSSES = 5
# Time limit for the start of a replacing process; at least twice the time that
# the first processes took.
SECONDS_TO_REPLACE = 8.0

logger = logging.getLogger(__name__)


class LinkLostError(WorkerError):
    """A worker process is gone, or cannot be reached any more."""


class Link(abc.ABC):
    """The learner's connection to one worker process.

    A call is sent only when the one before it has been answered. All methods
    but `kill` raise a `LinkLostError` if the process is gone.
    """

    @abc.abstractmethod
    def send(self, method: str, arguments: Sequence[Any]) -> None:
        """Asks for `WorkerHost.call`, without waiting for it."""

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
        """Starts processes."""
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
        """Waits until there is an answer, or a process is gone."""

    @abc.abstractmethod
    def close(self) -> None:
        """Lets all processes close their environments and end."""


def _kill(links: Sequence[Link], owner: int) -> None:
    """Kills processes, unless in a forked copy of the process that has them."""
    if os.getpid() == owner:
        for link in links:
            link.kill()


# Compared by identity: arrays in it cannot be compared.
@dataclasses.dataclass(eq=False)
class Call(Future[Any]):
    """A call of a worker's method; its result is the answer.

    Attributes:
        method: str. Name of the method.
        arguments: tuple. Its arguments.
        seconds: float or None. Time limit.
        internal: bool. Whether no caller waits for it.
    """

    method: str
    arguments: tuple[Any, ...]
    seconds: float | None
    internal: bool = False

    def __post_init__(self) -> None:
        super().__init__()


@dataclasses.dataclass(eq=False)
class _Process:
    """A process of a worker, and its calls without an answer.

    The first call has been sent at the time `since`.
    """

    index: int
    link: Link
    calls: deque[Call] = dataclasses.field(default_factory=deque)
    since: float = 0.0

    @property
    def deadline(self) -> float:
        """The end of the first call's time limit."""
        seconds = self.calls[0].seconds
        return math.inf if seconds is None else self.since + seconds

    def ask(self, call: Call) -> None:
        """Sends a call, once those before it are answered."""
        self.calls.append(call)
        if len(self.calls) == 1:
            self.send_first()

    def send_first(self) -> None:
        """Sends the first call, and ends those that cannot be sent."""
        while self.calls:
            call = self.calls[0]
            self.since = time.monotonic()
            try:
                self.link.send(call.method, call.arguments)
            except LinkLostError as error:
                logger.debug("A worker is gone: %s", error)
            except Exception as error:
                # Some arguments cannot be pickled, for example.
                self.calls.popleft().set_exception(error)
                continue
            return


class WorkerPool:
    """Calls workers in processes, and replaces processes that are lost.

    A process that has died, or has not answered in time, is replaced by
    another one, in which the same environments are made again and the calls are
    repeated. Ctrl-C ends all processes, since their calls may never end; they
    are started again at the next call.

    Attributes:
        shares: list of slices.
        maker: Function that makes a number of environments.
        losses: int. Number of lost processes so far.
        closed: bool. Whether all processes have ended for good.
        description: tuple, as returned by `Worker.describe`.
    """

    def __init__(
        self,
        transport: Transport,
        maker: EnvMaker,
        shares: Sequence[slice],
        timeout: float | None,
        start_timeout: float,
        seed: int,
    ) -> None:
        self.shares = list(shares)
        self.losses = 0
        self.closed = False
        self._seed = seed
        self._transport = transport
        self.maker = maker
        self._timeout = timeout
        self._replace_seconds = start_timeout
        self._plan: tuple[Any, ...] = ()
        self._losses_in_a_row = [0] * len(self.shares)
        self._processes: list[_Process] = []
        began = time.monotonic()
        try:
            self._start()
            self.description = pickle.loads(self.call_all("describe")[0])
        except BaseException:
            self.close()
            raise
        took = time.monotonic() - began
        self._replace_seconds = max(SECONDS_TO_REPLACE, 2.0 * took)

    def share(self, value: object) -> Any:
        """Returns a stand-in for a value; see `Transport.share`."""
        self._require_open()
        return self._transport.share(value)

    def submit(
        self, method: str, arguments: Sequence[tuple[Any, ...]]
    ) -> list[Call]:
        """Calls a method of all workers, without waiting for it.

        The worker that replaces a lost one repeats its call.
        """
        self._require_open()
        try:
            if not self._processes:
                # They were interrupted.
                self._start()
            calls = []
            for process, each in zip(self._processes, arguments, strict=True):
                calls.append(Call(method, each, self._timeout))
                process.ask(calls[-1])
        except BaseException as error:
            self.break_off(error)
            raise
        return calls

    def call_all(self, method: str, *arguments: Any) -> list[Any]:
        """Calls a method of all workers with the same arguments."""
        return self.gather(self.submit(method, [arguments] * len(self.shares)))

    def plan(self, *plan: Any) -> None:
        """Calls `Worker.plan` of all, and of those that will replace them."""
        self._plan = plan
        self.call_all("plan", *plan)

    def gather(self, calls: Sequence[Call]) -> list[Any]:
        """Waits for answers."""
        try:
            while not all(call.done() for call in calls):
                self._receive()
        except BaseException as error:
            self.break_off(error)
            raise
        return [call.result() for call in calls]

    def break_off(self, error: BaseException) -> None:
        """Ends all processes after an interruption, for example by Ctrl-C.

        Their calls may never end, and a message may be half sent.
        """
        if isinstance(error, Exception):
            return
        for process in self._processes:
            self.losses += 1
            process.link.kill()
            for call in process.calls:
                broken = WorkerError("Expected an answer. Received: a break")
                call.set_exception(broken)
        self._processes.clear()

    def close(self) -> None:
        """Ends all processes."""
        self.closed = True
        self._processes.clear()
        self._transport.close()

    def _require_open(self) -> None:
        """Raises an error if the workers have ended."""
        if self.closed:
            raise ValueError("Expected workers that are open. Received: closed")

    def _give_up(self, expected: str, received: str) -> NoReturn:
        """Ends all processes, those with open calls at once, and raises."""
        for process in self._processes:
            if process.calls:
                process.link.kill()
        self.close()
        raise WorkerError(f"Expected {expected}. Received: {received}")

    def _start(self) -> None:
        """Starts all processes, and makes the environments in them."""
        links = self._transport.start(len(self.shares), self._replace_seconds)
        self._processes = [
            _Process(index, link) for index, link in enumerate(links)
        ]
        for process in self._processes:
            self._make(process)

    def _make(self, process: _Process) -> None:
        """Asks a process to make its environments."""
        index = process.index
        seed = derived_seed(self._seed, self.losses, index)
        settings = (index, self.shares[index], self.maker, seed)
        packed = cloudpickle.dumps(settings)
        seconds = self._replace_seconds
        process.ask(Call("make", (packed,), seconds, internal=True))
        if self._plan:
            process.ask(Call("plan", self._plan, None, internal=True))

    def _lose(self, lost: _Process, why: str, hangs: bool = False) -> None:
        """Replaces a lost process, which repeats the open calls."""
        index = lost.index
        self.losses += 1
        lost.link.kill()
        logger.warning("Worker %s is replaced: %s.", index, why)
        expected = f"worker {index} to answer"
        self._losses_in_a_row[index] += 1
        if self._losses_in_a_row[index] > MOST_LOSSES:
            self._give_up(expected, f"{why}, {MOST_LOSSES + 1} times")
        if hangs and any(call.method == "make" for call in lost.calls):
            self._give_up(expected, f"{why}, as it was to replace another")
        try:
            [link] = self._transport.start(1, self._replace_seconds)
        except LinkLostError as error:
            self._give_up(expected, f"{why}; {error}")
        process = _Process(index, link)
        self._processes[index] = process
        self._make(process)
        for call in lost.calls:
            if not call.internal:
                process.ask(call)

    def _receive(self) -> None:
        """Waits for one answer at least, or for a process to be lost."""
        busy = [process for process in self._processes if process.calls]
        first = min(process.deadline for process in busy)
        seconds = None
        if first < math.inf:
            seconds = max(first - time.monotonic(), 0.0)
        ready = self._transport.wait([each.link for each in busy], seconds)
        for process in busy:
            if process.link in ready:
                self._receive_from(process)
            elif not ready and time.monotonic() >= process.deadline:
                call = process.calls[0]
                self._lose(
                    process,
                    f"it did not answer {call.method!r} within "
                    f"{call.seconds:.3g} s",
                    hangs=True,
                )

    def _receive_from(self, process: _Process) -> None:
        """Receives the answer to the first call of a process."""
        try:
            well, answer = process.link.receive()
        except LinkLostError as error:
            because = f" ({error})" if str(error) else ""
            self._lose(process, f"it ended{because}")
            return
        call = process.calls.popleft()
        process.send_first()
        if well:
            call.set_result(answer)
        else:
            call.set_exception(unpacked_error(answer))
        if call.method == "collect":
            self._losses_in_a_row[process.index] = 0
        if call.internal:
            call.result()
