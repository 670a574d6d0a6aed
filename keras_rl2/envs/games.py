"""Games of several players, as PettingZoo's parallel interface has them."""

import copy
import importlib
import importlib.util
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box
from gymnasium.spaces import Dict
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiBinary

from keras_rl2.basics import arguments
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import same_space

# What an observation may include besides that of the environment.
_STATE, _PLAYER, _OBSERVATION = "state", "player", "observation"

# rewards, terminated, truncated and last observations, each by row
Outcome = tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, Any]]


class Games:
    """G copies of a game of P players, which are stepped together.

    `keras_rl2.envs.parallel` makes them. An agent trains in them as in any
    environment, if all players have the same spaces: each player of each game
    is a row of its batch. The members of a `keras_rl2.Team` have a part of the
    players each.

    Row `p * G + g` is that of player p in game g. The rows of a player who is
    out of the game wait until the next game, and are not trained on; so do
    those of a player who has not come yet. The next game begins within the step
    that ends a game.

    Args:
        envs: sequence of environments with the methods of PettingZoo's
            `ParallelEnv`.
        include: sequence of str. What each observation includes besides that of
            the environment: `"state"`, which `env.state()` returns, and
            `"player"`, the index of the player. The observation is then a dict
            with the environment's own under `"observation"`. Defaults to `()`.
        groups: dict or None. Players by the name of their group. Logs then have
            a return for each group, and members of a team are named after them.
            Defaults to `None`: each player is a group.

    Attributes:
        names: tuple of str. The players, P.
        spaces: dict. Spaces of observation and action by player.
        waiting: `[P * G]` bool. Rows that take no action in the next step.
        observations: list of `P * G` observations to act on.
        resets: int. Number of calls of `reset` by those who act in the games.

    Raises:
        ValueError: If an argument does not fit the game.

    Example:

    >>> import pytest
    >>> simple_tag = pytest.importorskip("mpe2.simple_tag_v3")
    >>> games = Games([simple_tag.parallel_env()])
    >>> games.players_of("adversary")
    ('adversary_0', 'adversary_1', 'adversary_2')
    """

    def __init__(
        self,
        envs: Sequence[Any],
        include: Sequence[str] = (),
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.envs = list(envs)
        first = self.envs[0]
        self.metadata = getattr(first, "metadata", {})
        self.render_mode = getattr(first, "render_mode", None)
        self.names: tuple[str, ...] = tuple(first.possible_agents)
        self._include = (include,) if isinstance(include, str) else (*include,)
        for each in self._include:
            arguments.check_choice(include=(each, (_STATE, _PLAYER)))
        self.groups = {
            key: tuple(players) for key, players in (groups or {}).items()
        }
        grouped = [each for players in self.groups.values() for each in players]
        for name in grouped:
            arguments.check_choice(groups=(name, self.names))
        clash = set(self.groups) & (set(self.names) - set(grouped))
        if len(set(grouped)) < len(grouped) or clash:
            raise ValueError(
                "Expected `groups` with each player in one group at most, and "
                "no group with the name of a player in none. "
                f"Received: groups={groups}"
            )
        # Environments whose players alternate return nothing.
        _, infos = first.reset() or ({}, first.infos)
        masks = {
            name: np.ones_like(info[ACTION_MASK], np.int8)
            for name, info in infos.items()
            if ACTION_MASK in info
        }
        # Players who come later are taken for those who act like them.
        self._masks = {
            name: masks[other]
            for name in self.names
            for other in masks
            if name == other
            or (
                name not in infos
                and first.action_space(name) == first.action_space(other)
            )
        }
        self.spaces = {name: self._spaces_of(name) for name in self.names}
        size = len(self.envs)
        # Of each game, the rows by player.
        self._rows = [
            {name: p * size + game for p, name in enumerate(self.names)}
            for game in range(size)
        ]
        self._those_who_play = [_without_black_death(env) for env in self.envs]
        self.waiting = np.ones(len(self.names) * size, np.bool_)
        self.observations: list[Any] = [None] * len(self.waiting)
        self.resets = 0
        #: Index of the game that is stepped or reset, for messages.
        self.playing = 0

    @property
    def unwrapped(self) -> "Games":
        """The games themselves, as environments have it."""
        return self

    def __str__(self) -> str:
        """Returns the name of the game."""
        env = self.envs[0]
        # What Python itself says is another in each process.
        kinds = type(env).__mro__[:-1]
        has_name = any("__str__" in vars(kind) for kind in kinds)
        return str(env) if has_name else type(env).__name__

    def players_of(self, group: str) -> tuple[str, ...]:
        """Returns the players of a group, or of a name.

        Args:
            group: str. Name of a group, of a player, or of several whose names
                only add `_0`, `_1` and so on, as PettingZoo's do.
        """
        if group in self.groups:
            return self.groups[group]
        found = tuple(
            name
            for name in self.names
            if group in (name, name.rpartition("_")[0])
        )
        if not found:
            raise ValueError(
                f"Expected a group or a player of {self}, of "
                f"{[*self.groups, *self.names]}. Received: {group!r}"
            )
        return found

    def group_of(self, name: str) -> str:
        """Returns the group of a player: itself, if it is in none."""
        for group, players in self.groups.items():
            if name in players:
                return group
        return name

    def rows(self, players: Sequence[str]) -> np.ndarray:
        """Returns the rows of some players, `[len(players) * G]` ints."""
        games = np.arange(len(self.envs))
        starts = [self.names.index(name) * len(games) for name in players]
        return np.add.outer(starts, games).ravel()

    def reset(self, seed: int | None = None) -> None:
        """Begins all games anew.

        Args:
            seed: int. Game g is seeded with `seed + g`. Defaults to `None`: the
                random states continue.
        """
        for game in range(len(self.envs)):
            self._begin(game, None if seed is None else seed + game)

    def step(self, actions: Sequence[Any]) -> Outcome:
        """Takes one step in each game.

        Args:
            actions: Sequence of an action for each row. Those of rows that wait
                are not passed on.

        Returns:
            A tuple `(reward, terminated, truncated, last)`: float32, bool and
            bool of each row, and the last observations of the episodes that
            ended, by row. The next ones are `observations`.
        """
        count, waiting = len(self.waiting), self.waiting.tolist()
        reward = np.zeros(count, np.float32)
        terminated, truncated = np.zeros((2, count), np.bool_)
        last: dict[int, Any] = {}
        for game, env in enumerate(self.envs):
            self.playing = game
            rows = self._rows[game]
            given = {name: actions[rows[name]] for name in env.agents}
            observations, rewards, over, cut, infos = env.step(given)
            self._observe(game, observations, infos)
            living = self._those_who_play[game].agents
            for name in given:
                row = rows[name]
                if waiting[row]:
                    continue
                reward[row] = rewards[name]
                if over[name] or cut[name]:
                    terminated[row], truncated[row] = over[name], cut[name]
                    living = [each for each in living if each != name]
                elif name not in living:
                    # It has left the game, and no flag says so.
                    (terminated if living else truncated)[row] = True
                else:
                    continue
                # A copy: a reset may write to the array that a step returned.
                last[row] = copy.deepcopy(self.observations[row])
            if not living:
                self._begin(game)
            elif last or len(living) != len(given):
                self._wait(game, living)
        return reward, terminated, truncated, last

    def render(self) -> Any:
        """Returns the picture of the first game."""
        return self.envs[0].render()

    def close(self) -> None:
        """Closes all games."""
        for env in self.envs:
            env.close()

    def _begin(self, game: int, seed: int | None = None) -> None:
        """Begins a new game."""
        self.playing = game
        observations, infos = self.envs[game].reset(seed=seed)
        for name, row in self._rows[game].items():
            if name not in observations:
                self.observations[row] = _nothing(self.spaces[name][0])
        self._observe(game, observations, infos)
        self._wait(game, self._those_who_play[game].agents)

    def _wait(self, game: int, living: Sequence[str]) -> None:
        """Lets the rows of all players wait who are not in the game."""
        # It is replaced, as adapters hand it out.
        self.waiting = self.waiting.copy()
        for name, row in self._rows[game].items():
            self.waiting[row] = name not in living

    def _observe(
        self,
        game: int,
        observations: Mapping[str, Any],
        infos: Mapping[str, Any],
    ) -> None:
        """Keeps the observations of the players who have one."""
        rows = self._rows[game]
        state = self.envs[game].state() if _STATE in self._include else None
        for name, seen in observations.items():
            info = infos.get(name, {})
            index = self.names.index(name)
            self.observations[rows[name]] = self._completed(
                name, index, seen, info, state
            )

    def _completed(
        self, name: str, index: int, seen: Any, info: Any, state: Any
    ) -> Any:
        """Returns a player's observation with all that is included."""
        if self._include or name in self._masks:
            is_dict = isinstance(seen, Mapping)
            seen = dict(seen) if is_dict else {_OBSERVATION: seen}
        if name in self._masks:
            seen[ACTION_MASK] = info.get(ACTION_MASK, self._masks[name])
        if _STATE in self._include:
            seen[_STATE] = state
        if _PLAYER in self._include:
            seen[_PLAYER] = index
        return seen

    def _spaces_of(self, name: str) -> tuple[Space[Any], Space[Any]]:
        """Returns the spaces of a player, with all that is included."""
        first = self.envs[0]
        seen: Space[Any] = first.observation_space(name)
        further: dict[str, Space[Any]] = {}
        if name in self._masks:
            further[ACTION_MASK] = MultiBinary(self._masks[name].shape)
        if _STATE in self._include:
            further[_STATE] = _state_space(first)
        if _PLAYER in self._include:
            further[_PLAYER] = Discrete(len(self.names))
        if further:
            own = (
                seen.spaces if isinstance(seen, Dict) else {_OBSERVATION: seen}
            )
            seen = Dict({**own, **further})
        return seen, first.action_space(name)

    def shared_spaces(
        self, players: Sequence[str]
    ) -> tuple[Space[Any], Space[Any]]:
        """Returns the spaces of some players, which must be the same."""
        observation, action = self.spaces[players[0]]
        for name in players:
            other = self.spaces[name]
            if not (
                same_space(observation, other[0])
                and same_space(action, other[1])
            ):
                raise ValueError(
                    "Expected the same spaces of all players that share a "
                    "policy; players with other ones are members of a "
                    f"`keras_rl2.Team`. Received: {players[0]} with "
                    f"{observation} and {action}, {name} with {other[0]} and "
                    f"{other[1]}"
                )
        return observation, action


def parallel(
    env_fn: str | Callable[[], Any],
    num_envs: int = 1,
    *,
    include: Sequence[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Games:
    """Makes games of several players who act at the same time.

    Args:
        env_fn: Function that makes an environment of PettingZoo's parallel
            interface, or an environment with its methods; or its name
            `module:game`, such as `"mpe2:simple_spread_v3"`.
        num_envs: int. Number of games, G. Defaults to `1`.
        include: See `Games`. Defaults to `()`.
        groups: See `Games`. Defaults to `None`.

    Returns:
        `Games`: for datasets, `for_env` and `evaluate` of an agent, and for a
        `keras_rl2.Team`.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("mpe2")
    >>> games = parallel("mpe2:simple_spread_v3", num_envs=8)
    >>> games.names
    ('agent_0', 'agent_1', 'agent_2')
    """
    return Games(made(env_fn, "parallel_env", num_envs), include, groups)


def made(
    env_fn: str | Callable[[], Any], function: str, num_envs: int
) -> list[Any]:
    """Makes environments by a function, or by that of a name `module:game`.

    Args:
        env_fn: str or Callable.
        function: str. Name of the function in PettingZoo's module of the game.
        num_envs: int. Number of environments.
    """
    arguments.check_positive(num_envs=num_envs)
    make = maker(env_fn, function) if isinstance(env_fn, str) else env_fn
    arguments.check_known(callable, "a function that makes it", env_fn=make)
    envs = [make() for _ in range(num_envs)]
    kinds = {"env": ("AEC", True), "parallel_env": ("parallel", False)}
    kind, alternates = kinds[function]
    is_game = hasattr(envs[0], "possible_agents")
    if not is_game or hasattr(envs[0], "last") != alternates:
        raise ValueError(
            f"Expected an environment of PettingZoo's {kind} interface: "
            "`keras_rl2.envs.parallel` takes the parallel one, `turn_based` "
            f"the AEC one. Received: {envs[0]}"
        )
    return envs


def is_game(name: str) -> bool:
    """Returns whether a name `module:game` means games of several players."""
    module, _, game = name.rpartition(":")
    return (
        bool(module)
        and hasattr(importlib.import_module(module), "__path__")
        and importlib.util.find_spec(f"{module}.{game}") is not None
    )


def maker(name: str, function: str) -> Callable[..., Any]:
    """Returns the function of PettingZoo that a name `module:game` means."""
    try:
        module = importlib.import_module(name.replace(":", "."))
    except ModuleNotFoundError as error:
        error.add_note(
            "Expected the name `module:game` of a game that is installed: "
            f"`pip install 'keras-rl2-fit[multi]'`. Received: {name}"
        )
        raise
    if not hasattr(module, function):
        raise ValueError(
            f"Expected a game with the function `{function}`. Received: {name}"
        )
    return getattr(module, function)


def _without_black_death(env: Any) -> Any:
    """Returns the layer of an environment whose `agents` are in the game."""
    layer = env
    while layer is not layer.unwrapped and hasattr(layer, "env"):
        # SuperSuit's wrapper lists the dead, too.
        if type(layer).__name__ == "black_death_par":
            return layer.env
        layer = layer.env
    return env


def _state_space(env: Any) -> Space[Any]:
    """Returns the space of `env.state()`, of an environment after a reset."""
    known: Space[Any] | None = getattr(env, "state_space", None)
    if known is not None:
        return known
    state = np.asarray(env.state())
    return Box(-np.inf, np.inf, state.shape, np.float32)


def _nothing(space: Space[Any]) -> Any:
    """Returns zeros in place of an observation, in its form."""
    if isinstance(space, Dict):
        return {key: _nothing(each) for key, each in space.items()}
    return np.zeros(space.shape or (), space.dtype)
