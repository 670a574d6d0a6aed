"""The processes of `gymnasium.vector.AsyncVectorEnv`.

Its `close()` waits for ever for a process that is dead or hangs, and its
`step()` for a process that hangs or has raised an error that cannot be pickled.
Once an environment has raised, it cannot be stepped any more.

Gymnasium calls methods and sets attributes of the environments there, and
pickles both by name. To call other functions, `gymnasium.Env` gets one more
attribute, in these processes only: setting it calls a function with the
environment, and getting it returns the result.
"""

import inspect
import multiprocessing
import queue
import signal
import threading
import time
import weakref
from collections.abc import Callable
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import Any
from typing import TypeAlias

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import create_empty_array

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

_NAME = "keras_rl2_call"
# Handlers of this process that are out of use while signals are ignored.
_handlers: dict[int, Any] = {}

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
                index, _, raised, trace = self._queue.get(
                    timeout=0.0 if over else _SECONDS_BETWEEN_LOOKS
                )
            except Exception as error:
                none = isinstance(error, queue.Empty)
                if none and not over:
                    continue
                raise WorkerError(
                    "Expected an exception that can be pickled, of an "
                    "environment in a process of its own. Received: "
                    f"{'none' if none else repr(error)}"
                ) from error
            # The error itself: some cannot be created from one argument.
            return index, lambda itself: itself, raised, trace

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


def find_loss(
    env: Workers, name: str, doing: str, error: BaseException
) -> tuple[WorkerError, np.ndarray] | None:
    """Returns which processes were lost, by the error of a step or reset.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`, before its end.
        name: str. Name of the environment in messages.
        doing: str. The request that was not answered.
        error: The error that its method raised.

    Returns:
        A `WorkerError` that names them, and `[B]` bool, the lost ones; or None
        if no process was lost.
    """
    if isinstance(error, WorkerError):
        expected = "exceptions that can be pickled"
        received = (
            "which raised another; its process has printed it, if possible"
        )
        lost = _dead(env)
    elif failed_workers(env).any():
        return None
    elif isinstance(error, multiprocessing.TimeoutError):
        expected = "an answer within `step_timeout`"
        received = "which did not answer"
        lost = np.array(
            [pipe is not None and not pipe.poll(0) for pipe in env.parent_pipes]
        )
    elif isinstance(error, EOFError | OSError):
        expected = "a process that lives"
        received = "whose process ended with exit code {}"
        lost = _dead(env)
    else:
        return None
    found = [
        f"environment {index}, "
        + received.format(env.processes[index].exitcode)
        for index in np.flatnonzero(lost).tolist()
    ]
    raised = WorkerError(
        f"Expected {expected} of every environment of {name} in {doing}. "
        f"Received: {'; '.join(found) or 'one that is not known'}"
    )
    return raised, lost


def _dead(env: Workers) -> np.ndarray:
    """Returns which processes are dead, `[B]`, once a pipe has broken."""
    # Pipes break a moment before their process is gone.
    ending = wait([process.sentinel for process in env.processes], 0.5)
    for process in env.processes:
        if process.sentinel in ending:
            process.join(_SECONDS_TO_END)
    return np.array([not p.is_alive() for p in env.processes], np.bool_)


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
    if not workers.closed and any(
        not process.is_alive() for process in workers.processes
    ):
        end_workers(workers)
    # `close` waits without a timeout; ending the processes wakes it.
    timer = threading.Timer(_SECONDS_TO_CLOSE, _kill, (workers,))
    timer.start()
    try:
        env.close()
    except Exception:
        if workers.closed:
            raise
        end_workers(workers)
    else:
        _release(workers)
    finally:
        timer.cancel()


def remake_workers(env: Workers) -> None:
    """Creates the environments again, within the same object.

    Wrappers and users that hold the object close the new processes with it.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`, closed.

    Raises:
        RuntimeError: If it is of another class, whose constructor is unknown.
    """
    if type(env) is not AsyncVectorEnv:
        raise RuntimeError(
            "Expected a gymnasium.vector.AsyncVectorEnv, which can be made "
            f"again. Received: {type(env).__name__}, whose processes ended"
        )
    parameters = [*inspect.signature(AsyncVectorEnv.__init__).parameters][1:]
    arguments = {name: vars(env)[name] for name in parameters}
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


def can_be_asked(env: object) -> bool:
    """Returns whether an environment runs in processes of Gymnasium's own.

    Args:
        env: Any.
    """
    return isinstance(env, AsyncVectorEnv) and env.worker is None


def ask(
    env: Workers,
    function: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]] | None = None,
) -> list[Any]:
    """Calls a function in each process, with its environment.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv` without a pending call.
        function: Callable of a module, from an environment and more.
        arguments: Sequence of tuples, the further arguments in each process.
            Defaults to `None`: no further ones.

    Returns:
        list of the return values, which must be picklable.

    Raises:
        RuntimeError: If the function raised an error.
        ValueError: If the processes have a custom `worker`.
    """
    if not can_be_asked(env):
        raise ValueError(
            "Expected environments in processes with Gymnasium's own `worker`. "
            f"Received: worker={env.worker}"
        )
    if arguments is None:
        arguments = [()] * env.num_envs
    calls = [(cloudpickle.dumps(function), *each) for each in arguments]
    try:
        env.call("has_wrapper_attr", _Name())
        env.set_attr(_NAME, calls)
        answers = env.get_attr(_NAME)
    except KeyboardInterrupt as error:
        # Gymnasium raises the error here that has ended a process.
        if not failed_workers(env).any():
            raise
        raise RuntimeError("Ctrl-C has ended processes") from error
    for index, (went_well, answer) in enumerate(answers):
        if not went_well:
            raise RuntimeError(f"{answer}, in environment {index}")
    return [answer for _, answer in answers]


def end_episodes(
    env: Workers, ended: np.ndarray, observations: Sequence[Any]
) -> None:
    """Lets environments begin new episodes with the next step, or continue.

    A process resets an environment if the step before has ended an episode,
    which cannot be set from outside. Therefore each process takes one step that
    changes nothing.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv`.
        ended: `[B]` bool. Whether the last step of each ended an episode.
        observations: Sequence of the last observation of each.
    """
    if env.autoreset_mode is not AutoresetMode.NEXT_STEP:
        return
    ask(env, _pretend, [*zip(ended.tolist(), observations, strict=True)])
    env.step(create_empty_array(env.single_action_space, env.num_envs))


def ignore_signals(env: object, ignore: bool) -> None:
    """Ignores SIGINT and SIGTERM in this process, or handles them again.

    Args:
        env: Not used.
        ignore: bool.
    """
    del env
    if ignore:
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, signal.SIG_IGN)
            _handlers.setdefault(number, before)
        return
    while _handlers:
        signal.signal(*_handlers.popitem())


class _Name(str):
    """The attribute's name, which defines the attribute when unpickled."""

    __slots__ = ()

    def __new__(cls) -> "_Name":
        return super().__new__(cls, _NAME)

    def __reduce__(self) -> Any:
        return _add_name, ()


class _Called:
    """An attribute that calls the function it is set to."""

    answer: Any = (True, None)

    def __get__(self, env: object, kind: type) -> Any:
        return self.answer

    def __set__(self, env: object, call: tuple[Any, ...]) -> None:
        # An error would end the process.
        try:
            function = cloudpickle.loads(call[0])
            self.answer = True, function(env, *call[1:])
        except Exception as error:
            self.answer = False, repr(error)


def _add_name() -> str:
    """Defines the attribute for environments of this process."""
    if not hasattr(gymnasium.Env, _NAME):
        setattr(gymnasium.Env, _NAME, _Called())
    return _NAME


def _pretend(
    env: gymnasium.Env[Any, Any], ended: bool, observation: object
) -> None:
    """Replaces the next step of an environment by one without effect."""

    def step(action: object) -> Any:
        del env.step
        return observation, 0.0, ended, False, {}

    vars(env)["step"] = step
