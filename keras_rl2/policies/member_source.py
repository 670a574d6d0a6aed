"""Steps that the members of a team take together."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.basics import seeds
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import Rollout
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.distributions import policy_head
from keras_rl2.envs.games import Games
from keras_rl2.envs.games import Outcome
from keras_rl2.envs.players_env import PlayersEnv
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.actors import ActorWithoutMemory
from keras_rl2.policies.source import Source
from keras_rl2.spaces.trees import map_leaves


class MemberEnv(PlayersEnv):
    """The players of one member of a team."""

    @property
    def source_kind(self) -> type["MemberSource"]:
        """Class of the source of a dataset's steps."""
        return MemberSource


class MemberSource(Source):
    """The players of one member of a team, who step with those of the others.

    Rollouts of several members are under way at the same time. A rollout that
    nobody collects is discarded as the next one of the member begins.

    Attributes:
        members: list of `MemberSource`. All that step together.
        trajectory: `Trajectory` or None. A complete rollout that has not been
            collected.
        deterministic: bool. Whether the agent takes its most probable actions.
    """

    env: PlayersEnv
    trajectory: Trajectory | None = None
    deterministic = False
    _rollout: Rollout | None = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.members = [self]
        self._action: Any = None

    def _make_actor(self) -> Any:
        """Makes the actor of the agent."""
        if not self.deterministic:
            return super()._make_actor()
        return ActorSnapshot(self.agent.policy, self.env.num_envs, True)

    def collect(self, stopwatch: Stopwatch | None = None) -> Trajectory:
        """Returns a rollout, and has the members step until it is complete."""
        while self.trajectory is None:
            step_together(self.members)
        trajectory, self.trajectory = self.trajectory, None
        return trajectory

    def collect_by(
        self,
        actor: Actor,
        noise: StepNoise,
        stopwatch: Stopwatch | None = None,
    ) -> Trajectory:
        """Collects a rollout of another actor; see `Source`."""
        self.drop()
        self.reset_if_needed()
        self._start(actor, noise)
        return self.collect()

    def reset_if_needed(self) -> bool:
        """Begins new games where the last ones cannot go on, for all."""
        if not super().reset_if_needed():
            return False
        for each in self.members:
            if each is not self:
                each.drop()
                each.collector.begin_episodes(each.env.present())
                each._cut(np.ones(each.env.num_envs, np.bool_))
            each.actor.begin(np.ones(each.env.num_envs, np.bool_))
        return True

    def begin_rollout(self) -> None:
        """Begins a rollout of the agent, unless one is under way."""
        if self._rollout is None:
            noise: Any = self._begin_rollout(None)
            if self.deterministic:
                noise = [None] * len(noise)
            self._start(self.actor, noise)

    def _start(self, actor: Any, noise: StepNoise) -> None:
        """Begins a rollout of an actor."""
        self._discard()
        self._rollout = self.collector.rollout(actor, noise)
        self._action = next(self._rollout)

    def drop(self, error: BaseException | None = None) -> None:
        """Discards a rollout, complete or not."""
        if self._rollout is not None:
            self._rollout.close()
        self._discard()

    def _discard(self) -> None:
        """Forgets steps, so that later ones do not follow on earlier ones."""
        if self._rollout is not None or self.trajectory is not None:
            self._cut(np.ones(self.env.num_envs, np.bool_))
        self._rollout = self.trajectory = None


class FunctionActor(ActorWithoutMemory):
    """A function from observations to actions, `[B, ...]`, as an actor."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, observation: Any, noise: Any) -> Actions:
        """Chooses actions; the noise is recorded in place of a policy's own."""
        return noise, map_leaves(np.asarray, self._function(observation))


class FunctionSource(MemberSource):
    """Players that a function of observations acts for."""

    def bind(
        self, agent: Any, horizon: int, sequence_length: int | None
    ) -> None:
        """Lets a function act; see `Source`."""
        self.agent = agent
        head = policy_head(self.env.action_space).format
        self.collector = Collector(self.env, horizon, head)

    def _make_actor(self) -> FunctionActor:
        """Makes the actor of the function."""
        return FunctionActor(self.agent)

    def begin_rollout(self) -> None:
        """Begins a rollout of the function, unless one is under way."""
        if self._rollout is None:
            self._start(self.actor, np.zeros(self.collector.horizon))


def member_source(
    games: Games, name: str, player: Any, horizon: int, seed: int | None
) -> MemberSource:
    """Makes the source of a member without a dataset.

    Args:
        games: `Games`.
        name: str. The member.
        player: `keras_rl2.Agent`, or a function from observations to actions.
        horizon: int. Steps of its rollouts.
        seed: int or None. Seeds the games, if it resets them, and the noise.
    """
    first, noise = seeds.sequence(seed).spawn(2)
    is_agent = hasattr(player, "policy")
    kind = MemberSource if is_agent else FunctionSource
    source = kind(
        MemberEnv(games, games.players_of(name)),
        int(first.generate_state(1)[0] >> 2),
        noise,
        lambda envs: None,
    )
    source.learns = False
    remembers = is_agent and player.policy.initial_state(1)
    source.bind(player, horizon, horizon if remembers else None)
    return source


def step_together(members: Sequence[MemberSource]) -> Outcome:
    """Takes one step in all games; rollouts begin where none is under way.

    Args:
        members: Sequence of `MemberSource`, for all players.

    Returns:
        The result of `Games.step`.
    """
    for each in members:
        if each._rollout is None:
            each.reset_if_needed()
    games: Games = members[0].env.env
    actions: list[Any] = [None] * len(games.waiting)
    for each in members:
        each.begin_rollout()
        own = each.env.actions(each._action)
        for row, action in zip(each.env.rows, own, strict=True):
            actions[row] = action
    rollouts: list[Any] = [each._rollout for each in members]
    try:
        outcome = games.step(actions)
    except Exception as error:
        error.add_note(f"In a step of game {games.playing} of {games}.")
        for rollout in rollouts:
            # The cause may be an action of any of them that is NaN.
            try:
                rollout.throw(error)
            except Exception as found:
                if found is not error:
                    raise
        raise
    for each, rollout in zip(members, rollouts, strict=True):
        each.env.steps += 1
        try:
            each._action = rollout.send(each.env.outcome(outcome))
        except StopIteration as end:
            each._rollout, each.trajectory = None, end.value
    return outcome
