"""What `gymnasium.vector.AsyncVectorEnv` leaves undone when a process fails.

Its `close()` waits for ever for a process that is dead or hangs, its `step()`
for one that hangs or has raised what cannot be pickled, and once an environment
has raised, it cannot be stepped any more. Only public names of it are used.
"""

import inspect
import queue
import threading
import time
import weakref
from multiprocessing.connection import wait
from typing import Any
from typing import TypeAlias

import numpy as np
from gymnasium.vector import AsyncVectorEnv

from keras_rl2.envs.worker_error import WorkerError

# A process that died has that long to be gone.
_SECONDS_TO_END = 1.0
# Environments that are well may write files as they close.
_SECONDS_TO_CLOSE = 10.0
# Of a process that has raised: its environment closes first, then it ends.
_SECONDS_TO_TELL = 10.0
# The same where the time of a step is limited, and over.
_SECONDS_TO_SEND = 0.5
_SECONDS_BETWEEN_LOOKS = 0.02
# A process that was forked beside TensorFlow's threads may never begin.
_SECONDS_TO_MAKE = 20.0

# Quoted: before Gymnasium 1.4 the class takes no types.
Workers: TypeAlias = "AsyncVectorEnv[Any, Any]"


class _ErrorQueue:
    """Gymnasium's `error_queue`, in which it waits for ever for an error.

    None comes where an environment raised what cannot be pickled, or its
    process was killed before it had sent it; and not all can be made again
    here, as an exception whose constructor takes two arguments.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`. Whose queue it takes over.

    Attributes:
        until: float or None. When a step has to be over, by
            `time.monotonic()`.
    """

    def __init__(self, env: Workers) -> None:
        # It must not hold what holds it.
        self._env: Workers = weakref.proxy(env)
        self._queue: Any = env.error_queue
        self.until: float | None = None

    def get(self) -> tuple[int, Any, BaseException, str]:
        """Returns the next error, as Gymnasium takes it.

        Raises:
            WorkerError: If none comes that can be read.
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
        # Itself: not all can be made of one argument.
        return index, lambda itself: itself, raised, trace

    def _next(self, until: float) -> tuple[int, type, BaseException, str]:
        """Waits until there is one, or none can come any more."""
        while True:
            # Before the look: a process that ends has sent what it could.
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
        """Gives the queue back: none that is held loses its descriptors."""
        self._queue = None


def hear_errors(env: Workers) -> None:
    """Has what environments raise waited for no longer than it may come.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.
    """
    if not isinstance(env.error_queue, _ErrorQueue):
        vars(env).update(error_queue=_ErrorQueue(env))


def failed_workers(env: Workers) -> np.ndarray:
    """Says which environments raised something.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.

    Returns:
        `[B]` bool. Gymnasium takes away the pipe of one that did.
    """
    return np.array([pipe is None for pipe in env.parent_pipes], np.bool_)


def dead_workers(env: Workers) -> np.ndarray:
    """Says which processes are dead, once one has broken its pipe.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.

    Returns:
        `[B]` bool.
    """
    # Pipes break a moment before their process is gone.
    ending = wait([process.sentinel for process in env.processes], 0.5)
    for process in env.processes:
        if process.sentinel in ending:
            process.join(_SECONDS_TO_END)
    return np.array([not p.is_alive() for p in env.processes], np.bool_)


def silent_workers(env: Workers) -> np.ndarray:
    """Says which processes have not answered.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`, after a timeout.

    Returns:
        `[B]` bool.
    """
    return np.array(
        [pipe is not None and not pipe.poll(0) for pipe in env.parent_pipes],
        np.bool_,
    )


# What is expected, and how an environment is lost.
_LOSSES = {
    "silent": (
        "an answer within `step_timeout`",
        "which did not answer",
    ),
    "unread": (
        "exceptions that can be pickled",
        "which raised another; its process has printed what it could",
    ),
    "dead": (
        "a process that lives",
        "whose process ended with exit code {}",
    ),
}


def lost(
    env: Workers, name: str, dead: np.ndarray, doing: str, how: str
) -> WorkerError:
    """Says that processes are lost, and how.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`, before its end.
        name: str. What it is called.
        dead: `[B]` bool. Those that are lost.
        doing: str. What they were asked for.
        how: str. `"dead"`; `"silent"`, if they hang; or `"unread"`, if they
            have raised what cannot be sent.

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
    """Ends all processes at once, whatever they are at.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`. Is closed by it.
    """
    # Not asked by SIGTERM: they may ignore it.
    _kill(env)
    for process in env.processes:
        process.join()
    for pipe in env.parent_pipes:
        if pipe is not None:
            pipe.close()
    # As `close()` would say. It could raise by now, or wait.
    env.closed = True
    _release(env)


def _release(env: Workers) -> None:
    """Closes what still has descriptors when all processes have ended."""
    for process in env.processes:
        process.close()
    env.processes, env.parent_pipes = [], []
    env.error_queue.close()


def close_workers(env: Any, workers: Workers) -> None:
    """Closes environments, and ends processes that do not close in time.

    Args:
        env: `workers`, or what is wrapped around them.
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
    # `close` waits for answers with no timeout; ending the processes wakes it.
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
    """Makes the environments again, within the same object.

    So those who hold it, wrappers and users, close the new processes with it.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`, closed.

    Returns:
        bool. False if it does not tell how it was made.
    """
    if type(env) is not AsyncVectorEnv:
        return False
    parameters = [*inspect.signature(AsyncVectorEnv.__init__).parameters][1:]
    given = vars(env)
    if not all(name in given for name in parameters):
        return False
    arguments = {name: given[name] for name in parameters}
    env.closed = False
    # It waits for their first answer with no timeout; ending them wakes it.
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

    What is wrapped around the environments calls `step()`, which calls
    `step_wait()` without a timeout: so that is what is replaced.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.
        seconds: float. How long each may take.
    """
    # It must not hold itself: then it would not end with its last user.
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
    """Ends processes at once, those too that do not even begin."""
    for process in [*env.processes]:
        process.kill()
