"""Rounds whose environments are stepped by workers."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.policies.actors import SentActor
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.source import Source
from keras_rl2.workers.worker_collector import WorkerCollector
from keras_rl2.workers.workers import WorkerEnv


class WorkerSource(Source):
    """Environments of workers, which may collect rounds ahead."""

    runs_ahead = True
    env: WorkerEnv

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # Rounds handed over before each unfinished rollout was begun.
        self._begun_at: deque[int] = deque()

    def bind(
        self, agent: CollectingAgent, horizon: int, sequence_length: int | None
    ) -> None:
        """Lets another agent act; see `Source`."""
        super().bind(agent, horizon, sequence_length)
        self.collector.whole_episodes = agent.whole_episodes

    def _collector_kind(self) -> type[Collector]:
        """Returns the class of collectors for the agent."""
        return WorkerCollector

    def _make_actor(self) -> SentActor:
        """Makes the actor of the agent."""
        lags = self.rounds_ahead > 0 and hasattr(self.agent, "max_lag")
        policy, envs = self.agent.policy.collecting, self.env.envs_per_worker
        return SentActor(policy, envs, with_log_prob=lags)

    def collect(self, stopwatch: Stopwatch | None = None) -> Trajectory:
        """Begins rollouts as far ahead as allowed, and waits for the oldest."""
        if self.collector.needs_reset:
            self.drop()
        while self.collector.under_way <= self.rounds_ahead:
            noise = self._begin_rollout(stopwatch)
            self.collector.begin(self.actor, noise)
            self._begun_at.append(self.rounds_given)
        return next(self.rollouts_under_way())

    def rollouts_under_way(self) -> Iterator[Trajectory]:
        """Yields the rollouts that were begun, the oldest first."""
        while self._begun_at:
            trajectory: Trajectory = self.collector.finish()
            self.lag = self.rounds_given - self._begun_at.popleft()
            yield trajectory

    def drop(self, error: BaseException | None = None) -> None:
        """Discards unfinished rollouts, for example after an error."""
        self._begun_at.clear()
        if self.collector is not None:
            self.collector.drop(error)

    def abandon(self) -> None:
        """Ends the processes, which nothing else can use."""
        self.env.close()

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later rounds depend on, as plain data."""
        begun_at = [each - self.rounds_given for each in self._begun_at]
        return {**super().get_state(), "begun_at": begun_at}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`, after `bind`."""
        super().set_state(state)
        begun_at = state.get("begun_at", ())
        self._begun_at.extend(each + self.rounds_given for each in begun_at)

    def _go_on(self, simulation: dict[str, Any], observation: Any) -> None:
        """Continues the environments, for which workers need the policy."""
        self.collector.plan(self.actor.policy)
        super()._go_on(simulation, observation)
