"""The processes of `gymnasium.vector.AsyncVectorEnv`."""

import signal
import threading
from typing import Any
from typing import TypeAlias

import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import VectorEnv

from keras_rl2.envs.errors import WorkerError

# Healthy environments may write files as they close.
_SECONDS_TO_CLOSE = 10.0
# Within which an error arrives after it has been announced.
_SECONDS_TO_TELL = 5.0
# Pipes break a moment before their process is gone.
_SECONDS_TO_END = 1.0

# Handlers of this process that are out of use while signals are ignored.
_handlers: dict[int, Any] = {}

# Quoted: before Gymnasium 1.4 the class takes no types.
Workers: TypeAlias = "AsyncVectorEnv[Any, Any]"


class _ErrorQueue:
    """Gymnasium's `error_queue`, in which it waits for ever for an error.

    No error arrives if an environment raised one that cannot be pickled.
    """

    def __init__(self, errors: Any) -> None:
        self._errors = errors

    def get(self) -> tuple[int, Any, BaseException, str]:
        """Returns the next error, in the form that Gymnasium expects."""
        try:
            index, _, raised, trace = self._errors.get(timeout=_SECONDS_TO_TELL)
        except Exception as error:
            raise WorkerError(
                "Expected an exception that can be pickled from an environment "
                "in a process. Received: another, which its process has "
                f"printed, if possible ({error!r})"
            ) from error
        # The error itself: some cannot be created from one argument.
        return index, lambda itself: itself, raised, trace


def limit_waiting(env: Workers) -> None:
    """Limits how long Gymnasium waits for the errors of environments."""
    if not isinstance(env.error_queue, _ErrorQueue):
        vars(env).update(error_queue=_ErrorQueue(env.error_queue))


def failed_workers(env: Workers) -> np.ndarray:
    """Returns the environments that raised an error or lost their process."""
    # Gymnasium removes the pipe of an environment that raised.
    raised = np.array([pipe is None for pipe in env.parent_pipes], np.bool_)
    return raised if raised.any() else ~_alive(env)


def describe_lost(env: Workers, error: BaseException) -> str:
    """Describes the processes that a broken pipe tells of; `""` if none."""
    if not isinstance(error, EOFError | OSError):
        return ""
    for process in env.processes:
        process.join(_SECONDS_TO_END / env.num_envs)
    return "; ".join(
        f"environment {index}, whose process ended with exit code "
        f"{env.processes[index].exitcode}"
        for index in np.flatnonzero(~_alive(env)).tolist()
    )


def _alive(env: Workers) -> np.ndarray:
    """Returns which processes run, `[B]`."""
    return np.array([each.is_alive() for each in env.processes], np.bool_)


def end_workers(env: Workers) -> None:
    """Kills all processes at once, and frees their descriptors."""
    # Without SIGTERM, which they may ignore.
    _kill(env)
    for process in env.processes:
        process.join()
        process.close()
    for pipe in env.parent_pipes:
        if pipe is not None:
            pipe.close()
    # Set as by `close()`, which by now could raise or wait.
    env.closed = True
    env.processes, env.parent_pipes = [], []
    vars(env).update(error_queue=None)


def close_workers(env: VectorEnv[Any, Any, Any], workers: Workers) -> None:
    """Closes environments, and ends processes that do not close in time."""
    # `close` waits without a timeout; ending the processes wakes it.
    timer = threading.Timer(_SECONDS_TO_CLOSE, _kill, (workers,))
    timer.start()
    try:
        env.close()
    except Exception:
        if workers.closed:
            raise
    finally:
        timer.cancel()
        end_workers(workers)


def _kill(env: Workers) -> None:
    """Kills processes at once, including those that have not begun."""
    for process in [*env.processes]:
        process.kill()


def ignore_signals(env: Workers, ignore: bool) -> None:
    """Lets all processes ignore SIGINT and SIGTERM, or handle them again.

    Processes with a `worker` of a user continue to handle them.
    """
    if env.worker is None:
        # A method of each environment that only reads.
        env.call("has_wrapper_attr", _Signals(ignore))


class _Signals:
    """The name of no attribute, which sets signal handlers when unpickled."""

    def __init__(self, ignore: bool) -> None:
        self._ignore = ignore

    def __reduce__(self) -> Any:
        return _set_handlers, (self._ignore,)


def _set_handlers(ignore: bool) -> str:
    """Ignores SIGINT and SIGTERM in this process, or handles them again."""
    if ignore:
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, signal.SIG_IGN)
            _handlers.setdefault(number, before)
    while _handlers and not ignore:
        signal.signal(*_handlers.popitem())
    return ""
