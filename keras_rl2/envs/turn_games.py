"""Games whose players alternate, as PettingZoo's AEC interface has them."""

import copy
import operator
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.envs.games import Games
from keras_rl2.envs.games import Outcome
from keras_rl2.envs.games import made
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.supported import observation_spec
from keras_rl2.spaces.trees import map_leaves

_LEARNER = "learner"


class TurnGames(Games):
    """G copies of a game whose players move in turn, of which one learns.

    `keras_rl2.envs.turn_based` makes them. Row g is the learner in game g, who
    has the side of one of the players. A step is the learner's move and all
    moves of the other players until it is the learner's turn again; its reward
    is the sum of the learner's rewards meanwhile. Opponents move in all games
    in which it is their turn at once. The next game begins within the step that
    ends the learner's game; games that end before the learner has moved have
    no step.

    Args:
        envs: sequence of environments with the methods of PettingZoo's
            `AECEnv`, whose players all have the same spaces.
        include: See `Games`. Defaults to `()`.
        opponent: function, agent or None. Moves for the other players: a
            function from observations `[N, ...]` to actions `[N, ...]`, or an
            object with such a method `act`. If it has a method `begin(game,
            episode_return)`, that is called as games begin, with the learner's
            return in the game before (`None` after a reset). Defaults to
            `None`: uniformly random allowed moves.
        side: str or None. The player that learns. Defaults to `None`: drawn for
            each game.

    Attributes:
        sides: tuple of str. The players of a game, P.
        moving: `[N]` ints. Rows of the players who are to move, for `opponent`:
            `p * G + g` for player p in game g.

    Raises:
        ValueError: If the players differ in their spaces, or there is no such
            side.

    Example:

    >>> import pytest
    >>> tictactoe = pytest.importorskip("pettingzoo.classic.tictactoe_v3")
    >>> games = TurnGames([tictactoe.env(), tictactoe.env()])
    >>> games.reset(seed=0)
    >>> reward, terminated, truncated, last = games.step([4, 4])
    >>> reward, terminated
    (array([0., 0.], dtype=float32), array([False, False]))
    """

    def __init__(
        self,
        envs: Sequence[Any],
        include: Sequence[str] = (),
        opponent: Any = None,
        side: str | None = None,
    ) -> None:
        super().__init__(envs, include)
        for each in self.envs:
            # Some have no attributes before, and no state could be restored.
            each.reset()
        arguments.check_choice(side=(side, (None, *self.names)))
        arguments.check_known(
            _can_move,
            "a function of observations, or an agent without memory",
            **arguments.present(opponent=opponent),
        )
        shared = self.shared_spaces(self.names)
        self.sides, self.names = self.names, (_LEARNER,)
        self.spaces = {_LEARNER: shared}
        self.opponent, self.side = opponent, side
        self.np_random = np.random.default_rng()
        self.waiting = np.zeros(len(self.envs), np.bool_)
        self.observations: list[Any] = [None for _ in self.envs]

    def reset(self, seed: int | None = None) -> None:
        """Begins all games anew; see `Games`."""
        if seed is not None:
            # The pair gives another stream than the games have.
            self.np_random = np.random.default_rng((seed, 0))
        self._learners = [self.sides[0] for _ in self.envs]
        # Of the present games; None before the learner's first move.
        self._returns: list[float | None] = [None for _ in self.envs]
        super().reset(seed)
        self._reply()

    def step(self, actions: Sequence[Any]) -> Outcome:
        """Makes the learner's move in each game, and the replies.

        Args:
            actions: Sequence of G actions.

        Returns:
            See `Games`.
        """
        count = len(self.envs)
        reward, ends = np.zeros(count, np.float32), np.zeros((2, count), bool)
        last: dict[int, Any] = {}
        self._outcome = reward, ends, last
        for game, action in enumerate(actions):
            self._returns[game] = self._returns[game] or 0.0
            self._move(game, action)
        self._reply()
        return reward, *ends, last

    def _move(self, game: int, action: Any) -> None:
        """Makes the move of the player whose turn it is."""
        self.playing = game
        self.envs[game].step(action)

    def _reply(self) -> None:
        """Makes the opponents' moves until it is the learner's turn."""
        games = list(range(len(self.envs)))
        while games := [each for each in games if self._awaits_opponent(each)]:
            replies = self._replies(games)
            for index, game in enumerate(games):
                choose = operator.itemgetter(index)
                self._move(game, map_leaves(choose, replies))

    def _awaits_opponent(self, game: int) -> bool:
        """Returns whether an opponent is to move, or else the learner.

        Players who are dead leave the game, as PettingZoo asks for. With the
        learner's death the next game begins.
        """
        self.playing, env = game, self.envs[game]
        while True:
            _, reward, *ends, _ = env.last(observe=False)
            if env.agent_selection == self._learners[game]:
                self._receive(game, reward, ends)
                if not any(ends):
                    return False
                self._begin(game)
            elif any(ends):
                env.step(None)
            else:
                return True

    def _receive(self, game: int, reward: float, ends: list[bool]) -> None:
        """Notes the learner's observation, and the outcome of its move."""
        seen = self.observations[game] = self._seen(game)
        total = self._returns[game]
        if total is not None:
            self._returns[game] = total + reward
            self._outcome[0][game] = reward
            self._outcome[1][:, game] = ends
            if any(ends):
                # A reset may write to the array that was observed.
                self._outcome[2][game] = copy.deepcopy(seen)

    def _begin(self, game: int, seed: int | None = None) -> None:
        """Begins a new game, and draws the learner's side."""
        self.playing = game
        self.envs[game].reset(seed=seed)
        drawn = self.sides[self.np_random.integers(len(self.sides))]
        self._learners[game] = self.side or drawn
        if hasattr(self.opponent, "begin"):
            self.opponent.begin(game, self._returns[game])
        self._returns[game] = None

    def _seen(self, game: int) -> Any:
        """Returns the observation of the player whose turn it is."""
        env = self.envs[game]
        name = env.agent_selection
        index, info = self.sides.index(name), env.infos[name]
        state = env.state() if "state" in self._include else None
        return self._completed(name, index, env.observe(name), info, state)

    def _replies(self, games: list[int]) -> Any:
        """Returns the opponents' actions in some games, `[N, ...]`."""
        seen = [self._seen(game) for game in games]
        space, actions = self.spaces[_LEARNER]
        if self.opponent is None:
            # So that the state of one generator is the state of all.
            actions.seed(int(self.np_random.integers(2**31)))
            if not is_masked(space):
                return [actions.sample() for _ in seen]
            masks = [np.asarray(each[ACTION_MASK], np.int8) for each in seen]
            return [actions.sample(mask) for mask in masks]
        players = [self.envs[game].agent_selection for game in games]
        numbers = np.array([*map(self.sides.index, players)])
        self.moving = numbers * len(self.envs) + games
        act = getattr(self.opponent, "act", self.opponent)
        spec = observation_spec(space)
        return act(map_leaves(_stacked, spec, *seen))


def _can_move(opponent: Any) -> bool:
    """Returns whether an opponent chooses moves from observations alone."""
    policy = getattr(opponent, "policy", None)
    acts = callable(opponent) or hasattr(opponent, "act")
    has_memory = getattr(policy, "memory", None) is not None
    return acts and not isinstance(opponent, type) and not has_memory


def _stacked(spec: ArraySpec, *rows: Any) -> np.ndarray:
    """Stacks one array of several observations, `[N, ...]`."""
    return np.array(rows, spec.dtype)


def turn_based(
    env_fn: str | Callable[[], Any],
    num_envs: int = 1,
    *,
    opponent: Any = None,
    side: str | None = None,
    include: Sequence[str] = (),
) -> TurnGames:
    """Makes games whose players alternate, of which one learns.

    Args:
        env_fn: Function that makes an environment of PettingZoo's AEC
            interface, or an environment with its methods; or its name
            `module:game`, such as `"pettingzoo.classic:connect_four_v3"`.
        num_envs: int. Number of games, G. Defaults to `1`.
        opponent: See `TurnGames`. Defaults to `None`.
        side: See `TurnGames`. Defaults to `None`.
        include: See `Games`. Defaults to `()`.

    Returns:
        `TurnGames`: for datasets, `for_env` and `evaluate` of an agent. In a
        `fit` with `keras_rl2.callbacks.League` the opponents are past selves of
        the agent.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("pettingzoo.classic.tictactoe_v3")
    >>> games = turn_based("pettingzoo.classic:tictactoe_v3", num_envs=8)
    >>> games.sides
    ('player_1', 'player_2')
    """
    return TurnGames(made(env_fn, "env", num_envs), include, opponent, side)
