"""Hindsight: transitions whose goal is one that their episode reached."""

import functools
from collections.abc import Callable
from typing import Any
from typing import Self

import keras
import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.data.replay_buffer import Transform
from keras_rl2.data.replay_buffer import complete_windows
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import leaves

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
        ValueError: Expected an environment with the method compute_reward, ...
        """
        adapter = as_vector_env(env)
        spec: Any = adapter.observation_spec
        methods = adapter.methods("compute_reward", "compute_terminated")
        if (
            methods[0] is None
            or not isinstance(spec, dict)
            or not isinstance(spec.get(_GOAL), ArraySpec)
            or spec[_GOAL] != spec.get(_ACHIEVED)
        ):
            raise ValueError(
                "Expected an environment with the method compute_reward, and "
                f"{_ACHIEVED} and {_GOAL} of one shape in its observations. "
                f"Received: {adapter.name} of {adapter.observation_space}"
            )
        return functools.partial(self._relabel, *methods)

    def _relabel(
        self,
        compute_reward: Callable[..., Any],
        compute_terminated: Callable[..., Any] | None,
        batch: dict[str, Any],
        steps: Any,
    ) -> dict[str, Any]:
        """Gives a share of the transitions other goals."""
        generator, stride = steps.generator, steps.num_envs
        drawn = generator.random(len(batch["index"]))
        (rows,) = np.nonzero(drawn < self.relabelled)
        if not rows.size:
            return batch
        index = batch["index"][rows]
        first, last = steps.episode_of(index)
        starts = {"future": index, "episode": first, "final": last}
        start = starts[self.strategy]
        ahead = generator.integers((last - start) // stride + 1)
        goal = steps.reached(start + ahead * stride)[_ACHIEVED]
        # [n, M]: the steps of each window
        window = index + stride * np.arange(steps.n_step)[:, None]
        ended = window >= last
        reached = steps.reached(np.minimum(window, last).reshape(-1))
        goals = reached[_ACHIEVED], np.concatenate([goal] * steps.n_step)
        terminated = ended & (batch["discount"][rows] == 0)
        if compute_terminated is not None:
            terminated = _of_each(compute_terminated, *goals) > 0
            terminated = terminated.reshape(window.shape)
        _, total, length = complete_windows(
            _of_each(compute_reward, *goals).reshape(window.shape),
            ended | terminated,
            np.ones_like(ended),
            steps.n_step,
            steps.gamma,
        )
        # Positions of the last steps of windows, among all n * M steps.
        end = (length[0] - 1) * rows.size + np.arange(rows.size)
        goes_on = ~terminated.reshape(-1)[end]
        batch["observation"][_GOAL][rows] = goal
        batch["reward"][rows] = total[0]
        batch["discount"][rows] = steps.gamma ** length[0] * goes_on
        reached[_GOAL][end] = goal
        for array, after in zip(
            leaves(batch["next_observation"]), leaves(reached), strict=True
        ):
            array[rows] = after[end]
        return batch


def _of_each(
    function: Callable[..., Any], achieved: np.ndarray, desired: np.ndarray
) -> np.ndarray:
    """Returns the values of a function of goals, `[N, ...]` -> `[N]`."""
    infos: list[dict[str, Any]] = [{}] * len(achieved)
    values = np.asarray(function(achieved, desired, infos))
    if values.shape != (len(achieved),):
        # It takes one goal, as some of Gymnasium-Robotics do.
        values = np.array([*map(function, achieved, desired, infos)])
    return values
