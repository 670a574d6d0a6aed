"""Where the steps of a dataset's rounds come from."""

import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import numpy as np

from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import EpisodeCollector
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.envs.vector_env import TimedEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.agent_protocols import CollectingAgent


class StarterOfWorkers(Protocol):
    """Settings of processes that hold environments, as `LocalWorkers`."""

    def start(
        self,
        env: GivenEnv,
        num_envs: int,
        *,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
        seed: int = 0,
    ) -> VectorEnvAdapter:
        """Starts the processes and makes the environments in them."""


class Source:
    """Environments of this process, and what acts in them.

    A dataset takes its steps from one source. Other kinds, whose environments
    are in workers or in the graph, are named by their adapter, see
    `VectorEnvAdapter.source_kind`.

    Args:
        env: `VectorEnvAdapter`. The environments, B.
        seed: int. Seed of the first environment.
        noise: `np.random.SeedSequence`. Seeds the noise of actions.
        cut: Callable. Receives the environments whose episodes are interrupted
            before the next step, `[B]` bool.

    Attributes:
        agent: The agent that acts; None until `bind`.
        collector: `Collector`. None until `bind`.
        noise: `np.random.Generator`. Draws the noise of actions.
        rounds_ahead: int. Rounds that are collected while there are updates of
            earlier ones.
        rounds_given: int. Rounds that the dataset has handed over.
        lag: int. Rounds between acting and learning, of the last rollout.
    """

    #: Whether rounds can be collected ahead.
    runs_ahead = False
    #: Whether the agent learns from the steps.
    learns = True

    def __init__(
        self,
        env: VectorEnvAdapter,
        seed: int,
        noise: np.random.SeedSequence,
        cut: Callable[[np.ndarray], None],
    ) -> None:
        self.env = env
        self.agent: Any = None
        self.collector: Any = None
        self.noise = np.random.default_rng(noise)
        self.noise_state: object = None
        self.rounds_ahead = self.rounds_given = self.lag = 0
        self._seed = seed
        self._cut = cut
        # Made when it is needed: a conversion takes time.
        self._actor: Any = None
        self._whole_episodes = False
        # Of a training that is resumed in new environments.
        self._resets_before = 0
        self._has_warned = False

    def place(self, agent: CollectingAgent) -> None:
        """Follows an agent to its device, where environments have one."""

    def bind(
        self, agent: CollectingAgent, horizon: int, sequence_length: int | None
    ) -> None:
        """Lets another agent act.

        Args:
            agent: `keras_rl2.Agent`. Bound to the spaces.
            horizon: int. Steps of a rollout in each environment, T.
            sequence_length: int or None. Steps after which the state of a
                recurrent policy is kept.
        """
        self.drop()
        self.agent = agent
        self._actor = self.noise_state = None
        kind, collector = self._collector_kind(), self.collector
        if (
            type(collector) is not kind
            or collector.horizon != horizon
            or self._whole_episodes != agent.whole_episodes
        ):
            self.collector = kind(self.env, horizon, agent.policy.head.format)
        self._whole_episodes = agent.whole_episodes
        self.collector.sequence_length = sequence_length

    def _collector_kind(self) -> type[Collector]:
        """Returns the class of collectors for the agent."""
        return EpisodeCollector if self.agent.whole_episodes else Collector

    def _make_actor(self) -> Any:
        """Makes the actor of the agent."""
        return ActorSnapshot(self.agent.policy.collecting, self.env.num_envs)

    @property
    def actor(self) -> Any:
        """The actor of the agent, made on first use."""
        if self._actor is None:
            self._actor = self._make_actor()
        return self._actor

    def collect(self, stopwatch: Stopwatch | None = None) -> Trajectory:
        """Takes the steps of a round with the agent's weights.

        Args:
            stopwatch: `Stopwatch` or None. Measures the environments' share.
                Defaults to `None`.
        """
        noise = self._begin_rollout(stopwatch)
        trajectory: Trajectory = self.collector.collect(self.actor, noise)
        return trajectory

    def collect_by(
        self,
        actor: Actor,
        noise: StepNoise,
        stopwatch: Stopwatch | None = None,
    ) -> Trajectory:
        """Takes the steps of a round by another actor, such as a random one.

        Args:
            actor: `Actor`. Chooses the actions.
            noise: See `Collector.collect`.
            stopwatch: See `collect`. Defaults to `None`.
        """
        self._begin(stopwatch)
        trajectory: Trajectory = self.collector.collect(actor, noise)
        return trajectory

    def rollouts_under_way(self) -> Iterator[Trajectory]:
        """Yields the rollouts that were begun, the oldest first."""
        return iter(())

    def _begin_rollout(self, stopwatch: Stopwatch | None) -> StepNoise:
        """Returns the noise of the next rollout, for the actor at present."""
        if self.learns:
            self.agent.begin_round()
        self.actor.sync()
        noise, self.noise_state = self.agent.policy.noise.draw(
            self.noise,
            (self.collector.horizon, self.env.num_envs),
            self.noise_state,
        )
        if self._begin(stopwatch):
            self.actor.begin(np.ones(self.env.num_envs, np.bool_))
        return np.asarray(noise)

    def _begin(self, stopwatch: Stopwatch | None) -> bool:
        """Prepares the environments; returns whether episodes begin."""
        self.collector.env = (
            TimedEnv(self.env, stopwatch) if stopwatch else self.env
        )
        return self.reset_if_needed()

    def reset_if_needed(self) -> bool:
        """Begins new episodes where the last ones cannot go on."""
        if not self.collector.needs_reset:
            return False
        begun = self.collector.has_begun
        seed = None if begun else self._seed + self._resets_before
        self.collector.reset(seed=seed)
        self._cut(np.ones(self.env.num_envs, np.bool_))
        return True

    def drop(self, error: BaseException | None = None) -> None:
        """Discards unfinished rollouts, for example after an error."""

    def abandon(self) -> None:
        """Ends what was started for a dataset that is refused."""

    def graph_rounds(self, dataset: object) -> Any:
        """Returns the maker of a dataset's rounds in the graph; here None."""

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later rounds depend on, as plain data."""
        return {
            "noise": self.noise.bit_generator.state,
            "noise_state": self.noise_state,
            "env": self.env.get_state(),
            "collector": self.collector.get_state() if self.collector else {},
            "simulation": self._simulation(),
        }

    def _simulation(self) -> dict[str, Any] | None:
        """Returns the state of the environments, if it can be saved."""
        if self.collector is None or not self.env.resets:
            return None
        simulation = self.collector.simulation()
        if simulation is None:
            return None
        if simulation["not_saved"] and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "A training that is resumed begins with new episodes, "
                f"since {simulation['not_saved']}",
                stacklevel=2,
            )
        memory = None if self._actor is None else self._actor.get_state()
        return {**simulation, "memory": memory}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`, after `bind`."""
        self.noise.bit_generator.state = state["noise"]
        self.noise_state = state["noise_state"]
        self.env.set_state(state["env"])
        if not self.collector or not state["collector"]:
            return
        self.drop()
        self.collector.set_state(state["collector"])
        simulation = state["simulation"]
        goes_on = simulation and self.collector.can_go_on(simulation)
        if not goes_on or simulation["not_saved"]:
            # Other episodes than those at the start of the training.
            self._resets_before = self.env.num_envs * self.env.resets
        if goes_on:
            self._go_on(simulation, state["collector"]["observation"])

    def _go_on(self, simulation: dict[str, Any], observation: Any) -> None:
        """Continues the environments, and the memory of the policy."""
        actor = self.actor
        self.collector.go_on(simulation, observation)
        if simulation["memory"] is not None:
            actor.set_state(simulation["memory"])
