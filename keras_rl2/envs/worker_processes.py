"""The processes of `gymnasium.vector.AsyncVectorEnv`.

Gymnasium calls methods and sets attributes of the environments there, and
pickles both by name. To call other functions, `gymnasium.Env` gets one more
attribute, in these processes only: setting it calls a function with the
environment, and getting it returns the result.
"""

import signal
import threading
from collections.abc import Callable
from collections.abc import Sequence
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

# Healthy environments may write files as they close.
_SECONDS_TO_CLOSE = 10.0
# Within which an error arrives after it has been announced.
_SECONDS_TO_TELL = 5.0
# Pipes break a moment before their process is gone.
_SECONDS_TO_END = 1.0

_NAME = "keras_rl2_call"
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


def can_be_asked(env: object) -> bool:
    """Returns whether an environment runs in processes of Gymnasium's own."""
    return isinstance(env, AsyncVectorEnv) and env.worker is None


def ask(
    env: Workers,
    function: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]] | None = None,
) -> list[Any]:
    """Calls a function in each process, with its environment."""
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
    """
    if env.autoreset_mode is not AutoresetMode.NEXT_STEP:
        return
    ask(env, _pretend, [*zip(ended.tolist(), observations, strict=True)])
    env.step(create_empty_array(env.single_action_space, env.num_envs))


def ignore_signals(env: object, ignore: bool) -> None:
    """Ignores SIGINT and SIGTERM in this process, or handles them again."""
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
