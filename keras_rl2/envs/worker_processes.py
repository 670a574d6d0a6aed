"""Handling of failed processes in `gymnasium.vector.AsyncVectorEnv`.

Its `close()` waits for ever for a process that is dead or hangs, and its
`step()` for a process that hangs or has raised an error that cannot be pickled.
Once an environment has raised, it cannot be stepped any more. Only public names
of the class are used.
"""

import inspect
import multiprocessing
import queue
import threading
import time
import weakref
from multiprocessing.connection import wait
from typing import Any
from typing import TypeAlias

import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import VectorEnv

from keras_rl2.envs.errors import WorkerError

# Time until a process that died is gone.
_SECONDS_TO_END = 1.0
# Healthy environments may write files as they close.
_SECONDS_TO_CLOSE = 10.0
# For a process that has raised: its environment closes first, then it ends.
_SECONDS_TO_TELL = 10.0
# The same after the time limit of a step has passed.
_SECONDS_TO_SEND = 0.5
_SECONDS_BETWEEN_LOOKS = 0.02
# A process that was forked beside TensorFlow's threads may never begin.
_SECONDS_TO_MAKE = 20.0

# Quoted: before Gymnasium 1.4 the class takes no types.
Workers: TypeAlias = "AsyncVectorEnv[Any, Any]"


class _ErrorQueue:
    """Gymnasium's `error_queue`, in which it waits for ever for an error.

    No error arrives if an environment raised one that cannot be pickled, or if
    its process was killed before it had sent it. Some cannot be created again
    here, e.g. exceptions with a constructor of two arguments.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`. Its queue is taken over.

    Attributes:
        until: float or None. End of the time limit of a step, by
            `time.monotonic()`.
    """

    def __init__(self, env: Workers) -> None:
        # A weak reference: the environment holds this queue.
        self._env: Workers = weakref.proxy(env)
        self._queue: Any = env.error_queue
        self.until: float | None = None

    def get(self) -> tuple[int, Any, BaseException, str]:
        """Returns the next error, in the form that Gymnasium expects.

        Raises:
            WorkerError: If no readable error arrives in time.
        """
        now = time.monotonic()
        until = now + _SECONDS_TO_TELL
        if self.until is not None:
            until = max(self.until, now + _SECONDS_TO_SEND)
        try:
            index, _, raised, trace = self._next(until)
        except Exception as error:
            none = isinstance(error, queue.Empty)
            raise WorkerError(
                "Expected an exception that can be pickled, of an environment "
                "in a process of its own. Received: "
                f"{'none' if none else repr(error)}"
            ) from error
        # The error itself: some cannot be created from one argument.
        return index, lambda itself: itself, raised, trace

    def _next(self, until: float) -> tuple[int, type, BaseException, str]:
        """Waits until an error arrives, or none can arrive any more."""
        while True:
            # Determined before the queue is read: a process has sent its error
            # by the time it ends.
            over = time.monotonic() >= until or any(
                pipe is not None and not process.is_alive()
                for pipe, process in zip(
                    self._env.parent_pipes, self._env.processes, strict=True
                )
            )
            try:
                found: tuple[int, type, BaseException, str] = self._queue.get(
                    timeout=0.0 if over else _SECONDS_BETWEEN_LOOKS
                )
            except queue.Empty:
                if over:
                    raise
            else:
                return found

    def close(self) -> None:
        """Releases the queue: as long as it is held, its descriptors stay."""
        self._queue = None


def hear_errors(env: Workers) -> None:
    """Limits how long Gymnasium waits for the errors of environments.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.
    """
    if not isinstance(env.error_queue, _ErrorQueue):
        vars(env).update(error_queue=_ErrorQueue(env))


def failed_workers(env: Workers) -> np.ndarray:
    """Returns the environments that raised an error.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.

    Returns:
        `[B]` bool. Gymnasium removes the pipe of an environment that raised.
    """
    return np.array([pipe is None for pipe in env.parent_pipes], np.bool_)


def how_lost(env: Workers, error: BaseException) -> str | None:
    """Returns how a process was lost, by the error of a step or reset.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.
        error: The error that its method raised.

    Returns:
        `"dead"`; `"silent"`, if the process hangs; `"unread"`, if it raised an
        error that cannot be sent; or None if no process was lost.
    """
    if isinstance(error, WorkerError):
        return "unread"
    if failed_workers(env).any():
        return None
    if isinstance(error, multiprocessing.TimeoutError):
        return "silent"
    return "dead" if isinstance(error, EOFError | OSError) else None


def lost_workers(env: Workers, how: str) -> np.ndarray:
    """Returns the processes that are lost.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`, after a timeout or once a pipe
            has broken.
        how: str, as returned by `how_lost`.

    Returns:
        `[B]` bool. Silent processes, or dead ones.
    """
    if how == "silent":
        silent = [
            pipe is not None and not pipe.poll(0) for pipe in env.parent_pipes
        ]
        return np.array(silent, np.bool_)
    # Pipes break a moment before their process is gone.
    ending = wait([process.sentinel for process in env.processes], 0.5)
    for process in env.processes:
        if process.sentinel in ending:
            process.join(_SECONDS_TO_END)
    return np.array([not p.is_alive() for p in env.processes], np.bool_)


# The expectation, and how an environment was lost.
_LOSSES = {
    "silent": (
        "an answer within `step_timeout`",
        "which did not answer",
    ),
    "unread": (
        "exceptions that can be pickled",
        "which raised another; its process has printed it, if possible",
    ),
    "dead": (
        "a process that lives",
        "whose process ended with exit code {}",
    ),
}


def lost(
    env: Workers, name: str, dead: np.ndarray, doing: str, how: str
) -> WorkerError:
    """Returns an error that names the lost processes, and how they were lost.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`, before its end.
        name: str. Name of the environment in messages.
        dead: `[B]` bool. The lost processes.
        doing: str. The request that they did not answer.
        how: str, as returned by `how_lost`.

    Returns:
        `WorkerError`.
    """
    expected, received = _LOSSES[how]
    found = [
        f"environment {index}, "
        + received.format(env.processes[index].exitcode)
        for index in np.flatnonzero(dead).tolist()
    ]
    return WorkerError(
        f"Expected {expected} of every environment of {name} in {doing}. "
        f"Received: {'; '.join(found) or 'one that is not known'}"
    )


def end_workers(env: Workers) -> None:
    """Kills all processes at once, and closes the environment.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.
    """
    # Without SIGTERM, which they may ignore.
    _kill(env)
    for process in env.processes:
        process.join()
    for pipe in env.parent_pipes:
        if pipe is not None:
            pipe.close()
    # Set as by `close()`, which by now could raise or wait.
    env.closed = True
    _release(env)


def _release(env: Workers) -> None:
    """Frees the descriptors of processes that have all ended."""
    for process in env.processes:
        process.close()
    env.processes, env.parent_pipes = [], []
    env.error_queue.close()


def close_workers(env: VectorEnv[Any, Any, Any], workers: Workers) -> None:
    """Closes environments, and ends processes that do not close in time.

    Args:
        env: `workers`, or a wrapper around them.
        workers: `gymnasium.vector.AsyncVectorEnv`.
    """
    raised: list[BaseException] = []

    def close() -> None:
        try:
            env.close()
        except BaseException as error:
            raised.append(error)

    if not workers.closed and any(
        not process.is_alive() for process in workers.processes
    ):
        end_workers(workers)
    # `close` waits without a timeout; ending the processes wakes it.
    thread = threading.Thread(target=close, daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_CLOSE)
    if thread.is_alive() or (raised and not workers.closed):
        end_workers(workers)
        thread.join(_SECONDS_TO_END)
        return
    if raised:
        raise raised[0]
    _release(workers)


def remake_workers(env: Workers) -> bool:
    """Creates the environments again, within the same object.

    Wrappers and users that hold the object close the new processes with it.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`, closed.

    Returns:
        bool. False if its constructor arguments cannot be read from it.
    """
    if type(env) is not AsyncVectorEnv:
        return False
    parameters = [*inspect.signature(AsyncVectorEnv.__init__).parameters][1:]
    given = vars(env)
    if not all(name in given for name in parameters):
        return False
    arguments = {name: given[name] for name in parameters}
    env.closed = False
    # The constructor waits for the first answer without a timeout; ending the
    # processes wakes it.
    timer = threading.Timer(_SECONDS_TO_MAKE, _kill, (env,))
    timer.start()
    try:
        AsyncVectorEnv.__init__(env, **arguments)
    finally:
        timer.cancel()
        hear_errors(env)
    return True


def limit_steps(env: Workers, seconds: float) -> None:
    """Makes steps and resets raise `multiprocessing.TimeoutError`.

    Wrappers of the environments call `step()`, which calls `step_wait()`
    without a timeout: therefore `step_wait()` is replaced.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.
        seconds: float. Time limit of each.
    """
    # A weak reference: otherwise the environment would outlive its last user.
    own: Any = weakref.proxy(env)
    kind = type(env)

    def limited(timeout: float | None) -> float:
        timeout = seconds if timeout is None else timeout
        own.error_queue.until = time.monotonic() + timeout
        return timeout

    def step_wait(timeout: float | None = None) -> Any:
        return kind.step_wait(own, limited(timeout))

    def reset_wait(timeout: float | None = None) -> Any:
        return kind.reset_wait(own, limited(timeout))

    vars(env).update(step_wait=step_wait, reset_wait=reset_wait)


def _kill(env: Workers) -> None:
    """Kills processes at once, including those that have not begun."""
    for process in [*env.processes]:
        process.kill()
