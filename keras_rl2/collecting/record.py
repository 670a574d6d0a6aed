"""Writing a rollout down while it happens."""

import operator
from typing import Any

import numpy as np

from keras_rl2.collecting.broken_episodes import BrokenEpisodes
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.envs import VectorEnvAdapter
from keras_rl2.envs.timed_env import TimedEnv
from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves


class Record:
    """Arrays that a rollout in progress is written to.

    They are made anew for each rollout: TensorFlow may keep pointing at
    memory that it was given.

    Args:
        env: `VectorEnvAdapter`. The environments that are stepped.
        head: `ActionFormat`. Of the policy's own actions.
        horizon: int. Steps of the rollout, T.
        first: `[B, ...]`. What the environments were left with: an array, or
            a tree of arrays.
    """

    def __init__(
        self,
        env: VectorEnvAdapter | TimedEnv,
        head: ActionFormat,
        horizon: int,
        first: Tree[np.ndarray],
    ) -> None:
        leading = (horizon, env.num_envs)

        def rows(array: np.ndarray) -> np.ndarray:
            # [T + 1, B, ...]: one more than there are actions.
            return np.empty((horizon + 1, *array.shape), array.dtype)

        self.observation: Any = map_leaves(rows, first)
        self._is_array = is_leaf(first)
        self.keep_observation(0, first)
        self.action = np.empty(
            (*leading, *head.action_shape), head.action_dtype
        )
        self.reward = np.empty(leading, np.float32)
        self.terminated = np.empty(leading, np.bool_)
        self.truncated = np.empty(leading, np.bool_)
        #: Of the actions, `[T, B]` float32; None where nobody wants to know.
        self.log_prob: np.ndarray | None = None
        self.steps = 0
        self.masks_reset_rows = env.masks_reset_rows
        self.pending_reset = np.array(env.pending_reset, np.bool_)
        self._final: list[Any] = []
        self._begins: list[np.ndarray] = []
        self._states: list[tuple[np.ndarray, ...]] = []
        self._final_states: list[tuple[np.ndarray, ...]] = []
        self._final_index: list[np.ndarray] = []
        #: What failures have left of it; None where there were none.
        self.broken: BrokenEpisodes | None = None

    def observation_at(self, t: int) -> Any:
        """Returns what step `t` acts on, `[B, ...]`."""
        if self._is_array:
            return self.observation[t]
        return map_leaves(operator.itemgetter(t), self.observation)

    def keep_observation(self, t: int, observation: Any) -> None:
        """Keeps what step `t` is to act on, `[B, ...]`."""
        if self._is_array:
            self.observation[t] = observation
            return
        for array, row in zip(
            leaves(self.observation), leaves(observation), strict=True
        ):
            array[t] = row

    def keep_final(self, t: int, final_observation: Any) -> None:
        """Keeps the true last observations of the episodes that ended.

        Args:
            t: int. The step.
            final_observation: `[B, ...]`. Rows of episodes that ended count.
        """
        (ended,) = np.nonzero(self.terminated[t] | self.truncated[t])
        # [B, ...] -> [E, ...]
        self._final.append(
            map_leaves(operator.itemgetter(ended), final_observation)
        )
        self._final_index.append(t * self.reward.shape[1] + ended)

    def keep_begins(self, begins: np.ndarray) -> None:
        """Keeps where the next step is the first of an episode, `[B]`."""
        self._begins.append(begins)

    def keep_state(self, state: tuple[np.ndarray, ...]) -> None:
        """Keeps what is remembered where a sequence starts, `[B, ...]`."""
        self._states.append(state)

    def keep_final_state(self, t: int, state: tuple[np.ndarray, ...]) -> None:
        """Keeps what is remembered of the episodes that ended.

        Args:
            t: int. The step.
            state: tuple of `[B, ...]`. After it.
        """
        (ended,) = np.nonzero(self.terminated[t] | self.truncated[t])
        # [B, ...] -> [E, ...]
        self._final_states.append(tuple(each[ended] for each in state))

    def final(self) -> tuple[Any, np.ndarray]:
        """Returns the final observations `[E, ...]` and their index `[E]`."""
        if not self._final:
            none = map_leaves(_no_rows, self.observation)
            return none, np.empty(0, np.int32)

        def joined(array: np.ndarray, *parts: np.ndarray) -> np.ndarray:
            # [E_t, ...] of each step t -> [E, ...]
            return np.concatenate(parts).astype(array.dtype)

        return (
            map_leaves(joined, self.observation, *self._final),
            np.concatenate(self._final_index).astype(np.int32),
        )

    def keep_restart(
        self, t: int, failed: np.ndarray, observation: Any
    ) -> None:
        """Makes a step that failed one in which all environments begin anew.

        As in a step that only resets, what was seen last stays before it.

        Args:
            t: int. The step.
            failed: `[B]` bool. The environments that failed.
            observation: `[B, ...]`. What they begin with.
        """
        broken = self._broken()
        broken.add(t, failed, self.terminated | self.truncated)
        if t:
            self.truncated[t - 1] |= broken.cut[t - 1] & self.valid()[t - 1]
        self._keep_nothing(t)
        self.keep_observation(t + 1, observation)

    def _broken(self) -> BrokenEpisodes:
        """Returns what failures have left."""
        if self.broken is None:
            self.broken = BrokenEpisodes(self.reward.shape)
        return self.broken

    def _keep_nothing(self, t: int) -> None:
        """Writes down that nothing happened in a step."""
        self.reward[t] = 0.0
        self.terminated[t] = self.truncated[t] = False

    def restarts_at(self, t: int) -> bool:
        """Says whether step `t` failed and all environments began anew."""
        return self.broken is not None and bool(self.broken.anew[t].any())

    def is_over(self, t: int) -> np.ndarray:
        """Marks environments that step `t` is of no account for, `[B]`."""
        return np.zeros(self.reward.shape[1], np.bool_)

    def valid(self) -> np.ndarray:
        """Marks what is a transition and no mere reset, `[T, B]`."""
        valid = np.ones(self.reward.shape, np.bool_)
        if self.masks_reset_rows:
            valid[0] &= ~self.pending_reset
            valid[1:] &= ~(self.terminated[:-1] | self.truncated[:-1])
        if self.broken is not None:
            valid &= ~self.broken.discarded
        return valid

    def trajectory(self) -> Trajectory:
        """Returns what was recorded."""
        final_observation, final_index = self.final()
        return Trajectory(
            observation=self.observation,
            action=self.action,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            valid=self.valid(),
            final_observation=final_observation,
            final_index=final_index,
            log_prob=self.log_prob,
            **self._memory(),
        )

    def _memory(self) -> dict[str, Any]:
        """Returns what was kept of a policy that remembers."""
        if not self._states:
            return {}
        none = tuple(each[:0] for each in self._states[0])
        finals = [none, *self._final_states]
        # [B, ...] of each -> [K, B, ...], and [E_t, ...] -> [E, ...]
        return {
            "begins": np.array(self._begins, np.float32),
            "state": tuple(map(np.stack, zip(*self._states, strict=True))),
            "final_state": tuple(
                map(np.concatenate, zip(*finals, strict=True))
            ),
        }


def _no_rows(array: np.ndarray) -> np.ndarray:
    """Returns no rows of an array of steps: [T + 1, B, ...] -> [0, ...]."""
    return np.empty((0, *array.shape[2:]), array.dtype)


def check_finite(record: Record) -> None:
    """Refuses NaN and infinity, naming where they came from.

    Args:
        record: `Record` of a rollout, finished or broken off.

    Raises:
        ValueError: If an observation or a reward is not finite.
    """
    final, final_index = record.final()
    count = record.steps
    checked = [
        *_named("observation", record.observation, count + 1),
        ("reward", record.reward[:count]),
    ]
    for key, array in checked:
        where = first_not_finite(array)
        if where is not None:
            _refuse(key, array[where], step=where[0], env=where[1])
    for key, array in _named("final observation", final, None):
        where = first_not_finite(array)
        if where is not None:
            step, env = divmod(
                int(final_index[where[0]]), record.reward.shape[1]
            )
            _refuse(key, array[where], step=step, env=env)


def first_not_finite(array: np.ndarray) -> tuple[int, ...] | None:
    """Returns where the first number is that is not finite, if there is one.

    Args:
        array: Of any shape and dtype.

    Returns:
        tuple of ints, or None.
    """
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return None
    return tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])


def _named(
    name: str, tree: Any, count: int | None
) -> list[tuple[str, np.ndarray]]:
    """Returns the first rows of each array with a name for people."""
    return [
        (f"{name} {path}" if path else name, array[:count])
        for path, array in named_leaves(tree)
    ]


def _refuse(key: str, number: Any, step: int, env: int) -> None:
    """Names a number that is not finite."""
    raise ValueError(
        f"Expected a finite {key} from every environment. Received: "
        f"{key}={number} from environment {env} at step {step} of the "
        "rollout. No weight has been changed by it."
    )
