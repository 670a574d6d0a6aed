"""Rounds whose environments are in the graph."""

from typing import Any

from keras_rl2.collecting.collector import Collector
from keras_rl2.graph.graph_collector import GraphActor
from keras_rl2.graph.graph_collector import GraphCollector
from keras_rl2.graph.graph_rollout import RoundsInGraph
from keras_rl2.graph.graph_rounds import GraphRounds
from keras_rl2.graph.replay_rounds import ReplayRounds
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.source import Source


class GraphSource(Source):
    """Environments of a `GraphVectorEnv`.

    Where agent and dataset allow it, whole rounds are made in the graph;
    otherwise rollouts are, except for those of recurrent policies and of whole
    episodes.
    """

    _rounds: RoundsInGraph | None = None

    def place(self, agent: CollectingAgent) -> None:
        """Moves the environments to the device of an agent."""
        with agent.devices.placement():
            self.env.env.place()

    def bind(
        self, agent: CollectingAgent, horizon: int, sequence_length: int | None
    ) -> None:
        """Lets another agent act; see `Source`."""
        self._rounds = None
        super().bind(agent, horizon, sequence_length)

    def _collector_kind(self) -> type[Collector]:
        """Returns the class of collectors for the agent."""
        kind = super()._collector_kind()
        is_plain = kind is Collector and not self.agent.policy.initial_state(1)
        return GraphCollector if is_plain else kind

    def _make_actor(self) -> Any:
        """Makes the actor of the agent."""
        if isinstance(self.collector, GraphCollector):
            return GraphActor(self.agent.policy)
        return super()._make_actor()

    def graph_rounds(self, dataset: Any) -> RoundsInGraph | None:
        """Returns the maker of rounds in the graph, None where there is none.

        Args:
            dataset: `RolloutDataset` or `ReplayDataset`, bound to the agent.
        """
        if self._rounds is None:
            kind = GraphRounds if self.agent.on_policy else ReplayRounds
            if kind.can_make(self.agent, dataset):
                self._rounds = kind(self.agent, dataset)
        return self._rounds
