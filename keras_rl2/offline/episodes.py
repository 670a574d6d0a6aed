"""Recorded episodes in memory, their checks, and their transitions."""

import dataclasses
import operator
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.replay_buffer import complete_windows
from keras_rl2.data.replay_buffer import largest_return
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import bounds
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

# The names of D4RL, which many files still use.
_OTHER_NAMES = {"terminals": "terminations", "timeouts": "truncations"}
_COLUMNS = ("rewards", "terminations", "truncations")
_NEEDED = ("observations", "actions", *_COLUMNS)
_NEXT = "next_observations"
# Bounds and actions may have been rounded to float32 in different orders.
_ROUNDING = 1e-5


@dataclasses.dataclass(frozen=True)
class Episodes:
    """E episodes of N steps in all, one after the other.

    An episode of m steps has m + 1 observations, so there are R = N + E.

    Attributes:
        name: str. The name of the source in error messages.
        lengths: `[E]` int64. Steps of each episode.
        returns: `[E]` float64. Sum of the rewards of each episode.
        observation: `[R, ...]`. A tree of arrays.
        action: `[N, ...]`. In the environment's form, a tree of arrays.
        reward: `[N]` float32.
        terminated: `[N]` bool.
        truncated: `[N]` bool.
        observation_space: `gymnasium.Space` or None, if it is unknown.
        action_space: `gymnasium.Space` or None, if it is unknown.
        has_ends: bool. Whether the observations after terminations are known.
            Defaults to `True`.
    """

    name: str
    lengths: np.ndarray
    returns: np.ndarray
    observation: Tree[np.ndarray]
    action: Tree[np.ndarray]
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observation_space: gymnasium.Space[Any] | None = None
    action_space: gymnasium.Space[Any] | None = None
    has_ends: bool = True

    @property
    def row(self) -> np.ndarray:
        """The row of the observation before each step, `[N]` int64."""
        episode = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return np.arange(len(self.reward)) + episode

    @property
    def last(self) -> np.ndarray:
        """The last step of each episode, `[E]` int64."""
        return np.cumsum(self.lengths) - 1

    def check_finite(self) -> None:
        """Raises a `ValueError` for NaN and infinity."""
        trees = {"observations": self.observation, "actions": self.action}
        for path, array in named_leaves({**trees, "rewards": self.reward}):
            if array.dtype.kind == "f":
                self._refuse(array, ~np.isfinite(array), f"finite {path}")

    def check_actions(self, space: gymnasium.Space[Any]) -> None:
        """Raises a `ValueError` for actions that are not in a space."""
        spaces = dict(named_leaves(space_tree(space)))
        actions = dict(named_leaves(self.action))
        shapes = {path: array.shape[1:] for path, array in actions.items()}
        expected = {path: each.shape or () for path, each in spaces.items()}
        if shapes != expected:
            raise ValueError(
                f"Expected actions of shapes {expected} in {self.name}, for "
                f"{space}. Received: {shapes}"
            )
        for path, each in spaces.items():
            array = actions[path]
            if array.dtype.kind not in (
                "biuf" if isinstance(each, Box) else "biu"
            ):
                raise ValueError(
                    f"Expected numbers of the kind of {each} as actions in "
                    f"{self.name}. Received: dtype {array.dtype}"
                )
            low, high = bounds(each)
            if isinstance(each, Box):
                low = low - _ROUNDING * (1.0 + np.abs(low))
                high = high + _ROUNDING * (1.0 + np.abs(high))
            outside = (array < low) | (array > high)
            self._refuse(array, outside, f"actions within {each}")

    def check_observations(self, space: gymnasium.Space[Any]) -> None:
        """Raises a `ValueError` for choices that are not in a space."""
        observations = dict(named_leaves(self.observation))
        for path, each in named_leaves(space_tree(space)):
            if not isinstance(each, Box):
                array, (low, high) = observations[path], bounds(each)
                outside = (array < low) | (array > high)
                self._refuse(array, outside, f"observations of {each}")

    def _refuse(self, array: np.ndarray, bad: np.ndarray, what: str) -> None:
        """Raises an error for the first bad number, with its place."""
        if not bad.any():
            return
        found = int(np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))[0])
        # Observations have one row more than steps in each episode.
        rows = self.lengths + (len(array) != len(self.reward))
        episode = int(np.searchsorted(np.cumsum(rows), found, "right"))
        step = found - int(rows[:episode].sum())
        raise ValueError(
            f"Expected {what} in {self.name}. Received: {array[found]} in "
            f"episode {episode}, step {step}"
        )


def episodes_of_arrays(
    arrays: Mapping[str, Any],
    name: str,
    observation_space: gymnasium.Space[Any] | None = None,
    action_space: gymnasium.Space[Any] | None = None,
) -> Episodes:
    """Returns the episodes of a record in temporal order.

    The observation after the last step of an episode is known only from
    `next_observations`. Without them, the last step of a truncated episode is
    left out: there is nothing to bootstrap from. If a step's next observation
    differs from the observation of the next step, the episode was interrupted
    there, and counts as truncated.
    """
    arrays = _compacted(arrays, name)
    _check_arrays(arrays, name)
    observation = arrays["observations"]
    # The observations after a termination are never used.
    following = arrays.get(_NEXT, observation)
    reward = arrays["rewards"].astype(np.float32)
    terminated = arrays["terminations"].astype(np.bool_)
    ended = _ended(arrays)
    last = np.flatnonzero(ended)
    first = np.append(0, last[:-1] + 1)
    step = np.ones(len(ended), np.bool_)
    if _NEXT not in arrays:
        step[last] = terminated[last]
    lengths = np.add.reduceat(step, first, dtype=np.int64)
    if not step.any():
        raise ValueError(
            f"Expected at least one transition in {name}: without "
            "`next_observations`, the last step of an episode that was "
            f"not terminated is left out. Received: {len(step)} steps"
        )
    has_steps = lengths > 0
    # The rows of observations: those of the steps, and one after each last.
    end = last[has_steps]
    place = np.searchsorted(np.flatnonzero(step), end, "right")
    return Episodes(
        name=name,
        lengths=lengths[has_steps],
        returns=np.add.reduceat(reward, first, dtype=np.float64)[has_steps],
        observation=map_leaves(
            lambda now, then: np.insert(now[step], place, then[end], axis=0),
            observation,
            following,
        ),
        action=map_leaves(lambda array: array[step], arrays["actions"]),
        reward=reward[step],
        terminated=terminated[step],
        truncated=(ended & ~terminated)[step],
        observation_space=observation_space,
        action_space=action_space,
        has_ends=_NEXT in arrays,
    )


def _compacted(arrays: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns arrays under the usual names, as float32 for float64."""
    try:
        return {
            _OTHER_NAMES.get(key, key): map_leaves(compact, tree)
            for key, tree in arrays.items()
        }
    except ValueError as error:
        # Lists of different lengths raise it, for example.
        raise ValueError(
            f"Expected arrays of numbers in {name}. Received: {error}"
        ) from error


def compact(array: npt.ArrayLike) -> np.ndarray:
    """Returns an array, as float32 for float64."""
    array = np.asarray(array)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _ended(arrays: Mapping[str, Any]) -> np.ndarray:
    """Returns whether each step is the last one of its episode, `[N]`."""
    ended = (arrays["terminations"] + arrays["truncations"]).astype(np.bool_)
    if _NEXT in arrays:
        pairs = zip(
            leaves(arrays["observations"]), leaves(arrays[_NEXT]), strict=True
        )
        for here, there in pairs:
            differs = there[:-1] != here[1:]
            ended[:-1] |= differs.reshape(len(differs), -1).any(axis=1)
    ended[-1] = True
    return ended


def _check_arrays(arrays: Mapping[str, Any], name: str) -> None:
    """Raises an error if arrays are missing, or do not fit together."""
    if not {*_NEEDED} <= {*arrays} <= {*_NEEDED, _NEXT}:
        raise ValueError(
            f"Expected {', '.join(_NEEDED)} and optionally {_NEXT} in {name}. "
            f"Received: {', '.join(sorted(arrays)) or 'nothing'}"
        )
    shapes = _shapes(arrays)
    for path, array in named_leaves(arrays):
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"Expected arrays of numbers in {name}. Received: {path} "
                f"of dtype {array.dtype}"
            )
    count = shapes.get("rewards", (0,))[:1]
    observation = arrays["observations"]
    following = arrays.get(_NEXT, observation)
    if (
        count in ((), (0,))
        or any(shape[:1] != count for shape in shapes.values())
        or any(shapes.get(key) != count for key in _COLUMNS)
        or _shapes(following) != _shapes(observation)
    ):
        raise ValueError(
            "Expected arrays of one length, of at least one step, in "
            f"{name}, with one number per step in {', '.join(_COLUMNS)}, and "
            f"{_NEXT} of the shapes of observations. Received: "
            f"{', '.join(f'{path} {shape}' for path, shape in shapes.items())}"
        )


def _shapes(tree: Tree[np.ndarray]) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each array."""
    return {path: array.shape for path, array in named_leaves(tree)}


# Rows of a trajectory for an agent's statistics.
_SHOWN_ROWS = 16384


class TransitionBlock:
    """Transitions of n steps, accessed by their numbers.

    Rewards, discounts and windows are the same as in
    `keras_rl2.data.ReplayBuffer`: a truncation shortens the window and keeps
    the bootstrap, a termination removes it.

    Args:
        episodes: `Episodes`.
        agent: `keras_rl2.Agent`, bound to its spaces. Its observations and
            normalized actions are returned, discounted by its `gamma`.
        n_step: int. Rewards of a transition, n.
        generator: `np.random.Generator`. Draws the transitions.
    """

    #: An episode is stored without steps of others between its own.
    num_envs = 1

    def __init__(
        self,
        episodes: Episodes,
        agent: CollectingAgent,
        n_step: int,
        generator: np.random.Generator,
    ) -> None:
        self.gamma = agent.gamma
        self.n_step = n_step
        self.generator = generator
        self._episodes = episodes
        self._row = episodes.row
        self._observation = _observations(episodes, agent)
        self._action = np.asarray(
            agent.policy.head.from_environment(episodes.action)
        )
        ended = np.zeros((len(self), 1), np.bool_)
        ended[episodes.last] = True
        _, total, length = complete_windows(
            episodes.reward[:, None],
            ended,
            np.ones_like(ended),
            n_step,
            agent.gamma,
        )
        self.largest_return = largest_return(
            agent.gamma, total, length, ended, episodes.terminated[:, None]
        )
        self._span = length[:, 0]
        self._reward = total[:, 0].astype(np.float32)
        powers = (agent.gamma ** np.arange(n_step + 1.0)).take(self._span)
        powers[episodes.terminated[np.arange(len(self)) + self._span - 1]] = 0.0
        self._discount = powers.astype(np.float32)

    def __len__(self) -> int:
        """Returns the number of transitions."""
        return len(self._row)

    def take(self, index: np.ndarray) -> dict[str, Any]:
        """Returns transitions by their numbers.

        Args:
            index: `[M]` ints, from 0 to the length.

        Returns:
            dict of `observation`, `action`, `reward`, `discount` and
            `next_observation`, `[M, ...]`, copied.
        """
        row = self._row.take(index)
        return {
            "observation": self._observed(row),
            "action": self._action.take(index, axis=0),
            "reward": self._reward.take(index),
            "discount": self._discount.take(index),
            "next_observation": self._observed(row + self._span.take(index)),
        }

    def _observed(self, row: np.ndarray) -> Any:
        """Returns observations by their rows, copied."""
        return map_leaves(lambda a: a.take(row, axis=0), self._observation)

    def episode_of(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns first and last steps; see `ReplayBuffer.episode_of`."""
        last = self._episodes.last
        episode = np.searchsorted(last, index)
        first = last - self._episodes.lengths + 1
        return first[episode], last[episode]

    def reached(self, index: np.ndarray) -> Any:
        """Returns observations after steps; see `ReplayBuffer.reached`."""
        episodes = self._episodes
        if not episodes.has_ends and episodes.terminated[index].any():
            raise ValueError(
                f"Expected `{_NEXT}` in {episodes.name}, whose last ones a "
                "transform asks for. Received: none of them"
            )
        return self._observed(self._row.take(index) + 1)

    def trajectories(self) -> Iterator[Trajectory]:
        """Yields the steps in order, for an agent's statistics.

        Yields:
            `Trajectory` of T steps of one environment; rows without a step
            are not valid.
        """
        # [N, ...] -> [R, 1, ...]
        count = len(self) + len(self._episodes.lengths)

        def padded(array: np.ndarray) -> np.ndarray:
            rows = np.zeros((count, 1, *array.shape[1:]), array.dtype)
            rows[self._row, 0] = array
            return rows

        steps: dict[str, Any] = {
            "action": padded(self._action),
            "reward": padded(self._episodes.reward),
            "terminated": padded(self._episodes.terminated),
            "truncated": padded(self._episodes.truncated),
            "valid": padded(np.ones(len(self), np.bool_)),
        }
        none = map_leaves(lambda array: array[:0], self._observation)
        for start in range(0, count - 1, _SHOWN_ROWS):
            stop = min(start + _SHOWN_ROWS, count - 1)
            rows = operator.itemgetter((slice(start, stop + 1), None))
            yield Trajectory(
                observation=map_leaves(rows, self._observation),
                **{key: each[start:stop] for key, each in steps.items()},
                final_observation=none,
                final_index=np.empty(0, np.int32),
            )


def _observations(episodes: Episodes, agent: CollectingAgent) -> Any:
    """Returns observations with the dtypes of an agent; checks the form."""
    spec = agent.policy.observation_spec
    arrays = named_leaves(episodes.observation)
    shapes = {path: array.shape[1:] for path, array in arrays}
    expected = {path: one.shape for path, one in named_leaves(spec)}
    if shapes != expected:
        raise ValueError(
            f"Expected observations of shapes {expected} in {episodes.name}. "
            f"Received: {shapes}"
        )

    def cast(one: ArraySpec, each: np.ndarray) -> np.ndarray:
        # Floats, for example, are not made whole numbers.
        if not np.can_cast(each.dtype, one.dtype, "same_kind"):
            raise ValueError(
                f"Expected observations of dtype {one.dtype} in "
                f"{episodes.name}. Received: dtype {each.dtype}"
            )
        return each.astype(one.dtype, copy=False)

    return map_leaves(cast, spec, episodes.observation)
