"""Players of games as the environments of a batch."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.envs.games import Games
from keras_rl2.envs.vector_env import Step
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


class PlayersEnv(VectorEnvAdapter):
    """Some or all players of games, each as an environment.

    The rows are in the order of `Games`. A row ends with its player's death,
    and waits until the next game begins.

    Args:
        games: `Games`.
        players: sequence of str or None. Defaults to `None`: all players.

    Raises:
        ValueError: If the players differ in their spaces.
    """

    def __init__(
        self, games: Games, players: Sequence[str] | None = None
    ) -> None:
        names = games.names if players is None else tuple(players)
        self.rows = games.rows(names)
        self._is_part = names != games.names
        super().__init__(games, len(self.rows), *games.shared_spaces(names))
        self.name = str(games)
        self.players = tuple(
            games.group_of(name) for name in names for _ in games.envs
        )

    @property
    def resets(self) -> int:
        """Number of resets of the games, by whoever acts in them."""
        resets: int = self.env.resets
        return resets

    @resets.setter
    def resets(self, resets: int) -> None:
        self.env.resets = resets

    def reset_envs(self, seed: int | None) -> Any:
        """Begins all games anew; see `VectorEnvAdapter`."""
        self.env.reset(seed)
        observation = self.present()
        self._checks.check_reset((observation, {}), in_range=self.resets == 0)
        return observation

    def step_envs(self, action: Tree[np.ndarray]) -> Step:
        """Takes one step in each game; see `VectorEnvAdapter`."""
        return self.outcome(self.env.step(self.actions(action)))

    def actions(self, action: Tree[np.ndarray]) -> Any:
        """Returns the actions of rows `[B, ...]` as the games take them."""
        batch = map_leaves(self._cast_action, self._action_spec, action)
        if isinstance(batch, np.ndarray):
            return batch
        return [
            map_leaves(operator.itemgetter(row), batch)
            for row in range(self.num_envs)
        ]

    def outcome(self, outcome: Any) -> Step:
        """Returns the step of the players from that of the games."""
        reward, terminated, truncated, last = outcome
        if self._is_part:
            reward, terminated, truncated = (
                each[self.rows] for each in outcome[:3]
            )
        observation = self.present()
        if self.steps == 1:
            given: Any = (observation, reward, terminated, truncated, {})
            self._checks.check_step(given)
        final = None
        if last and (terminated | truncated).any():
            seen = self.env.observations
            final = self._stacked([last.get(r, seen[r]) for r in self.rows])
        return observation, reward, terminated, truncated, final

    def present(self) -> Any:
        """Returns the observations to act on, and notes who waits."""
        waiting, seen = self.env.waiting, self.env.observations
        if self._is_part:
            waiting, seen = waiting[self.rows], [seen[r] for r in self.rows]
        self.pending_reset = waiting
        return self._stacked(seen)

    def _stacked(self, rows: list[Any]) -> Any:
        """Stacks the observations of rows."""
        if self._dtype is not None:
            return np.array(rows, self._dtype)
        return map_leaves(
            lambda spec, *each: np.array(each, spec.dtype),
            self.observation_spec,
            *rows,
        )

    def _culprits(self, error: BaseException) -> np.ndarray | None:
        """Returns the rows of the game that was stepped, `[B]`."""
        count = len(self.env.envs)
        playing: np.ndarray = self.rows % count == self.env.playing
        return playing
