"""The data of a team: a dataset for each member, from the same games."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import NoReturn

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.data.replay import ReplayDataset
from keras_rl2.data.rollouts import RolloutDataset
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import largest_divisor
from keras_rl2.envs.games import Games
from keras_rl2.policies.member_source import MemberEnv
from keras_rl2.policies.member_source import member_source
from keras_rl2.policies.member_source import step_together
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.updates.updater import nothing_to_train


class TeamDataset(RoundDataset):
    """Steps in games of several players, from which a team learns.

    Each member of the team that learns has a dataset of its own with the steps
    of its players: a `RolloutDataset`, or a `ReplayDataset` if it learns from
    past transitions. All members step together. Each makes its updates when the
    steps of its round are complete, before anybody steps on.

    A round of the team is the longest round of a member, a multiple of the
    rounds of the others. Members whose `settings` leave their length open have
    one that fits. The random steps that a `ReplayDataset` begins with come
    before the first round; the other members act in them, and do not learn.

    Args:
        games: `keras_rl2.envs.Games`.
        settings: dict or None. Arguments of the dataset of each member, dicts
            by its name. Defaults to `None`.
        seed: int or None. Seeds games, acting and the rest: the dataset of the
            first member has this seed, that of the second one `seed + 1`, and
            so on. Defaults to `None`.

    Attributes:
        datasets: dict. The datasets of the members that learn or have learned,
            by their names.

    Raises:
        ValueError: When it meets a team, if the rounds of the members do not
            fit each other, or settings are those of no member.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("mpe2")
    >>> import keras_rl2 as rl
    >>> games = rl.envs.parallel("mpe2:simple_tag_v3", num_envs=2)
    >>> steps = TeamDataset(games, {"adversary": {"horizon": 64}}, seed=0)
    >>> steps.bind(rl.Team.for_env(games, {
    ...     "adversary": rl.PPO, "agent": rl.DQN}, seed=0))
    >>> {name: each.horizon for name, each in steps.datasets.items()}
    {'adversary': 64, 'agent': 32}
    """

    agent: Any
    #: Steps of the longest round of a member.
    horizon = 0
    # Its dataset.
    _longest: Any = None

    @refusing_unknown
    def __init__(
        self,
        games: Games,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        super().__init__(rounds_per_epoch=1)
        arguments.check_has("`Games`", "players_of", games=games)
        arguments.check_seed(seed)
        self.games, self.seed = games, seed
        self.updates_per_round = 1
        self.datasets: dict[str, Any] = {}
        self._given = dict(settings or {})
        self._names: tuple[str, ...] = ()
        self._others: dict[str, Any] = {}

    @property
    def learning(self) -> dict[str, Any]:
        """Datasets of the members that learn at present, by their names."""
        others = self._others
        return {k: d for k, d in self.datasets.items() if k not in others}

    @property
    def sources(self) -> dict[str, Any]:
        """What acts for each member at present, `MemberSource` by its name."""
        own = {name: each.source for name, each in self.datasets.items()}
        return {name: (own | self._others)[name] for name in self._names}

    def bind(self, agent: Any) -> None:
        """Binds the dataset to a team, checking that the two fit.

        Args:
            agent: `keras_rl2.Team`. Acts and learns.
        """
        agent.bind(self.games)
        self._names = tuple(agent.members)
        for name in self._given:
            arguments.check_choice(settings=(name, self._names))
        learners = agent.learners()
        if not learners:
            raise nothing_to_train(agent.name)
        datasets = self.datasets | self._new_datasets(learners)
        for name, member in learners.items():
            datasets[name].bind(member)
        learning = [datasets[name] for name in learners]
        longest = max(learning, key=lambda each: each.horizon)
        if any(longest.horizon % each.horizon for each in learning):
            lengths = {name: datasets[name].horizon for name in learners}
            raise ValueError(
                "Expected the longest round of a member to be a multiple of "
                "those of the others, in steps of the games: set `horizon`, "
                "or `steps_per_round` of a replay, in `settings`. "
                f"Received: rounds of {lengths} steps"
            )
        self.agent, self.datasets = agent, datasets
        self._longest, self.horizon = longest, longest.horizon
        self.rounds_per_epoch = longest.rounds_per_epoch
        rows = sum(each.env.num_envs for each in learning)
        self.steps_per_round = self.horizon * rows
        for name, member in agent.members.items():
            self.play_by(name, None if name in learners else member)

    def _new_datasets(self, learners: Mapping[str, Any]) -> dict[str, Any]:
        """Makes the datasets of members without one, with fitting rounds."""
        made: dict[str, Any] = {}
        for name, member in learners.items():
            if member.whole_episodes:
                raise ValueError(
                    "Expected members of a team that learn from steps. "
                    f"Received: {name}={type(member).__name__}, which learns "
                    "from whole episodes"
                )
            if name not in self.datasets:
                made[name] = self._make(name, member)
        horizons = {k: d.horizon for k, d in (self.datasets | made).items()}
        longest = max(horizons.values())
        for name in made:
            if longest % horizons[name]:
                fitting = largest_divisor(longest, horizons[name])
                made[name] = self._make(name, learners[name], fitting)
        return made

    def _make(self, name: str, member: Any, horizon: int | None = None) -> Any:
        """Makes the dataset of a member, with a horizon unless it is given."""
        env = MemberEnv(self.games, self.games.players_of(name))
        settings: dict[str, Any] = {"seed": self._seed_of(name)}
        if horizon is not None and member.on_policy:
            settings["horizon"] = horizon
        elif horizon is not None:
            settings["steps_per_round"] = horizon * env.num_envs
        kind: Any = RolloutDataset if member.on_policy else ReplayDataset
        made = kind(env, **{**settings, **self._given.get(name, {})})
        made.settle(member)
        return made

    def _seed_of(self, name: str) -> int | None:
        """Returns the seed of the steps of a member."""
        return (
            None if self.seed is None else self.seed + self._names.index(name)
        )

    def play_by(self, name: str, player: Any = None) -> None:
        """Lets another act for the players of a member, who do not learn then.

        To be called between rounds, for example by a callback as an epoch
        begins. All games begin anew.

        Args:
            name: str. The member.
            player: `keras_rl2.Agent`, or a function from observations
                `[B, ...]` to actions. Defaults to `None`: the member itself,
                who learns.
        """
        known = self._others.pop(name, None)
        if player is None:
            return
        horizon = known and known.collector.horizon
        if known is None or (known.agent, horizon) != (player, self.horizon):
            known = member_source(
                *(self.games, name, player, self.horizon, self._seed_of(name))
            )
            # Whoever comes later does not begin the same games once more.
            known.collector.has_begun = self.games.resets > 0
        self._others[name] = known

    def play(self) -> Iterator[str]:
        """Takes the steps of a round.

        Yields:
            str. A member whose own round is complete: its updates come before
            the next step.
        """
        learning, sources = self.learning, [*self.sources.values()]
        for each in sources:
            each.members = sources
        for dataset in learning.values():
            if missing := dataset.steps_before_first_round:
                dataset.fill(missing)
        for each in sources:
            each.drop()
        for _ in range(self.horizon):
            step_together(sources)
            for name, dataset in learning.items():
                if dataset.source.trajectory is not None:
                    yield name

    def begin(self) -> None:
        """Discards what an interrupted `fit` has left."""
        super().begin()
        for name, source in self.sources.items():
            source.drop()
            if name in self.datasets:
                self.datasets[name].begin()

    def collect(self) -> NoReturn:
        """Raises an error: each member has data of its own."""
        raise NotImplementedError(
            "Expected `fit` of a `keras_rl2.Team`, or one of `datasets`. "
            "Received: minibatches of all members"
        )

    def prepare(self, trajectory: Any) -> NoReturn:
        """Raises an error; see `collect`."""
        self.collect()

    def _element_spec(self) -> NoReturn:
        """Raises an error; see `collect`."""
        self.collect()

    @property
    def steps_before_first_round(self) -> int:
        """Remaining random steps of all members."""
        learning = self.learning.values()
        return sum(each.steps_before_first_round for each in learning)

    def rounds_of_epoch(self, needed: int) -> int:
        """Returns the rounds of an epoch, in a `fit` of `needed` rounds."""
        rounds: int = self._longest.rounds_of_epoch(needed)
        return rounds

    def logs(self) -> dict[str, float]:
        """Returns the metrics of all members, and the return of each."""
        logs = {
            f"{name}/{key}": value
            for name, each in self.learning.items()
            for key, value in each.logs().items()
            if not key.startswith("episode_")
        }
        for name, source in self.sources.items():
            episodes = source.collector.episodes
            for key in ("return", "length"):
                found = getattr(episodes, f"{key}s") or [np.nan]
                logs[f"episode_{key}/{name}"] = float(np.mean(found))
        return logs

    def close(self) -> None:
        """Closes the games."""
        self.games.close()

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later rounds of all members depend on.

        Args:
            log: `SegmentLog` or None. See `ReplayDataset`. Defaults to `None`.
        """
        datasets, others = self.datasets.items(), self._others.items()
        members = self.agent.members
        return {
            "datasets": {name: each.get_state(log) for name, each in datasets},
            "others": {name: each.get_state() for name, each in others},
            "themselves": [k for k, each in others if each.agent is members[k]],
        }

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state from `get_state`, if bound to a team.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. See `ReplayDataset`. Defaults to `None`.
        """
        for name, each in state["datasets"].items():
            self.datasets[name].set_state(each, log)
        for name in state["themselves"]:
            self.play_by(name, self.agent.members[name])
        for name, each in state["others"].items():
            self._others[name].set_state(each)
