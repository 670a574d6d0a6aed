"""Evaluation of a team: games that all its members play."""

from collections.abc import Generator
from typing import Any

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.envs.games import Games
from keras_rl2.envs.games import Outcome
from keras_rl2.envs.players_env import PlayersEnv
from keras_rl2.envs.players_env import step_games
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.member_source import FunctionActor


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
        self._generator = seeds.generator(seed)
        self._actors: dict[str, Any] = {}

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
        found = self._run(agent.members)
        results: dict[str, float] = {}
        for name, players in agent.players.items():
            episodes = [found[row] for row in self.games.rows(players)]
            returns, lengths = np.concatenate(episodes).T
            results[f"episode_return/{name}"] = float(np.mean(returns))
            results[f"episode_return_std/{name}"] = float(np.std(returns))
            results[f"episode_length/{name}"] = float(np.mean(lengths))
        return results

    def _run(self, members: dict[str, Any]) -> list[list[tuple[float, int]]]:
        """Returns the return and length of each episode, by row."""
        games, generator = self.games, self._generator
        seed = self.seed
        if seed is not None:
            generator = np.random.default_rng(seed)
        elif not games.resets:
            seed = int(generator.integers(2**31))
        games.reset(seed)
        games.resets += 1
        count, copies = len(games.waiting), len(games.envs)
        share = (self.episodes + np.arange(copies)) // copies
        left = np.tile(share, count // copies)
        found: list[list[tuple[float, int]]] = [[] for _ in range(count)]
        totals, lengths = np.zeros(count), np.zeros(count, np.int64)
        acting = [
            self._acting(name, member, generator)
            for name, member in members.items()
        ]
        parts = [(rows, next(actions)) for rows, actions in acting]
        while left.any():
            waiting = games.waiting
            outcome = step_games(games, parts)
            reward, terminated, truncated, _ = outcome
            totals += np.where(waiting, 0.0, reward)
            lengths += ~waiting
            for row in np.flatnonzero(terminated | truncated):
                if left[row]:
                    left[row] -= 1
                    found[row].append((totals[row], lengths[row]))
                totals[row] = lengths[row] = 0
            parts = [(rows, each.send(outcome)) for rows, each in acting]
        return found

    def _acting(
        self, name: str, member: Any, generator: np.random.Generator
    ) -> tuple[np.ndarray, Generator[Any, Outcome, None]]:
        """Returns the rows of a member, and what acts for them."""
        env = PlayersEnv(self.games, self.games.players_of(name))
        known, actor = self._actors.get(name, (None, None))
        if known is not member:
            actor = FunctionActor(member)
            if hasattr(member, "policy"):
                actor = ActorSnapshot(
                    member.policy, env.num_envs, self.deterministic
                )
            self._actors[name] = member, actor
        actor.sync()

        def actions() -> Generator[Any, Outcome, None]:
            observation, noise = env.present(), None
            actor.begin(np.ones(env.num_envs, np.bool_))
            while True:
                if not self.deterministic and hasattr(member, "policy"):
                    noise, _ = member.noise.draw(generator, (env.num_envs,))
                waited = env.pending_reset
                _, action = actor(observation, noise)
                outcome = yield env.actions(action)
                observation, _, *ends, _ = env.outcome(outcome)
                actor.begin(env.begins(waited, np.logical_or(*ends)))

        return env.rows, actions()
