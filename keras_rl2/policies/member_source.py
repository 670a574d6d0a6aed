"""Steps that the members of a team take together."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import Rollout
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.distributions import policy_head
from keras_rl2.envs.players_env import PlayersEnv
from keras_rl2.envs.players_env import step_games
from keras_rl2.policies.actors import ActorWithoutMemory
from keras_rl2.policies.source import Source
from keras_rl2.spaces.trees import map_leaves


class MemberSource(Source):
    """The players of one member of a team, who step with those of the others.

    Rollouts of several members are under way at the same time. The one of a
    member that nobody has collected when its next one begins is discarded.

    Attributes:
        members: list of `MemberSource`. All that step together, in the order of
            the team.
        trajectory: `Trajectory` or None. The last rollout, until it is
            collected.
    """

    env: PlayersEnv
    trajectory: Trajectory | None = None
    _rollout: Rollout | None = None
    _action: Any = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.members = [self]

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
        """Begins new games, and for the other members, too."""
        if not super().reset_if_needed():
            return False
        for each in self.members:
            if each is not self:
                each.drop()
                each.collector.begin(each.env.present())
                each._cut(np.ones(each.env.num_envs, np.bool_))
            each.begin_episodes()
        return True

    def begin_episodes(self) -> None:
        """Tells the actor that all episodes begin."""
        self.actor.begin(np.ones(self.env.num_envs, np.bool_))

    def begin_rollout(self) -> None:
        """Begins a rollout of the agent."""
        noise = self._begin_rollout(None)
        self._start(self.actor, noise)

    def _start(self, actor: Any, noise: StepNoise) -> None:
        """Begins a rollout of an actor."""
        self.trajectory = None
        self._rollout = self.collector.rollout(actor, noise)
        self._action = next(self._rollout)

    def receive(self, outcome: Any) -> None:
        """Receives a step of the games, and chooses the next actions."""
        assert self._rollout is not None
        self.env.steps += 1
        try:
            self._action = self._rollout.send(self.env.outcome(outcome))
        except StopIteration as end:
            self._rollout, self.trajectory = None, end.value

    def fail(self, error: Exception) -> None:
        """Raises the error of a step, or that of an action that caused it."""
        assert self._rollout is not None
        self._rollout.throw(error)

    @property
    def is_under_way(self) -> bool:
        """Whether a rollout has begun and is not complete."""
        return self._rollout is not None

    @property
    def actions(self) -> Any:
        """The next actions of all rows, as the games take them."""
        return self.env.actions(self._action)

    def drop(self, error: BaseException | None = None) -> None:
        """Discards a rollout, complete or not."""
        if self._rollout is not None:
            self._rollout.close()
        self._rollout = self.trajectory = None


class FunctionActor(ActorWithoutMemory):
    """A function from observations to actions, `[B, ...]`, as an actor."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def sync(self) -> None:
        """Does nothing: a function has no weights."""

    def __call__(self, observation: Any, noise: Any) -> Actions:
        """Chooses actions; zeros are recorded in place of a policy's own."""
        action = self._function(observation)
        return np.zeros(()), map_leaves(np.asarray, action)


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
        """Begins a rollout of the function."""
        self._start(self.actor, np.zeros(self.collector.horizon))


class MemberEnv(PlayersEnv):
    """The players of one member of a team."""

    @property
    def source_kind(self) -> type[MemberSource]:
        """Class of the source of a dataset's steps."""
        return MemberSource


def step_together(members: Sequence[MemberSource]) -> None:
    """Takes one step in all games; rollouts begin where none is under way.

    Args:
        members: Sequence of `MemberSource`, for all players.
    """
    for each in members:
        if not each.is_under_way:
            each.reset_if_needed()
    for each in members:
        if not each.is_under_way:
            each.begin_rollout()
    games = members[0].env.env
    parts = [(each.env.rows, each.actions) for each in members]
    try:
        outcome = step_games(games, parts)
    except Exception as error:
        for each in members:
            try:
                each.fail(error)
            except Exception as found:
                if found is not error:
                    raise
        raise
    for each in members:
        each.receive(outcome)
