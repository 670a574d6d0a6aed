"""Gymnasium's vector environments, with a subclass for each autoreset mode."""

import abc
import contextlib
import operator
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import create_empty_array

from keras_rl2.envs import worker_processes
from keras_rl2.envs.errors import MismatchError
from keras_rl2.envs.errors import WorkerError
from keras_rl2.envs.vector_env import Step
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


class GymnasiumVectorEnv(VectorEnvAdapter):
    """A `gymnasium.vector.VectorEnv` of any autoreset mode.

    All processes of an `AsyncVectorEnv` are ended as soon as one of them has
    failed, since Gymnasium can neither step nor close the others without it.
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
            worker_processes.limit_waiting(self._workers)

    @property
    def _workers(self) -> "worker_processes.Workers | None":
        """The environments if they are in processes that run, else None."""
        inner = self.env.unwrapped
        if isinstance(inner, AsyncVectorEnv) and not inner.closed:
            return inner
        return None

    @contextlib.contextmanager
    def shielded(self) -> Iterator[None]:
        """Lets the processes ignore SIGINT and SIGTERM meanwhile."""
        self._shield(True)
        try:
            yield
        finally:
            self._shield(False)

    def _shield(self, ignore: bool) -> None:
        """Lets the processes ignore signals, or handle them again."""
        if workers := self._workers:
            try:
                worker_processes.ignore_signals(workers, ignore)
            except Exception:
                # Python would wait for these processes for ever as it exits.
                worker_processes.end_workers(workers)

    def close(self) -> None:
        """Closes the environments, and ends processes that do not close."""
        if self._workers is None:
            self.env.close()
        else:
            worker_processes.close_workers(self.env, self._workers)

    def step_envs(self, action: Tree[np.ndarray]) -> Step:
        """Takes one step in every environment."""
        given = self.env.step(
            map_leaves(self._cast_action, self._action_spec, action)
        )
        if self.steps == 1:
            self._checks.check_step(given)
        observation, reward, terminated, truncated, info = given
        step = (
            self._to_observation(observation),
            np.asarray(reward, np.float32),
            np.asarray(terminated, np.bool_),
            np.asarray(truncated, np.bool_),
            None,
        )
        return self._end_episodes(step, info)

    @abc.abstractmethod
    def _end_episodes(self, step: Step, info: dict[str, Any]) -> Step:
        """Returns the step as adapters report the ends of episodes."""

    def _fail(self, error: BaseException, doing: str) -> None:
        """Notes the origin of an error; names processes that are lost."""
        if (
            self.steps < 2
            and isinstance(error, Exception)
            and not isinstance(error, MismatchError | WorkerError | OSError)
            and (self._workers or self._culprits(error) is None)
        ):
            error.add_note(
                "Expected observations of "
                f"{spaces.describe(self.observation_space)} from each "
                "environment, with (observation, info) from `reset` and "
                "(observation, reward, terminated, truncated, info) from "
                "`step`."
            )
        workers = self._workers
        if workers is None:
            super()._fail(error, doing)
            return
        lost = worker_processes.describe_lost(workers, error)
        super()._fail(error, doing)
        worker_processes.end_workers(workers)
        if lost:
            raise WorkerError(
                f"Expected a process that lives for each environment of "
                f"{self.name} in {doing}. Received: {lost}"
            ) from error

    def _culprits(self, error: BaseException) -> np.ndarray | None:
        """Returns the environments that raised an error, `[B]`, if known."""
        inner = self.env.unwrapped
        if self._workers is not None:
            failed = worker_processes.failed_workers(self._workers)
            return failed if failed.any() else None
        if isinstance(inner, SyncVectorEnv):
            return _called(inner.envs, error.__traceback__)
        return None


class NextStepEnv(GymnasiumVectorEnv):
    """A vector environment with `AutoresetMode.NEXT_STEP`.

    The observation returned with the end of an episode is the true last one.
    The next step ignores the action and returns the first observation of the
    next episode: such a row is no transition and has to be masked.
    """

    masks_reset_rows = True

    def _end_episodes(self, step: Step, info: dict[str, Any]) -> Step:
        """Masks the rows that are resets."""
        del info
        observation, reward, terminated, truncated, _ = step
        resetting = self.pending_reset
        if np.count_nonzero(resetting):
            # So it should be anyway; but one careless environment would shift
            # the mask of all later steps.
            reward = np.where(resetting, np.float32(0.0), reward)
            terminated = terminated & ~resetting
            truncated = truncated & ~resetting
        self.pending_reset = terminated | truncated
        return observation, reward, terminated, truncated, None

    def reset_envs(self, seed: int | None) -> Any:
        """Resets all environments, after the resets that are pending."""
        if (
            # Environments of a resumed run have taken none.
            self.steps
            and self.pending_reset.any()
            and self._workers is not None
            and not self._workers.shared_memory
        ):
            # Without shared memory, a worker that is reset while it has a
            # reset pending makes that one too, in the step after (Gymnasium
            # 1.4). A step gets it out of the way.
            self.env.step(create_empty_array(self.action_space, self.num_envs))
        return super().reset_envs(seed)


class EnvPoolEnv(NextStepEnv):
    """An EnvPool environment, made with `env_type="gymnasium"`.

    Its seed is an argument of `envpool.make`. The seed of `reset` is not passed
    on, since EnvPool ignores it with a warning. An episode that reaches its
    time limit and a terminal state in one step is truncated only: EnvPool does
    not report both.
    """

    def __init__(self, env: Any) -> None:
        config = env.unwrapped.config
        if env.unwrapped.is_async or config.get("max_num_players", 1) != 1:
            raise ValueError(
                "Expected an EnvPool environment with one player and with "
                f"batch_size=num_envs. Received: {config}"
            )
        with warnings.catch_warnings():
            # EnvPool makes its spaces when they are first read, with bounds
            # that Gymnasium warns about; a user cannot change them.
            warnings.filterwarnings("ignore", ".*precision lowered by casting")
            super().__init__(env)

    def reset_envs(self, seed: int | None) -> Any:
        """Resets all environments without a seed."""
        del seed
        return super().reset_envs(None)


class SameStepEnv(GymnasiumVectorEnv):
    """A vector environment with `AutoresetMode.SAME_STEP`.

    The step that ends an episode returns the first observation of the next
    one, and the last one of the ended episode in `info["final_obs"]`.
    """

    def _end_episodes(self, step: Step, info: dict[str, Any]) -> Step:
        """Takes final observations from the information of the step."""
        observation, reward, terminated, truncated, _ = step
        ended = terminated | truncated
        if not np.count_nonzero(ended):
            return step
        if "final_obs" not in info:
            raise ValueError(
                f"Expected info['final_obs'] from {self.name}, of SAME_STEP, "
                f"when an episode ends. Received: the keys {sorted(info)}"
            )
        final_observation = map_leaves(np.copy, observation)
        given = info["final_obs"]
        for i in np.flatnonzero(ended).tolist():

            def put(array: np.ndarray, row: Any, i: int = i) -> None:
                array[i] = row

            map_leaves(put, final_observation, final_row(given, i))
        return observation, reward, terminated, truncated, final_observation


class ManualResetEnv(GymnasiumVectorEnv):
    """A vector environment with `AutoresetMode.DISABLED`.

    Environments whose episode ended are reset here, at once.
    """

    def _end_episodes(self, step: Step, info: dict[str, Any]) -> Step:
        """Resets the environments whose episode ended."""
        del info
        observation, reward, terminated, truncated, _ = step
        ended = terminated | truncated
        if not np.count_nonzero(ended):
            return step
        # Copied first: a reset may write to the array that a step returned.
        final_observation = map_leaves(np.copy, observation)
        first, _ = self.env.reset(options={"reset_mask": ended.copy()})

        def replaced(array: np.ndarray, other: np.ndarray) -> np.ndarray:
            copy = array.copy()
            copy[ended] = np.asarray(other)[ended]
            return copy

        observation = map_leaves(replaced, final_observation, first)
        return observation, reward, terminated, truncated, final_observation


def final_row(given: Any, index: int) -> Any:
    """Returns the last observation of an episode from `info["final_obs"]`.

    Args:
        given: An array of observations, None where no episode ended, or one
            tree of arrays `[B, ...]`.
        index: int. Index of the environment.
    """
    if isinstance(given, np.ndarray | list):
        return given[index]
    return map_leaves(operator.itemgetter(index), given)


def _called(envs: Any, traceback: TracebackType | None) -> np.ndarray | None:
    """Returns the environment that a traceback leads through, `[B]`, if one.

    `SyncVectorEnv` calls one after the other and keeps no record of it.
    """
    while traceback is not None:
        caller = traceback.tb_frame.f_locals.get("self")
        found = [env is caller for env in envs]
        if any(found):
            return np.array(found, np.bool_)
        traceback = traceback.tb_next
    return None
