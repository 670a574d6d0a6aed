"""Transitions made of episodes in memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.replay_buffer import complete_windows
from keras_rl2.offline.episodes import Episodes
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

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

    Raises:
        ValueError: If the agent's observations are of another form.
    """

    def __init__(
        self, episodes: Episodes, agent: CollectingAgent, n_step: int
    ) -> None:
        self._episodes = episodes
        self._row = episodes.row
        self._observation = _observations(episodes, agent)
        self._action = np.asarray(
            agent.policy_head.from_environment(episodes.action)
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

        def seen(row: np.ndarray) -> Any:
            return map_leaves(lambda a: a.take(row, axis=0), self._observation)

        return {
            "observation": seen(row),
            "action": self._action.take(index, axis=0),
            "reward": self._reward.take(index),
            "discount": self._discount.take(index),
            "next_observation": seen(row + self._span.take(index)),
        }

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
            seen = slice(start, stop + 1)
            yield Trajectory(
                observation=map_leaves(
                    lambda array, seen=seen: array[seen, None],
                    self._observation,
                ),
                **{key: each[start:stop] for key, each in steps.items()},
                final_observation=none,
                final_index=np.empty(0, np.int32),
            )


def _observations(episodes: Episodes, agent: CollectingAgent) -> Any:
    """Returns observations with the dtypes of an agent; checks the form."""
    spec = agent.observation_spec
    found = named_leaves(episodes.observation)
    given = {path: array.shape[1:] for path, array in found}
    wanted = {path: one.shape for path, one in named_leaves(spec)}
    if given != wanted:
        raise ValueError(
            f"Expected observations of shapes {wanted} in {episodes.name}. "
            f"Received: {given}"
        )
    return map_leaves(
        # Floats, e.g., are not made whole numbers.
        lambda one, each: each.astype(
            one.dtype, casting="same_kind", copy=False
        ),
        spec,
        episodes.observation,
    )
