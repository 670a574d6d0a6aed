"""The data of a team: a dataset for each member, from the same games."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.data.replay import ReplayDataset
from keras_rl2.data.rollouts import RolloutDataset
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import Samples
from keras_rl2.data.round_dataset import largest_divisor
from keras_rl2.envs.games import Games
from keras_rl2.policies.member_source import FunctionSource
from keras_rl2.policies.member_source import MemberEnv
from keras_rl2.policies.member_source import MemberSource
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
        arguments.check_has("a `keras_rl2.Team`", "learners", agent=agent)
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
        new = {k: each for k, each in learners.items() if k not in self.datasets}
        made = {name: self._make(name, each) for name, each in new.items()}
        for name, member in new.items():
            if member.whole_episodes:
                raise ValueError(
                    "Expected members of a team that learn from steps. "
                    f"Received: {name!r}, a {type(member).__name__}, whose "
                    "rounds are whole episodes"
                )
            made[name].settle(member)
        horizons = [each.horizon for each in (self.datasets | made).values()]
        for name, member in new.items():
            horizon = made[name].horizon
            if max(horizons) % horizon:
                fitting = largest_divisor(max(horizons), horizon)
                made[name] = self._make(name, member, fitting)
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
        return kind(env, **{**settings, **self._given.get(name, {})})

    def _seed_of(self, name: str) -> int | None:
        """Returns the seed of the steps of a member."""
        if self.seed is None:
            return None
        return self.seed + self._names.index(name)

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
        known = self._others.get(name)
        if player is None:
            self._others.pop(name, None)
        elif known is None or known.agent is not player:
            env = MemberEnv(self.games, self.games.players_of(name))
            first, noise, _ = seeds.sequence(self._seed_of(name)).spawn(3)
            seed = int(first.generate_state(1)[0] >> 2)
            is_agent = hasattr(player, "policy")
            kind = MemberSource if is_agent else FunctionSource
            source = kind(env, seed, noise, lambda envs: None)
            memory = is_agent and player.policy.initial_state(1)
            source.bind(player, self.horizon, self.horizon if memory else None)
            # Those who have come later do not begin the same games once more.
            source.collector.has_begun = self.games.resets > 0
            self._others[name] = source

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

    def collect(self) -> None:
        """Raises an error: members collect, each for itself."""
        raise NotImplementedError(
            "Expected `fit` of a `keras_rl2.Team`, or one of `datasets`. "
            "Received: `collect` of all of them"
        )

    def prepare(self, trajectory: Any) -> Samples:
        """Raises an error, as `collect`."""
        return self.collect()

    def _element_spec(self) -> dict[str, Any]:
        """Raises an error, as `collect`."""
        return self.collect()

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
            for key in ("returns", "lengths"):
                found = getattr(episodes, key)
                mean = float(np.mean(found)) if found else np.nan
                logs[f"episode_{key[:-1]}/{name}"] = mean
        return logs

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that define the rounds of all, for display."""
        return {
            f"{name}.{key}": value
            for name, each in self.learning.items()
            for key, value in each.settings().items()
        }

    def close(self) -> None:
        """Closes the games."""
        self.games.close()

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later rounds of all members depend on.

        Args:
            log: `SegmentLog` or None. See `ReplayDataset`. Defaults to `None`.
        """
        return {
            "datasets": {
                name: each.get_state(log) for name, each in self.datasets.items()
            },
            "others": {
                name: each.get_state() for name, each in self._others.items()
            },
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
        for name, each in state["others"].items():
            self._others[name].set_state(each)
