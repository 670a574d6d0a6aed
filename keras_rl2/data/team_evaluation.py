"""Evaluation of a team: games that all its members play."""

from typing import Any

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.envs.games import Games
from keras_rl2.policies.member_source import MemberSource
from keras_rl2.policies.member_source import member_source
from keras_rl2.policies.member_source import step_together

# Steps after which the weights are read again.
_HORIZON = 64


class TeamEvaluation:
    """Games to be played by `team.evaluate`.

    As `validation_data` of `fit` it logs `val_episode_return/NAME` of each
    member. Each game plays a fixed share of the episodes; each player counts as
    many in it.

    Args:
        games: `keras_rl2.envs.Games`. Preferably not the ones trained on, which
            would begin anew.
        episodes: int. Games to play. Defaults to `10`.
        deterministic: bool. Whether the mode of the policies is taken instead
            of a sample. Defaults to `True`.
        seed: int or None. Seeds games and sampling, the same for every
            evaluation; None for other episodes each time. Defaults to `None`.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("mpe2")
    >>> import keras_rl2 as rl
    >>> games = rl.envs.parallel("mpe2:simple_push_v3")
    >>> team = rl.Team.for_env(games, {
    ...     "adversary": rl.PPO, "agent": lambda x: np.zeros(len(x), int)})
    >>> sorted(TeamEvaluation(games, episodes=2, seed=0).play(team))[0::2]
    ['episode_length/adversary', 'episode_return/adversary',
     'episode_return_std/adversary']
    """

    @refusing_unknown
    def __init__(
        self,
        games: Games,
        episodes: int = 10,
        *,
        deterministic: bool = True,
        seed: int | None = None,
    ) -> None:
        arguments.check_has("`Games`", "players_of", games=games)
        arguments.check_positive(episodes=episodes)
        arguments.check_flag(deterministic=deterministic)
        arguments.check_seed(seed)
        self.games, self.episodes = games, episodes
        self.deterministic, self.seed = deterministic, seed
        # Drawn now: an evaluation within `fit` must not change the training.
        self._first_seed = seeds.or_drawn(seed)
        self._sources: dict[str, MemberSource] = {}

    def play(self, agent: Any) -> dict[str, float]:
        """Plays the episodes with the present weights of a team.

        Args:
            agent: `keras_rl2.Team`.

        Returns:
            dict: for the players of each member, mean and standard deviation of
            the episodes' returns and their mean length, such as
            `episode_return/NAME`.
        """
        agent.bind(self.games)
        for index, (name, member) in enumerate(agent.members.items()):
            self._let_act(name, member, self._first_seed + index)
        sources = [*self._sources.values()]
        for each in sources:
            each.members = sources
        found = self._run(sources)
        results: dict[str, float] = {}
        for name, source in self._sources.items():
            rows = source.env.rows
            returns, lengths = np.array([x for r in rows for x in found[r]]).T
            results[f"episode_return/{name}"] = float(np.mean(returns))
            results[f"episode_return_std/{name}"] = float(np.std(returns))
            results[f"episode_length/{name}"] = float(np.mean(lengths))
        return results

    def _let_act(self, name: str, member: Any, seed: int) -> None:
        """Has a member act, from new games and with its present weights."""
        source = self._sources.get(name)
        if source is None or source.agent is not member:
            source = member_source(self.games, name, member, _HORIZON, seed)
            source.deterministic = self.deterministic
            self._sources[name] = source
        source.drop()
        source.collector.leave()
        if self.seed is not None:
            source.noise = np.random.default_rng(seed)
        # The games of other evaluations go on.
        begun = self.seed is None and self.games.resets > 0
        source.collector.has_begun = begun

    def _run(
        self, sources: list[MemberSource]
    ) -> list[list[tuple[float, int]]]:
        """Returns the return and length of each episode, by row."""
        games = self.games
        sources[0].reset_if_needed()
        count, copies = len(games.waiting), len(games.envs)
        share = (self.episodes + np.arange(copies)) // copies
        left = np.tile(share, count // copies)
        found: list[list[tuple[float, int]]] = [[] for _ in range(count)]
        totals, lengths = np.zeros(count), np.zeros(count, np.int64)
        while left.any():
            waiting = games.waiting
            reward, terminated, truncated, _ = step_together(sources)
            totals += np.where(waiting, 0.0, reward)
            lengths += ~waiting
            for row in np.flatnonzero(terminated | truncated):
                if left[row]:
                    left[row] -= 1
                    found[row].append((totals[row], lengths[row]))
                totals[row] = lengths[row] = 0
        return found
