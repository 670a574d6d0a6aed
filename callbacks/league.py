"""Self-play against past selves."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.callbacks.run import Logs
from keras_rl2.callbacks.run import rounds_of_fit
from keras_rl2.envs.turn_games import TurnGames
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.actors import weights_of
from keras_rl2.spaces.trees import map_leaves

# Elo's constants: the rating of the first self, the points of a game, and the
# difference that makes a player ten times as strong.
_FIRST, _POINTS, _TENFOLD = 1000.0, 8.0, 400.0
# Share of a game in the mean score against a past self.
_SHARE = 0.05
# The index of the present self.
_NOW = -1

#: Shares `[M]` of games against past selves, by mean scores `[M]` against them.
Sample = Callable[[np.ndarray], np.ndarray]
# Those in proportion to which half of all games are shared.
_PREFERENCES: dict[str, Sample] = {
    "uniform": np.ones_like,
    "recent": lambda score: 0.5 ** np.arange(len(score))[::-1],
    "hard": lambda score: (1.0 - score) ** 2,
}


class League(keras.callbacks.Callback):
    """Self-play: the opponents in a `fit` are the agent and its past selves.

    In a `fit` of one agent, the dataset has games of
    `keras_rl2.envs.turn_based`, with this agent for all sides. For each game an
    opponent is drawn, which acts with the same noise as the agent: in half of
    the games the agent of the last round, and in the other half a past self.
    Against the present self alone, an agent can go round in circles, and forget
    how to beat what it once beat.

    In a `fit` of a `keras_rl2.Team`, a past self is all members that learn, at
    one moment. In half of the epochs, one of these members, drawn for the
    epoch, is replaced by its own past self, and does not learn. The others
    learn against it.

    A game counts as won, drawn or lost by the sign of the agent's return.

    It adds to the logs of each epoch `elo`, the rating of the agent, and
    `league_size`, the number of past selves. A team has no rating, since the
    returns of its members say nothing about who has won: all mean scores stay
    0.5, so that `"hard"` is `"uniform"`. The first past self, the agent as
    it was when the first `fit` began, has a rating of 1000 for ever; a
    difference of 400 is an expected score of 10 to 1. A `Checkpoint` saves the
    league. After `fit` the league stays the opponent of the games.

    Args:
        every_steps: int. Environment steps from one past self to the next,
            rounded up to whole rounds; for a team, to whole epochs.
        keep: int. Most past selves. The first and the newest stay; of the
            others, the one with the least distance between its neighbours is
            dropped, so that they cover the whole training. Defaults to `20`.
        sample: str or Callable. How past selves are drawn: `"uniform"`;
            `"recent"`, each half as often as the next one; `"hard"`, by the
            square of one minus the mean score against it (prioritized
            fictitious self-play); or a function from mean scores `[M]`, from
            the oldest to the newest, to shares of all games `[M]`. The rest of
            the games is against the present self. Defaults to `"uniform"`,
            which keeps weak ones, whose moves the others no longer make.
        seed: int or None. Seeds the draws and the opponents' noise. Defaults to
            `None`.

    Attributes:
        elo: float. The rating of the agent.

    Raises:
        ValueError: If an argument is out of range; in `fit`, if the dataset has
            no games of `turn_based`, or the team fewer than two members that
            learn.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("pettingzoo.classic.tictactoe_v3")
    >>> import keras_rl2 as rl
    >>> games = rl.envs.turn_based("pettingzoo.classic:tictactoe_v3", 8)
    >>> rollouts = rl.RolloutDataset(games, horizon=32, seed=0)
    >>> agent = rl.PPO.for_env(games, seed=0)
    >>> league = League(every_steps=256, seed=0)
    >>> history = agent.fit(
    ...     rollouts, epochs=3, callbacks=[league], verbose=0).history
    >>> history["league_size"]
    [1, 2, 3]

    Reference:
        [OpenAI et al., 2019](https://arxiv.org/abs/1912.06680): opponents are
        the present self and past selves.
        [Vinyals et al., 2019](https://doi.org/10.1038/s41586-019-1724-z):
        prioritized fictitious self-play.
    """

    #: `fit` calls it before callbacks that read the logs.
    adds_logs = True

    @arguments.refusing_unknown
    def __init__(
        self,
        every_steps: int,
        keep: int = 20,
        sample: str | Sample = "uniform",
        *,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        arguments.check_positive(every_steps=every_steps)
        arguments.check_at_least(2, keep=keep)
        arguments.check_seed(seed)
        if not callable(sample):
            arguments.check_choice(sample=(sample, tuple(_PREFERENCES)))
        self.every_steps = every_steps
        self.keep = keep
        self.sample = sample
        self.elo = _FIRST
        self._generator = seeds.generator(seed)
        # The past selves, each with weights, step, elo and score.
        self._selves: list[dict[str, Any]] = []
        # Variables and present weights of those that learn, by their names.
        self._variables: dict[str, Any] = {}
        self._now: dict[str, Any] = {}
        # The index of the past self in each game, `[G]`, or of each member.
        self._opponents = np.empty(0, np.int64)
        self._games: Any = None
        self._actor: Any = None
        self._team: Any = None
        # Whether games are those of a training.
        self._counts = True

    def on_train_begin(self, logs: Logs = None) -> None:
        """Becomes the opponent in the games."""
        rounds: Any = rounds_of_fit(self)
        env = getattr(rounds, "env", None)
        games = self._games = getattr(env, "env", None)
        learners = {} if rounds is None else self.model.learners()
        if hasattr(rounds, "play_by") and len(learners) > 1:
            self._team, count = rounds, len(learners)
        elif isinstance(games, TurnGames):
            self._team, count = None, len(games.envs)
            games.opponent = self
            rows = count * len(games.sides)
            self._actor = ActorSnapshot(self.model.policy, rows)
        else:
            raise ValueError(
                "Expected a dataset of games of `keras_rl2.envs.turn_based`, "
                "or a team of two or more members that learn, with a `League`. "
                f"Received: {getattr(env, 'name', [*learners])}"
            )
        if len(self._opponents) != count:
            self._opponents = np.full(count, _NOW)
        self._counts = True
        self._variables = {
            k: each.policy.acting_variables for k, each in learners.items()
        }

    def on_train_end(self, logs: Logs = None) -> None:
        """Leaves the ratings as they are in later evaluations."""
        self._counts = False

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Takes the weights, and keeps them if due; draws for a team."""
        if batch and self._team is not None:
            return
        self._now = {k: weights_of(v) for k, v in self._variables.items()}
        step, selves = int(self.model.env_steps), self._selves
        if not selves or step >= selves[-1]["step"] + self.every_steps:
            self._keep(step)
        # The first past self is at first the present one.
        if self._team is not None and step > selves[0]["step"]:
            self._opponents[:] = _NOW
            replaced = self._generator.integers(len(self._opponents))
            self._opponents[replaced] = self._drawn()
            self._replace_members()

    def _keep(self, step: int) -> None:
        """Keeps the weights, and drops a past self if there are too many."""
        selves, now = self._selves, self._now.items()
        weights = {name: [*map(np.array, each)] for name, each in now}
        kept = {"weights": weights, "step": step}
        selves.append({**kept, "elo": self.elo, "score": 0.5})
        if len(selves) > self.keep:
            steps = np.array([each["step"] for each in selves])
            dropped = 1 + int(np.argmin(steps[2:] - steps[:-2]))
            del selves[dropped]
            # Games in progress continue against the present self.
            self._opponents[self._opponents == dropped] = _NOW
            self._opponents[self._opponents > dropped] -= 1

    def _replace_members(self) -> None:
        """Lets past selves act for members, and the others for themselves."""
        for name, index in zip(self._variables, self._opponents, strict=True):
            if index == _NOW:
                self._team.play_by(name)
                continue
            self._team.play_by(name, self.model.members[name])
            source = self._team.sources[name]
            source.noise, actor = self._generator, source.actor
            weights = self._selves[index]["weights"][name]
            # The states of critics with a memory come after those that act.
            others = actor.variables[len(weights) :]
            actor.variables = [*map(keras.Variable, weights), *others]

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Adds the rating and the number of past selves to the logs."""
        if logs is not None:
            logs["league_size"] = len(self._selves)
            if self._team is None:
                logs["elo"] = self.elo

    def begin(self, game: int, episode_return: float | None) -> None:
        """Counts the result of a game, and draws the opponent of the next.

        Args:
            game: int. Index of the game.
            episode_return: float or None. The agent's return in the game that
                ended; None if none has.
        """
        index = self._opponents[game]
        if self._counts and episode_return is not None and index != _NOW:
            self._count(index, float(1.0 + np.sign(episode_return)) / 2.0)
        self._opponents[game] = self._drawn()
        rows = np.arange(self._actor.num_envs)
        self._actor.begin(rows % len(self._opponents) == game)

    def _drawn(self) -> int:
        """Draws the index of a past self, or that of the present one."""
        drawn = self._generator.random() < np.cumsum(self._shares())
        return int(drawn.argmax()) if drawn.any() else _NOW

    def _shares(self) -> np.ndarray:
        """Returns the shares of games against past selves, `[M]`."""
        score = np.array([each["score"] for each in self._selves])
        if not isinstance(self.sample, str):
            return self.sample(score)
        # No self is left out for ever.
        preference = _PREFERENCES[self.sample](score) + 1e-3
        shares: np.ndarray = 0.5 * preference / preference.sum()
        return shares

    def _count(self, index: int, score: float) -> None:
        """Changes the ratings after a game."""
        other = self._selves[index]
        odds = 10.0 ** ((other["elo"] - self.elo) / _TENFOLD)
        points = _POINTS * (score - 1.0 / (1.0 + odds))
        self.elo += points
        if index:
            other["elo"] -= points
        other["score"] += _SHARE * (score - other["score"])

    def act(self, observation: Any) -> Any:
        """Returns the actions of the players who are to move.

        Args:
            observation: `[N, ...]`. In the order of `TurnGames.moving`.
        """
        actor, moving = self._actor, self._games.moving
        # Other rows are computed from any observation, and not used.
        index = np.zeros(actor.num_envs, np.int64)
        index[moving] = np.arange(len(moving))
        seen = map_leaves(
            lambda each: np.ascontiguousarray(each[index]), observation
        )
        noise, _ = self.model.policy.noise.draw(self._generator, index.shape)
        weights = [*(each["weights"] for each in self._selves), self._now]
        opponents = self._opponents[moving % len(self._opponents)]
        memory = actor.state, actor.begins
        kept: Any = None
        for opponent in np.unique(opponents):
            rows = moving[opponents == opponent]
            actor.set_weights(weights[opponent][""])
            actor.state, actor.begins = memory
            _, action = actor(seen, noise)
            after = action, (actor.state, actor.begins)
            kept = map_leaves(
                functools.partial(_replaced, rows),
                kept or (action, memory),
                after,
            )
        action, (actor.state, actor.begins) = kept
        return map_leaves(lambda each: each[moving], action)

    def get_state(self) -> dict[str, Any]:
        """Returns the state for a resumed `fit`."""
        return {
            "selves": self._selves,
            "elo": self.elo,
            "generator": self._generator,
            "opponents": self._opponents,
            "actor": self._actor and self._actor.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._selves, self.elo = state["selves"], state["elo"]
        self._generator = state["generator"]
        self._opponents = state["opponents"]
        if self._team is not None:
            self._replace_members()
        else:
            self._actor.set_state(state["actor"])


def _replaced(rows: np.ndarray, before: np.ndarray, after: Any) -> np.ndarray:
    """Returns an array `[B, ...]` with some rows of another one."""
    replaced = before.copy()
    replaced[rows] = after[rows]
    return replaced
