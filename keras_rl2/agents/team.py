"""Several agents that play, learn and are saved as one model."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Self
from typing import cast

import keras
import numpy as np
from keras.saving import get_registered_name

from keras_rl2.agents.agent import Agent
from keras_rl2.basics import arguments
from keras_rl2.envs.games import Games
from keras_rl2.envs.players_env import PlayersEnv
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.training.compile_arguments import GivenOptimizer
from keras_rl2.training.devices import Devices
from keras_rl2.training.rounds import Round

#: What acts for the players of a member.
Member = Agent | Callable[[Any], Any]


@keras.saving.register_keras_serializable(package="keras_rl2")
class Team(keras.Model):
    """Agents that each act for some players of the same games.

    It is compiled, trained, evaluated and saved as one `keras.Model`. Each
    member is an agent with an algorithm, networks and optimizers of its own. A
    member with `trainable=False` acts by samples of its policy and does not
    learn. A function can act for a member, too.

    Args:
        members: dict of `keras_rl2.Agent`, or functions from observations
            `[B, ...]` to actions. By the name of a group of players; see
            `players_of` of `keras_rl2.envs.Games`. A function that is to be
            saved is registered with Keras.
        players: dict or None. Names of the players of each member. Defaults to
            `None`: those of the first games.
        name: str or None. Name of the model. Defaults to `None`.

    Raises:
        ValueError: If a member is neither; when it meets games, if these have
            players of no member or of two.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("mpe2")
    >>> import keras_rl2 as rl
    >>> games = rl.envs.parallel("mpe2:simple_tag_v3", num_envs=2)
    >>> team = Team.for_env(
    ...     games, {"adversary": rl.PPO, "agent": rl.DQN}, seed=0)
    >>> steps = rl.TeamDataset(games, {"adversary": {"horizon": 32}}, seed=0)
    >>> history = team.fit(steps, epochs=1, verbose=0).history
    >>> sorted(key for key in history if key.startswith("episode_return"))
    ['episode_return/adversary', 'episode_return/agent']
    """

    #: The way of the last `fit` of making rounds.
    rounds: Round | None = None
    #: Members have optimizers of their own.
    optimizer = None
    #: The dataset of the last `fit`.
    rollouts: Any = None
    #: Functions that are called with each trajectory: those of members.
    observers: frozenset[Any] = frozenset()
    #: Members have seeds of their own.
    seed = None
    #: Whether rounds consist of whole episodes.
    whole_episodes = False

    @arguments.refusing_unknown
    def __init__(
        self,
        members: Mapping[str, Member],
        players: Mapping[str, Sequence[str]] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        for key, member in members.items():
            arguments.check_known(
                lambda each: callable(each) and not isinstance(each, type),
                "a `keras_rl2.Agent`, or a function of observations",
                **{key: member},
            )
        self.devices = Devices()
        self.members = dict(members)
        agents = self.agents()
        if len({*map(id, agents.values())}) < len(agents):
            raise ValueError(
                "Expected another agent for each member; players of one agent "
                f"are one member, see `groups`. Received: {agents}"
            )
        self.players = {k: tuple(each) for k, each in (players or {}).items()}
        self.built = all(each.built for each in self.agents().values())

    @classmethod
    def for_env(
        cls,
        games: Games,
        members: Mapping[str, type[Agent] | Member],
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        seed: int | None = None,
    ) -> Self:
        """Makes a compiled team for games.

        Args:
            games: `keras_rl2.envs.Games`.
            members: dict. Classes of agents, which are made with default
                networks; or as in the constructor.
            settings: dict or None. Further arguments of `for_env` of classes,
                dicts by the names of members. Defaults to `None`.
            seed: int or None. Seeds weights, updates and `act`: the first
                member has this seed, the second one `seed + 1`, and so on.
                Defaults to `None`.

        Returns:
            `Team`.
        """
        arguments.check_has("`Games`", "players_of", games=games)
        made: dict[str, Any] = dict(members)
        kinds = tuple(k for k, each in made.items() if isinstance(each, type))
        for key in settings or {}:
            arguments.check_choice(settings=(key, kinds))
        for index, (key, member) in enumerate(made.items()):
            if isinstance(member, type):
                env = PlayersEnv(games, games.players_of(key))
                given: dict[str, Any] = {
                    "seed": None if seed is None else seed + index
                }
                given |= (settings or {}).get(key, {})
                made[key] = cast(Any, member).for_env(env, **given)
        team = cls(made)
        team.bind(games)
        team.compile()
        return team

    def agents(self) -> dict[str, Agent]:
        """The members that are agents, by their names."""
        members = self.members.items()
        return {k: each for k, each in members if isinstance(each, Agent)}

    def learners(self) -> dict[str, Agent]:
        """The agents that `fit` trains, by their names."""
        return {k: each for k, each in self.agents().items() if each.trainable}

    @property
    def env_steps(self) -> int:
        """Steps of players that the members have learned from."""
        return sum(each.env_steps for each in self.agents().values())

    def bind(self, games: Games) -> None:
        """Binds the members to the spaces of their players.

        Args:
            games: `keras_rl2.envs.Games`.

        Raises:
            ValueError: If a name is that of no players, a player has no member
                or two, or spaces or players are not those of earlier games.
        """
        players = {name: games.players_of(name) for name in self.members}
        owned = [each for group in players.values() for each in group]
        if sorted(owned) != sorted(games.names):
            raise ValueError(
                "Expected members of which each player has one, of "
                f"{[*games.names]}. Received: members with {players}"
            )
        if self.players and dict(self.players) != players:
            raise ValueError(
                f"Expected games with the players {dict(self.players)}. "
                f"Received: those of {games}, {players}"
            )
        for name, agent in self.agents().items():
            agent.bind(*games.shared_spaces(players[name]))
        self.players, self.built = players, True

    def compile(
        self, optimizers: Mapping[str, GivenOptimizer] | None = None
    ) -> None:
        """Compiles members that are not compiled yet, each by its defaults.

        Args:
            optimizers: dict or None. `optimizer` of `compile` of members, by
                their names, which are then compiled anew. Defaults to `None`.
        """
        given, agents = dict(optimizers or {}), self.agents()
        for name in given:
            arguments.check_choice(optimizers=(name, tuple(agents)))
        for name, agent in agents.items():
            if name in given or not agent.compiled:
                agent.compile(given.get(name, "auto"))

    # They take a team for an agent.
    fit: Any = Agent.fit
    evaluate: Any = Agent.evaluate
    save: Any = Agent.save

    def check_loaded(self) -> None:
        """Raises an error for loaded weights that are not finite."""
        for agent in self.agents().values():
            agent.check_loaded()

    def begin_training(self, dataset: Any) -> None:
        """Receives the dataset that `fit` trains on; see `Agent`."""
        self.rollouts = dataset
        self.compile()
        for name, agent in self.learners().items():
            agent.begin_training(dataset.datasets[name])

    def use_rounds(self, rounds: Round) -> None:
        """Keeps the way of making rounds."""
        self.rounds = rounds

    def make_train_function(self, force: bool = False) -> None:
        """Makes the train functions of all members."""
        assert self.rounds is not None
        self.rounds.make_function()

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """Metrics of all members, which Keras resets each epoch."""
        return [m for each in self.agents().values() for m in each.metrics]

    def act(
        self, observation: Mapping[str, Any], deterministic: bool = False
    ) -> dict[str, Any]:
        """Chooses an action for each player.

        Args:
            observation: dict. Observation `[...]` of each player who acts.
            deterministic: bool. Whether to take the most probable actions
                instead of samples. Defaults to `False`.

        Returns:
            dict: the action of each of these players.

        Raises:
            ValueError: If a player has no member, or one with a memory: its
                own `act` takes the state.
        """
        members = {
            player: self.members[name]
            for name, players in self.players.items()
            for player in players
        }
        for player in observation:
            arguments.check_choice(observation=(player, tuple(members)))
        return {
            player: _act(members[player], seen, deterministic)
            for player, seen in observation.items()
        }

    def check_can_be_saved(self) -> None:
        """Raises a `ValueError` if `save` would write what cannot be loaded."""
        for name, member in self.members.items():
            if isinstance(member, Agent):
                member.check_can_be_saved()
                continue
            own = getattr(member, "__name__", None)
            if own is None or get_registered_name(member) == own:
                raise ValueError(
                    "Expected functions registered by "
                    "`keras.saving.register_keras_serializable()`, to be "
                    f"saved. Received: {name}={member!r}"
                )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            "members": {
                name: keras.saving.serialize_keras_object(each)
                for name, each in self.members.items()
            },
            "players": {k: list(each) for k, each in self.players.items()},
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls,
        config: dict[str, Any],
        custom_objects: Mapping[str, Any] | None = None,
    ) -> Self:
        """Makes a team from `get_config`."""
        members = {
            name: keras.saving.deserialize_keras_object(each, custom_objects)
            for name, each in config["members"].items()
        }
        return cls(**{**config, "members": members})

    def get_state(self) -> dict[str, Any]:
        """Returns the whole state of all members; see `Agent`."""
        members = {k: each.get_state() for k, each in self.agents().items()}
        return {"members": members}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
        """
        for name, agent in self.agents().items():
            agent.set_state(state["members"][name])


def _act(member: Any, observation: Any, deterministic: bool) -> Any:
    """Returns the action of a member, or that of a function."""
    if isinstance(member, Agent):
        if member.policy.memory is not None:
            raise ValueError(
                "Expected a member without memory; `team.members[NAME].act` "
                f"takes a state. Received: {member.name}"
            )
        return member.act(observation, deterministic=deterministic)
    batch = map_leaves(lambda array: np.asarray(array)[None], observation)
    return map_leaves(lambda array: np.asarray(array)[0], member(batch))
