"""Hindsight: transitions whose goal is one that their episode reached."""

import functools
import operator
from collections.abc import Callable
from typing import Any
from typing import Self

import keras
import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.data.replay_buffer import complete_windows
from keras_rl2.data.transforms import StoredSteps
from keras_rl2.data.transforms import Transform
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import map_leaves

_GOAL, _ACHIEVED = "desired_goal", "achieved_goal"


@keras.saving.register_keras_serializable(package="keras_rl2")
class Hindsight:
    """Settings of hindsight experience replay (HER).

    A share of the drawn transitions gets another goal g', which the episode of
    the transition has reached: `achieved_goal` after one of its steps. Their
    rewards become those of this goal,

        r'_i = compute_reward(achieved_i, g', {}),
        R' = Σ_{i<k} γ^i r'_i

    where `achieved_i` is the goal achieved after step i of the window of k
    steps. If the environment has `compute_terminated`, the window ends with
    the first step that terminates under g'; otherwise, terminations stay as
    they are stored. Stored transitions never change.

    Observations are a Dict with the arrays `achieved_goal` and `desired_goal`,
    as those of Gymnasium-Robotics.

    Args:
        strategy: str. The steps that goals are drawn from: `"future"` for the
            transition's own and the later ones of its episode, `"episode"` for
            all of its episode, `"final"` for its last one. An episode in
            progress counts as far as it is stored. Defaults to `"future"`.
        relabelled: float. Probability that a transition gets another goal.
            Defaults to `0.8`, four in five as published.

    Example:

    >>> hindsight = Hindsight("final", relabelled=0.5)
    >>> hindsight.get_config()
    {'strategy': 'final', 'relabelled': 0.5}

    Reference:
        - [Andrychowicz et al., 2017](https://arxiv.org/abs/1707.01495)
    """

    @arguments.refusing_unknown
    def __init__(
        self, strategy: str = "future", relabelled: float = 0.8
    ) -> None:
        strategies = ("future", "episode", "final")
        arguments.check_choice(strategy=(strategy, strategies))
        arguments.check_in_range(relabelled=(relabelled, 0.0, 1.0))
        self.strategy = strategy
        self.relabelled = float(relabelled)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the settings from their config."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"Hindsight({self.strategy!r}, relabelled={self.relabelled})"

    def transform(self, env: GivenEnv) -> Transform:
        """Returns the transform that relabels minibatches.

        `ReplayDataset(hindsight=)` calls it with its environments; pass it to
        `OfflineDataset(transform=)` yourself.

        Args:
            env: See `ReplayDataset`. Environments with `compute_reward`, and
                perhaps `compute_terminated`, of Gymnasium-Robotics' `GoalEnv`:
                functions of `(achieved_goal, desired_goal, info)`. They are
                called with `[N, ...]` goals and a list of N empty dicts; if
                they do not return N values, they are called for each goal.

        Raises:
            ValueError: If the environment has no goals or no `compute_reward`.

        Example:

        >>> import keras_rl2 as rl
        >>> rl.Hindsight().transform("CartPole-v1")
        Traceback (most recent call last):
        ...
        ValueError: Expected an environment with a Dict of ...
        """
        adapter = as_vector_env(env)
        spec: Any = adapter.observation_spec
        reward, terminated = map(
            adapter.method, ("compute_reward", "compute_terminated")
        )
        if (
            not isinstance(spec, dict)
            or not isinstance(spec.get(_GOAL), ArraySpec)
            or spec.get(_ACHIEVED) != spec[_GOAL]
            or reward is None
        ):
            raise ValueError(
                "Expected an environment with a Dict of observations, of which "
                f"{_ACHIEVED} and {_GOAL} are arrays of one shape, and with "
                f"the method compute_reward. Received: {adapter.name} with "
                f"{adapter.observation_space} and compute_reward={reward}"
            )
        return functools.partial(self._relabel, reward, terminated)

    def _relabel(
        self,
        compute_reward: Callable[..., Any],
        compute_terminated: Callable[..., Any] | None,
        batch: dict[str, Any],
        steps: StoredSteps,
    ) -> dict[str, Any]:
        """Gives a share of the transitions other goals."""
        chosen = steps.generator.random(len(batch["index"])) < self.relabelled
        (rows,) = np.nonzero(chosen)
        if not rows.size:
            return batch
        index = batch["index"][rows]
        first, last = steps.episode_of(index)
        goal = self._goal(steps, index, first, last)
        # [n, M]: the steps of each window
        window = index + steps.num_envs * np.arange(steps.n_step)[:, None]
        ended = window >= last
        reached = steps.reached(np.minimum(window, last).reshape(-1))
        goals = reached[_ACHIEVED], np.concatenate([goal] * steps.n_step)
        reward = _of_each(compute_reward, *goals).reshape(window.shape)
        terminated = np.zeros_like(ended)
        if compute_terminated is not None:
            flags = _of_each(compute_terminated, *goals)
            terminated = flags.astype(np.bool_).reshape(window.shape)
        _, total, length = complete_windows(
            reward,
            ended | terminated,
            np.ones_like(ended),
            steps.n_step,
            steps.gamma,
        )
        # Positions of the last steps of windows, among all n * M steps.
        end = (length[0] - 1) * rows.size + np.arange(rows.size)
        following = map_leaves(operator.itemgetter(end), reached)

        def put(array: np.ndarray, new: np.ndarray) -> np.ndarray:
            changed = array.copy()
            changed[rows] = new
            return changed

        observation, after = batch["observation"], batch["next_observation"]
        relabelled = {
            "observation": observation | {_GOAL: put(observation[_GOAL], goal)},
            "reward": put(batch["reward"], total[0]),
            "next_observation": map_leaves(
                put, after, {**following, _GOAL: goal}
            ),
        }
        if compute_terminated is not None:
            goes_on = ~terminated.reshape(-1)[end]
            relabelled["discount"] = put(
                batch["discount"], steps.gamma ** length[0] * goes_on
            )
        return batch | relabelled

    def _goal(
        self,
        steps: StoredSteps,
        index: np.ndarray,
        first: np.ndarray,
        last: np.ndarray,
    ) -> np.ndarray:
        """Draws a goal for each step `[M]` from its episode."""
        starts = {"future": index, "episode": first, "final": last}
        start = starts[self.strategy]
        count = (last - start) // steps.num_envs + 1
        drawn = start + steps.num_envs * steps.generator.integers(count)
        goal: np.ndarray = steps.reached(drawn)[_ACHIEVED]
        return goal


def _of_each(
    function: Callable[..., Any], achieved: np.ndarray, desired: np.ndarray
) -> np.ndarray:
    """Returns the values of a function of goals, `[N, ...]` -> `[N]`."""
    infos: list[dict[str, Any]] = [{}] * len(achieved)
    values = np.asarray(function(achieved, desired, infos))
    if values.shape != (len(achieved),):
        # It takes one goal, as those of Gymnasium-Robotics' mazes do.
        each = map(function, achieved, desired, infos)
        values = np.array([*each])
    return values
