"""Calls of workers, and the replacement of lost ones."""

import logging
import pickle
import time
from collections.abc import Sequence
from typing import Any

import cloudpickle
import numpy as np

from keras_rl2.envs.errors import WorkerError
from keras_rl2.workers.calls import Call
from keras_rl2.workers.calls import CallQueues
from keras_rl2.workers.calls import Loss
from keras_rl2.workers.calls import Shared
from keras_rl2.workers.env_maker import EnvMaker
from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport
from keras_rl2.workers.worker import CollectionPlan
from keras_rl2.workers.worker import Share

# Losses of one worker in a row, without an answer between them, after which
# replacing it is given up.
MOST_LOSSES = 5
# Processes that may die as they start or make a worker's environments, before
# another worker makes them. One of them may have been killed by chance.
_MOST_TRIES = 2
# Time limit for the start of a replacing process; at least twice the time that
# the first processes took.
SECONDS_TO_REPLACE = 8.0

logger = logging.getLogger(__name__)


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
        shares: Sequence of `Share`. The environments of each worker.
        min_workers: int. Number of processes below which an error is raised.
        timeout: float or None. Seconds that a call may take.
        start_timeout: float. Seconds that processes may take to start.
        seed: int. Seeds environments that replace others.

    Attributes:
        shares: list of `Share`.
        losses: int. Number of lost processes so far.
        descriptions: list of dict, as returned by `Worker.describe`.
    """

    def __init__(
        self,
        transport: Transport,
        maker: EnvMaker,
        shares: Sequence[Share],
        min_workers: int,
        timeout: float | None,
        start_timeout: float,
        seed: int,
    ) -> None:
        self.shares = list(shares)
        self.losses = 0
        self._seed = seed
        self._transport = transport
        self._maker = maker
        self._min_workers = min_workers
        self._timeout = timeout
        self._replace_seconds = SECONDS_TO_REPLACE
        self._plan: CollectionPlan | None = None
        self._losses_in_a_row = [0] * len(self.shares)
        self._queues = CallQueues(transport)
        # Indices of the workers that each process holds.
        self._held: dict[Link, list[int]] = {}
        # Open calls, without those of the pool itself.
        self._open: dict[Call, None] = {}
        self._broken_off = False
        self._start_seconds = start_timeout
        self.closed = False
        began = time.monotonic()
        try:
            self.descriptions = self._start()
        except BaseException:
            self.close()
            raise
        took = time.monotonic() - began
        self._replace_seconds = max(SECONDS_TO_REPLACE, 2.0 * took)

    @property
    def workers_left(self) -> int:
        """Number of live processes."""
        return len(self._held)

    def share(self, value: object) -> Shared:
        """Shares a value with all workers; see `Transport.share`.

        Args:
            value: Any picklable value, possibly with arrays.

        Returns:
            `Shared`, for arguments of `submit`.
        """
        self._require_open()
        return Shared(self._transport.share(value))

    def forget(self, shared: Shared) -> None:
        """Frees a shared value as soon as all calls that use it are over.

        Args:
            shared: `Shared`.
        """
        shared.forgotten = True
        self._forget_unused(shared)

    def submit(
        self, index: int, method: str, *arguments: Any, repeatable: bool = False
    ) -> Call:
        """Calls a method of a worker, without waiting for it.

        Args:
            index: int. Index of the worker.
            method: str. Name of a method of `Worker`.
            *arguments: Its arguments.
            repeatable: bool. Whether another worker may repeat the call if
                this one is lost. Defaults to `False`.

        Returns:
            `Call`, for `gather`.
        """
        self._require_open()
        call = Call(index, method, arguments, repeatable, self._timeout)
        try:
            self._start_again()
            [link] = [
                each for each, held in self._held.items() if index in held
            ]
            self._begin(call)
            self._queues.send(link, call)
        except BaseException as error:
            self._end(call)
            self.break_off(error)
            raise
        return call

    def plan(self, plan: CollectionPlan) -> None:
        """Sends a plan to all workers, and to those that replace them.

        Args:
            plan: `CollectionPlan`.
        """
        self._plan = plan
        calls = [
            self.submit(share.index, "plan", plan, repeatable=True)
            for share in self.shares
        ]
        self.gather(calls)
        self.release(calls)

    def gather(self, calls: Sequence[Call]) -> list[Any]:
        """Waits for answers.

        Args:
            calls: Sequence of `Call`, as returned by `submit`.

        Returns:
            list of return values. Arrays in it are valid until `release`.

        Raises:
            WorkerError: If too few workers are left, or one was lost during a
                call that cannot be repeated.
            Exception: The error of a worker.
        """
        try:
            self._start_again()
            while not all(call.done for call in calls):
                self._receive()
            for call in calls:
                if call.error is not None:
                    raise call.error
        except BaseException as error:
            self.drop(calls)
            self.break_off(error)
            raise
        return [call.answer for call in calls]

    def release(self, calls: Sequence[Call]) -> None:
        """Frees the arrays of answers.

        Args:
            calls: Sequence of `Call` that are done.
        """
        self._queues.release(calls)

    def drop(self, calls: Sequence[Call]) -> None:
        """Discards the answers to calls.

        Args:
            calls: Sequence of `Call`, under way or done.
        """
        self.release([call for call in calls if call.done])
        for call in calls:
            call.dropped = True

    def break_off(self, error: BaseException) -> None:
        """Ends all processes after an interruption, e.g. by Ctrl-C.

        Their calls may never end, and a message may be half sent.

        Args:
            error: BaseException. An `Exception` is no interruption, and leaves
                all processes as they are.
        """
        if isinstance(error, Exception) or self.closed:
            return
        if not self._broken_off:
            self._broken_off = True
            self.losses += len(self.shares)
        self._queues.end_all()
        self._held.clear()

    def close(self) -> None:
        """Ends all processes."""
        self.closed = True
        self._queues.clear()
        self._held.clear()
        self._open.clear()
        self._transport.close()

    def _require_open(self) -> None:
        """Raises an error if the workers have ended."""
        if self.closed:
            raise ValueError("Expected workers that are open. Received: closed")

    def _give_up(self) -> None:
        """Ends all processes; those with open calls at once."""
        self._queues.end_busy()
        self.close()

    # Starting and replacing.

    def _start(self) -> list[dict[str, Any]]:
        """Starts all processes and makes the environments in them."""
        calls = []
        for link, share in zip(self._processes(), self.shares, strict=True):
            self._held[link].append(share.index)
            call = self._making(share.index, self._start_seconds)
            self._queues.send(link, call)
            calls.append(call)
        described = [pickle.loads(each) for each in self.gather(calls)]
        self.release(calls)
        return described

    def _processes(self) -> list[Link]:
        """Starts a process for each worker."""
        try:
            links = self._transport.start(len(self.shares), self._start_seconds)
        except LinkLostError as error:
            raise WorkerError(
                f"Expected {len(self.shares)} workers. Received: {error}"
            ) from error
        self._queues.add(links)
        self._held.update((link, []) for link in links)
        return links

    def _start_again(self) -> None:
        """Starts all processes again after an interruption."""
        if not self._broken_off:
            return
        for call in [*self._open]:
            if call.dropped:
                self._end(call)
            elif not call.repeatable:
                self._lose_call(call, self._lost([call.index], "a break"))
        for link, share in zip(self._processes(), self.shares, strict=True):
            own = [call for call in self._open if call.index == share.index]
            self._take_over(link, [share.index], own)
        self._broken_off = False

    def _making(self, index: int, seconds: float) -> Call:
        """Returns the call that makes a worker."""
        seed = np.random.SeedSequence((self._seed, self.losses, index))
        made = cloudpickle.dumps(
            (
                self.shares[index],
                self._maker,
                int(seed.generate_state(1)[0] >> 2),
            )
        )
        return Call(index, "make", (made,), False, seconds)

    def _lose(self, link: Link, why: str, hangs: bool = False) -> None:
        """Replaces a lost process, or distributes its workers to others."""
        self.losses += 1
        indices = self._held.pop(link)
        calls = self._queues.end(link)
        logger.warning("Worker %s is replaced: %s.", _named(indices), why)
        again = []
        for call in calls:
            if call.own or call.dropped:
                self._end(call)
            elif call.repeatable or call.method == "make":
                again.append(call)
            else:
                self._lose_call(call, self._lost(indices, why))
        tries = [
            self._losses_in_a_row[call.index]
            for call in calls
            if call.method == "make"
        ]
        if tries and (hangs or max(tries) >= _MOST_TRIES):
            # It had replaced another one.
            why = f"{why}, and so did its replacement"
            self._give_away(indices, again, why)
            return
        for index in indices:
            self._losses_in_a_row[index] += 1
            if self._losses_in_a_row[index] > MOST_LOSSES:
                self._give_up()
                raise self._lost(indices, f"{why}, {MOST_LOSSES + 1} times")
        try:
            another = self._another()
        except LinkLostError as error:
            self._give_away(indices, again, f"{why}; {error}")
            return
        self._queues.add([another])
        self._held[another] = []
        self._take_over(another, indices, again)

    def _another(self) -> Link:
        """Starts a replacing process, twice if it dies."""
        began = time.monotonic()
        for tries in range(1, _MOST_TRIES + 1):
            try:
                [link] = self._transport.start(1, self._replace_seconds)
                return link
            except LinkLostError:
                late = time.monotonic() - began > self._replace_seconds / 2
                if late or tries == _MOST_TRIES:
                    raise
        raise AssertionError

    def _give_away(
        self, indices: list[int], calls: list[Call], why: str
    ) -> None:
        """Distributes the workers of a lost process to the remaining ones."""
        left = self.workers_left
        if left < self._min_workers:
            self._give_up()
            raise WorkerError(
                f"Expected at least {self._min_workers} workers. Received: "
                f"{left} that are left; worker {_named(indices)} was lost: "
                f"{why}"
            )
        for index in indices:
            link = min(self._held, key=lambda each: len(self._held[each]))
            own = [call for call in calls if call.index == index]
            self._take_over(link, [index], own)

    def _take_over(
        self, link: Link, indices: list[int], calls: list[Call]
    ) -> None:
        """Lets a process take over workers and their open calls."""
        self._held[link] += indices
        made = [call.index for call in calls if call.method == "make"]
        for index in indices:
            if index not in made:
                make = self._making(index, self._replace_seconds)
                make.own = True
                self._queues.send(link, make)
            if self._plan is not None:
                plan = Call(index, "plan", (self._plan,), True, None, own=True)
                self._queues.send(link, plan)
        for call in calls:
            self._queues.send(link, call)

    def _lose_call(self, call: Call, error: WorkerError) -> None:
        """Ends a call with the error of a lost worker."""
        self._end(call)
        call.done, call.error = True, error

    def _lost(self, indices: list[int], why: str) -> WorkerError:
        """Returns the error of a lost worker."""
        return WorkerError(
            f"Expected worker {_named(indices)} to answer. Received: {why}"
        )

    # Asking and receiving.

    def _receive(self) -> None:
        """Waits for one answer at least, or for a process to be lost."""
        error = None
        for each in self._queues.receive():
            if isinstance(each, Loss):
                self._lose(*each)
                continue
            self._end(each)
            if each.method == "collect":
                self._losses_in_a_row[each.index] = 0
            if each.dropped or each.own:
                self.release([each])
            if each.own:
                error = error or each.error
        if error is not None:
            raise error

    def _begin(self, call: Call) -> None:
        """Registers an open call."""
        self._open[call] = None
        for shared in call.shared:
            shared.calls += 1

    def _end(self, call: Call) -> None:
        """Removes a call from the open ones."""
        if call not in self._open:
            return
        del self._open[call]
        for shared in call.shared:
            shared.calls -= 1
            self._forget_unused(shared)

    def _forget_unused(self, shared: Shared) -> None:
        """Frees a shared value if its last call is over."""
        if shared.forgotten and not shared.calls:
            self._transport.forget(shared.value)


def _named(indices: Sequence[int]) -> str:
    """Formats indices for messages."""
    return ", ".join(map(str, indices))
