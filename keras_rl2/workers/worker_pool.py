"""Calls of workers, and the replacement of lost ones."""

import dataclasses
import logging
import math
import pickle
import time
from collections import deque
from collections.abc import Sequence
from typing import Any
from typing import NoReturn

import cloudpickle

from keras_rl2.envs.errors import WorkerError
from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport
from keras_rl2.workers.worker import EnvMaker
from keras_rl2.workers.worker import derived_seed
from keras_rl2.workers.worker_host import unpacked_error

# Losses of one worker in a row, without a rollout between them, after which
# replacing it is given up.
MOST_LOSSES = 5
# Processes that may die as they make a worker's environments, before another
# worker makes them. One of them may have been killed by chance.
_MOST_TRIES = 2
# Time limit for the start of a replacing process; at least twice the time that
# the first processes took.
SECONDS_TO_REPLACE = 8.0

logger = logging.getLogger(__name__)


# Compared by identity: arrays in it cannot be compared.
@dataclasses.dataclass(eq=False)
class Call:
    """A call of a worker's method, under way or answered.

    Attributes:
        index: int. Index of the worker.
        method: str. Name of the method.
        arguments: tuple. Its arguments.
        seconds: float or None. Time limit.
        own: bool. Whether no caller waits for it.
        answer: Return value of the method.
        error: Exception or None. Error of the method.
        done: bool. Whether it has been answered.
    """

    index: int
    method: str
    arguments: tuple[Any, ...]
    seconds: float | None
    own: bool = False
    answer: Any = None
    error: Exception | None = None
    done: bool = False

    def end(self, answer: Any = None, error: Exception | None = None) -> None:
        """Sets the answer, or an error in place of it."""
        self.answer, self.error, self.done = answer, error, True


@dataclasses.dataclass(eq=False)
class _Process:
    """A process, the workers that it holds, and calls without an answer.

    The first call has been sent at the time `since`.
    """

    link: Link
    indices: list[int] = dataclasses.field(default_factory=list)
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
                self.link.send(call.index, call.method, call.arguments)
            except LinkLostError as error:
                logger.debug("A worker is gone: %s", error)
            except Exception as error:
                # E.g. arguments that cannot be pickled.
                self.calls.popleft().end(error=error)
                continue
            return


class WorkerPool:
    """Calls workers in processes, and replaces processes that are lost.

    A process that has died, or has not answered in time, is replaced by
    another one, in which the same environments are made again and the calls are
    repeated. If that fails, the remaining processes take over its environments.
    Ctrl-C ends all processes, since their calls may never end; they are started
    again at the next call.

    Args:
        transport: `Transport`. Runs the processes.
        maker: `EnvMaker`. Makes environments.
        shares: Sequence of slices. Indices of each worker's environments.
        min_workers: int. Number of processes below which an error is raised.
        timeout: float or None. Seconds that a call may take.
        start_timeout: float. Seconds that processes may take to start.
        seed: int. Seeds environments that replace others.

    Attributes:
        shares: list of slices.
        losses: int. Number of lost processes so far.
        closed: bool. Whether all processes have ended for good.
        descriptions: list of dict, as returned by `Worker.describe`.
    """

    def __init__(
        self,
        transport: Transport,
        maker: EnvMaker,
        shares: Sequence[slice],
        min_workers: int,
        timeout: float | None,
        start_timeout: float,
        seed: int,
    ) -> None:
        self.shares = list(shares)
        self.losses = 0
        self.closed = False
        self._seed = seed
        self._transport = transport
        self._maker = maker
        self._min_workers = min_workers
        self._timeout = timeout
        self._replace_seconds = start_timeout
        self._plan: tuple[Any, ...] = ()
        self._losses_in_a_row = [0] * len(self.shares)
        self._processes: list[_Process] = []
        began = time.monotonic()
        try:
            self._start()
            described = self.call_all("describe")
            self.descriptions = [pickle.loads(each) for each in described]
        except BaseException:
            self.close()
            raise
        took = time.monotonic() - began
        self._replace_seconds = max(SECONDS_TO_REPLACE, 2.0 * took)

    @property
    def workers_left(self) -> int:
        """Number of live processes."""
        return len(self._processes)

    def share(self, value: object) -> Any:
        """Returns a stand-in for a value; see `Transport.share`."""
        self._require_open()
        return self._transport.share(value)

    def submit(
        self, method: str, arguments: Sequence[tuple[Any, ...]]
    ) -> list[Call]:
        """Calls a method of all workers, without waiting for it.

        The worker that replaces a lost one repeats its call.

        Args:
            method: str. Name of a method of `Worker`.
            arguments: Sequence of tuples. The arguments of each worker.

        Returns:
            list of `Call`, for `gather`.
        """
        self._require_open()
        try:
            if not self._processes:
                # They were interrupted.
                self._start()
            calls = []
            for index, given in enumerate(arguments):
                call = Call(index, method, given, self._timeout)
                [process] = [p for p in self._processes if index in p.indices]
                process.ask(call)
                calls.append(call)
        except BaseException as error:
            self.break_off(error)
            raise
        return calls

    def call_all(self, method: str, *arguments: Any) -> list[Any]:
        """Calls a method of all workers with the same arguments.

        Args:
            method: str. Name of a method of `Worker`.
            *arguments: Its arguments.

        Returns:
            list of return values; see `gather`.
        """
        return self.gather(self.submit(method, [arguments] * len(self.shares)))

    def plan(self, *plan: Any) -> None:
        """Calls `Worker.plan` of all, and of those that will replace them."""
        self._plan = plan
        self.call_all("plan", *plan)

    def gather(self, calls: Sequence[Call]) -> list[Any]:
        """Waits for answers.

        Args:
            calls: Sequence of `Call`, as returned by `submit`.

        Returns:
            list of return values.

        Raises:
            WorkerError: If too few workers are left.
            Exception: The error of a worker.
        """
        try:
            while not all(call.done for call in calls):
                self._receive()
        except BaseException as error:
            self.break_off(error)
            raise
        for call in calls:
            if call.error is not None:
                raise call.error
        return [call.answer for call in calls]

    def break_off(self, error: BaseException) -> None:
        """Ends all processes after an interruption, e.g. by Ctrl-C.

        Their calls may never end, and a message may be half sent.

        Args:
            error: BaseException. An `Exception` is no interruption, and leaves
                all processes as they are.
        """
        if isinstance(error, Exception):
            return
        for process in self._processes:
            self.losses += 1
            process.link.kill()
            for call in process.calls:
                broken = WorkerError("Expected an answer. Received: a break")
                call.end(error=broken)
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

    # Starting and replacing.

    def _start(self) -> None:
        """Starts all processes, and makes the environments in them."""
        try:
            links = self._transport.start(
                len(self.shares), self._replace_seconds
            )
        except LinkLostError as error:
            raise WorkerError(
                f"Expected {len(self.shares)} workers. Received: {error}"
            ) from error
        self._processes = [_Process(link) for link in links]
        for index, process in enumerate(self._processes):
            self._take_over(process, [index], [])

    def _lose(self, process: _Process, why: str, hangs: bool = False) -> None:
        """Replaces a lost process, or distributes its workers to others."""
        self.losses += 1
        self._processes.remove(process)
        process.link.kill()
        indices = process.indices
        named = ", ".join(map(str, indices))
        logger.warning("Worker %s is replaced: %s.", named, why)
        again = [call for call in process.calls if not call.own]
        tries = [
            self._losses_in_a_row[call.index]
            for call in process.calls
            if call.method == "make"
        ]
        if tries and (hangs or max(tries) >= _MOST_TRIES):
            # It had replaced another one.
            why = f"{why}, and so did its replacement"
        else:
            for index in indices:
                self._losses_in_a_row[index] += 1
                if self._losses_in_a_row[index] > MOST_LOSSES:
                    why = f"{why}, {MOST_LOSSES + 1} times"
                    self._give_up(f"worker {named} to answer", why)
            try:
                [link] = self._transport.start(1, self._replace_seconds)
            except LinkLostError as error:
                why = f"{why}; {error}"
            else:
                self._processes.append(_Process(link))
                self._take_over(self._processes[-1], indices, again)
                return
        # The remaining ones share its workers.
        if self.workers_left < self._min_workers:
            self._give_up(
                f"at least {self._min_workers} workers",
                f"{self.workers_left} that are left; worker {named} was lost: "
                f"{why}",
            )
        for index in indices:
            least = min(self._processes, key=lambda each: len(each.indices))
            own = [call for call in again if call.index == index]
            self._take_over(least, [index], own)

    def _take_over(
        self, process: _Process, indices: list[int], calls: list[Call]
    ) -> None:
        """Lets a process take over workers and their open calls."""
        process.indices += indices
        for index in indices:
            seed = derived_seed(self._seed, self.losses, index)
            made = cloudpickle.dumps((self.shares[index], self._maker, seed))
            seconds = self._replace_seconds
            process.ask(Call(index, "make", (made,), seconds, own=True))
            if self._plan:
                process.ask(Call(index, "plan", self._plan, None, own=True))
        for call in calls:
            process.ask(call)

    # Receiving.

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
            call.end(answer)
        else:
            call.end(error=unpacked_error(answer))
        if call.method == "collect":
            self._losses_in_a_row[call.index] = 0
        if call.own and call.error is not None:
            raise call.error
