"""What the adapters of Gymnasium's vector environments share."""

import contextlib
import multiprocessing
from collections.abc import Callable
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector import VectorEnv

from keras_rl2.envs import env_processes
from keras_rl2.envs import worker_processes
from keras_rl2.envs.env_seeds import seed_layers
from keras_rl2.envs.environment_checks import find_mismatch
from keras_rl2.envs.mismatch_error import MismatchError
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.envs.worker_error import WorkerError
from keras_rl2.spaces import supported as spaces

# What it raises where an environment gives something else than it declares.
_GYMNASIUMS_OWN = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
)


class GymnasiumVectorEnv(VectorEnvAdapter):
    """A `gymnasium.vector.VectorEnv` of any autoreset mode.

    The subclasses know the modes: `NextStepEnv`, `SameStepEnv` and
    `ManualResetEnv`.

    The processes of an `AsyncVectorEnv` are all ended as soon as one of them
    has failed, since Gymnasium cannot step the others without it, nor close
    them. The next reset makes them anew.

    Args:
        env: `gymnasium.vector.VectorEnv`.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        # EnvPool's `observation_space` is the single one, so only these names
        # mean the same everywhere.
        super().__init__(
            env,
            env.num_envs,
            env.single_observation_space,
            env.single_action_space,
        )
        if self._workers is not None:
            worker_processes.hear_errors(self._workers)
        self._seconds: float | None = None
        self._is_shielded = False
        # Whether a failure has ended them, and nobody has closed them.
        self._ended = False

    def limit_steps(self, seconds: float) -> None:
        """Sets how long a step, or a reset, may take."""
        workers = self._workers
        if workers is None:
            super().limit_steps(seconds)
            return
        if not seconds > 0:
            raise ValueError(
                "Expected `step_timeout` to be above 0, or None. "
                f"Received: step_timeout={seconds}"
            )
        self._seconds = float(seconds)
        worker_processes.limit_steps(workers, self._seconds)

    @contextlib.contextmanager
    def shielded(self) -> Iterator[None]:
        """Has processes ignore SIGINT and SIGTERM meanwhile."""
        self._is_shielded = True
        self._shield()
        try:
            yield
        finally:
            self._is_shielded = False
            self._shield()

    def _shield(self) -> None:
        """Has processes ignore signals, or heed them again."""
        workers = self._workers
        if workers is None or workers.closed:
            return
        if not env_processes.can_be_asked(workers):
            return
        try:
            shield = (self._is_shielded,)
            env_processes.ask(
                workers, env_processes.ignore_signals, [shield] * self.num_envs
            )
        except Exception:
            # Python would wait for them for ever as it ends.
            self._end(workers)

    def close(self) -> None:
        """Closes the environments, and ends processes that would not close."""
        workers = self._workers
        self._ended = False
        if workers is None:
            self.env.close()
        else:
            worker_processes.close_workers(self.env, workers)

    @property
    def _workers(self) -> "worker_processes.Workers | None":
        """The environments in processes, if they are."""
        inner = self.env.unwrapped
        return inner if isinstance(inner, AsyncVectorEnv) else None

    def _reset(self, seed: int | None) -> Any:
        """Resets all environments."""
        if self._ended:
            self._make_again()
            self.watch()
        try:
            if seed is not None:
                seed_layers(self.env, seed)
            given = self.env.reset(seed=seed)
        except _GYMNASIUMS_OWN as error:
            if self.resets == 0:
                mismatch = self._mismatch(error, "reset")
                if mismatch is not None:
                    raise mismatch from error
            if self._is_its_own(error):
                raise
            if not isinstance(error, KeyError):
                error.add_note(self._expected("reset"))
                raise
            raise MismatchError(
                f"Expected observations of "
                f"{spaces.describe(self.observation_space)} from each "
                f"environment of {self.name}. Received: one without the key "
                f"{error}"
            ) from error
        self._checks.check_reset(given)
        observation, _ = given
        self._checks.check_observation(observation)
        if self.resets == 0:
            self._checks.check_range(observation)
        return self._to_observation(observation)

    def _make_again(self) -> bool:
        """Makes the environments again if that is known, or says no."""
        workers = self._workers
        if workers is None:
            return super()._make_again()
        worker_processes.end_workers(workers)
        try:
            made = worker_processes.remake_workers(workers)
        except BaseException as error:
            lost = None
            # Those of the one that is made in this process come before.
            if isinstance(error, EOFError | OSError) and workers.processes:
                self.failed = worker_processes.dead_workers(workers)
                lost = worker_processes.lost(
                    workers, self.name, self.failed, "being made", "dead"
                )
            worker_processes.end_workers(workers)
            if lost is None:
                raise
            raise lost from error
        if not made:
            raise RuntimeError(
                f"Expected a gymnasium.vector.AsyncVectorEnv, which tells how "
                "its environments are made, so that they can be made again. "
                f"Received: {type(workers).__name__}, whose processes ended"
            )
        self._ended = False
        self.made = None
        if self._seconds is not None:
            worker_processes.limit_steps(workers, self._seconds)
        if self._is_shielded:
            self._shield()
        return True

    def _fail(self, error: BaseException, doing: str) -> None:
        """Notes where an error came from; names processes that are lost."""
        if self.steps == 1 and isinstance(error, _GYMNASIUMS_OWN):
            mismatch = self._mismatch(error, "step")
            if mismatch is not None:
                super()._fail(mismatch, doing)
                raise mismatch from error
            if not self._is_its_own(error):
                error.add_note(self._expected("step"))
        workers = self._workers
        if workers is None or workers.closed:
            # One that is made again in vain has been named.
            if not isinstance(error, WorkerError):
                super()._fail(error, doing)
            return
        how = self._loss(error, workers)
        if how is None:
            super()._fail(error, doing)
            self._end(workers)
            return
        find: Callable[[worker_processes.Workers], np.ndarray] = (
            worker_processes.silent_workers
            if how == "silent"
            else worker_processes.dead_workers
        )
        dead = find(workers)
        self.failed = dead if dead.any() else np.ones_like(dead)
        # By no name: an error that its own frame holds is left to the garbage
        # collector, and with it what multiprocessing had begun to send, which
        # some Pythons (3.12.1) cannot collect without a crash.
        try:
            raise worker_processes.lost(
                workers, self.name, dead, doing, how
            ) from error
        finally:
            self._end(workers)

    def _loss(
        self, error: BaseException, workers: worker_processes.Workers
    ) -> str | None:
        """Says how a process is lost; None if it could say what it raised."""
        if isinstance(error, WorkerError):
            return "unread"
        if worker_processes.failed_workers(workers).any():
            return None
        if isinstance(error, multiprocessing.TimeoutError):
            return "silent"
        return "dead" if isinstance(error, EOFError | OSError) else None

    def _mismatch(
        self, error: BaseException, call: str
    ) -> MismatchError | None:
        """Finds the environment whose gifts Gymnasium could not stack."""
        inner = self.env.unwrapped
        if (
            not isinstance(inner, SyncVectorEnv)
            or isinstance(error, MismatchError)
            or self._is_its_own(error)
        ):
            return None
        for index, env in enumerate(inner.envs):
            kind = type(env.unwrapped).__name__
            name = f"{kind}, environment {index} of {self.name}"
            found = find_mismatch(env, name, call)
            if found is not None:
                return found
        return None

    def _is_its_own(self, error: BaseException) -> bool:
        """Whether an environment in this process raised it itself."""
        inner = self.env.unwrapped
        return isinstance(inner, SyncVectorEnv) and (
            _called(inner.envs, error.__traceback__) is not None
        )

    def _expected(self, call: str) -> str:
        """Says what is expected of each environment."""
        outcome = "reward, terminated, truncated, " if call == "step" else ""
        takes = "action" if call == "step" else "seed=None, options=None"
        return (
            "Expected observations of "
            f"{spaces.describe(self.observation_space)} from each environment, "
            f"and (observation, {outcome}info) from `{call}({takes})`."
        )

    def _end(self, workers: worker_processes.Workers) -> None:
        """Ends all processes after a failure."""
        worker_processes.end_workers(workers)
        self._ended = True

    def _culprits(self, error: BaseException) -> np.ndarray | None:
        """Says which environments an error came from, `[B]`, if known."""
        inner = self.env.unwrapped
        if isinstance(inner, AsyncVectorEnv):
            raised = worker_processes.failed_workers(inner)
            return raised if raised.any() else None
        if isinstance(inner, SyncVectorEnv):
            return _called(inner.envs, error.__traceback__)
        return None


def _called(envs: Any, traceback: TracebackType | None) -> np.ndarray | None:
    """Says which of some environments was being called, by the traceback.

    `SyncVectorEnv` calls one after the other and does not tell.
    """
    while traceback is not None:
        caller = traceback.tb_frame.f_locals.get("self")
        found = [env is caller for env in envs]
        if any(found):
            return np.array(found, np.bool_)
        traceback = traceback.tb_next
    return None
