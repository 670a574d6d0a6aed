"""The base of rollout and replay datasets: environments and an actor."""

import abc
import contextlib
import functools
import warnings
from collections import deque
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypedDict
from typing import cast

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import EpisodeCollector
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.envs.vector_env import TimedEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.actors import SentActor
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.workers.worker_collector import WorkerCollector
from keras_rl2.workers.workers import WorkerEnv
from keras_rl2.workers.workers import Workers


class EnvironmentArguments(TypedDict, total=False):
    """Arguments of `CollectingDataset` that its subclasses hand on."""

    num_envs: int
    seed: int | None
    env_kwargs: Mapping[str, Any] | None
    wrappers: Sequence[EnvWrapper]
    workers: Workers | None


class CollectingDataset(RoundDataset):
    """Base of datasets whose rounds begin with steps in environments.

    Args:
        env: A `gymnasium.Env`, a `gymnasium.vector.VectorEnv` of any autoreset
            mode, an EnvPool environment, an id string, or a function that
            makes a `gymnasium.Env`.
        rounds_per_epoch: int. Rounds of one Keras epoch. Defaults to `1`.
        num_envs: int. Environments to make when `env` is an id or a function.
            Defaults to `1`.
        seed: int or None. Seeds environments, acting and the rest. Defaults
            to `None`.
        env_kwargs: dict or None. Arguments of the environments that are made
            of an id, as `gymnasium.make` takes them. Defaults to `None`.
        wrappers: sequence of functions from a `gymnasium.Env` to another one,
            applied to each environment that is made of an id. Defaults to
            `()`.
        workers: `Workers` or None. Processes that step the environments:
            `keras_rl2.LocalWorkers`, or `RayWorkers` on several machines.
            `env` must then be an id, or a function that makes an environment.
            Defaults to `None`: this process.
    """

    #: Steps of one round in each environment, T; set by a subclass.
    horizon: int
    #: Settings that `repr` shows.
    _shown: str
    agent: Any

    def __init__(
        self,
        env: GivenEnv,
        *,
        rounds_per_epoch: int = 1,
        num_envs: int = 1,
        seed: int | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
        workers: Workers | None = None,
    ) -> None:
        super().__init__(rounds_per_epoch)
        arguments.check_positive(num_envs=num_envs)
        arguments.check_seed(seed)
        if workers is not None and not isinstance(workers, Workers):
            raise ValueError(
                "Expected `workers` to be `LocalWorkers`, `RayWorkers` or "
                f"None. Received: workers={workers!r}"
            )
        self.seed = seed
        env_seed, noise, own = seeds.sequence(seed).spawn(3)
        # Gymnasium adds the index of the environment to it.
        self._env_seed = int(env_seed.generate_state(1)[0] >> 2)
        make: Any = as_vector_env
        if workers is not None:
            make = functools.partial(workers.start, seed=self._env_seed)
        self.env: VectorEnvAdapter = make(
            env, num_envs, env_kwargs=env_kwargs, wrappers=wrappers
        )
        self._noise = np.random.default_rng(noise)
        self._noise_state: object = None
        self._own_seed = own
        self._actor: ActorSnapshot | SentActor | None = None
        # Made once an agent is bound.
        self._collector: Any = None
        # Rounds that workers collect while there are updates of earlier ones.
        self._rounds_ahead = 0
        # Rounds handed over before each unfinished rollout was begun.
        self._begun_at: deque[int] = deque()
        self._rounds_given = 0
        self._graph_rounds: Any = None
        self._lag = 0
        self._whole_episodes = False
        # Of a training that is resumed in new environments.
        self._resets_before = 0
        self._has_warned = False

    def _refused(self, text: str) -> ValueError:
        """Returns the error of unfit settings, after it ends the workers."""
        if isinstance(self.env, WorkerEnv):
            self.env.close()
        return ValueError(text)

    @abc.abstractmethod
    def settle(self, algorithm: Any) -> None:
        """Sets the arguments left open to the defaults of an agent's class."""

    @abc.abstractmethod
    def _fit_to(self, agent: Any) -> int | None:
        """Sets all that depends on the agent; changes nothing on error.

        Returns the steps after which the state of a recurrent policy is kept.
        """

    @abc.abstractmethod
    def _cut(self, envs: np.ndarray) -> None:
        """Marks episodes that were interrupted before the next step, `[B]`."""

    def bind(self, agent: CollectingAgent) -> None:
        """Binds the dataset to an agent, checking that the two fit."""
        agent.bind(self.env.observation_space, self.env.action_space)
        if hasattr(self.env.env, "graph_env"):
            with agent.devices.placement():
                self.env.env.place()
        if agent is self.agent:
            return
        # First, so that an agent that raises an error is not bound.
        sequence_length = self._fit_to(agent)
        self.agent = agent
        self._actor = None
        self._noise_state = None
        self._graph_rounds = None
        self.ready = None
        self._drop()
        kind: type[Collector] = Collector
        if isinstance(self.env, WorkerEnv):
            kind = WorkerCollector
        elif agent.whole_episodes:
            kind = EpisodeCollector
        elif hasattr(
            self.env.env, "graph_env"
        ) and not agent.policy.initial_state(1):
            # Few trainings need it, and it loads a package of its own.
            from keras_rl2.graph.graph_collector import GraphCollector

            kind = GraphCollector
        if (
            self._collector is None
            or type(self._collector) is not kind
            or self._collector.horizon != self.horizon
            or self._whole_episodes != agent.whole_episodes
        ):
            self._collector = kind(
                self.env, self.horizon, agent.policy.head.format
            )
        if isinstance(self._collector, WorkerCollector):
            self._collector.whole_episodes = agent.whole_episodes
        self._whole_episodes = agent.whole_episodes
        self._collector.sequence_length = sequence_length

    def collect(self) -> Trajectory | None:
        """Takes the steps of a round; see `RoundDataset`."""
        agent = self._bound_agent()
        if self._collects_in_graph():
            return None
        self._rounds_begun = 1
        with self._section("acting"), agent.devices.placement():
            try:
                if isinstance(self.env, WorkerEnv):
                    self._begin_on_workers()
                    trajectory: Trajectory = self._collector.finish()
                else:
                    trajectory = self._collector.collect(*self._acting())
                self._receive(trajectory)
            except BaseException as error:
                self._drop(error)
                raise
            return trajectory

    @abc.abstractmethod
    def _collects_in_graph(self) -> bool:
        """Whether the train function takes the steps of the next round."""

    def _begin_on_workers(self) -> None:
        """Begins rollouts until as many are under way as may be ahead."""
        collector = self._collector
        if collector.needs_reset:
            self._drop()
        while collector.under_way <= self._rounds_ahead:
            collector.begin(*self._acting())
            self._begun_at.append(self._rounds_given)

    def _acting(self) -> tuple[ActorSnapshot | SentActor, StepNoise]:
        """Returns the actor and the noise of the next rollout."""
        agent = self._bound_agent()
        agent.begin_round()
        actor = self._present_actor()
        actor.sync()
        noise, self._noise_state = agent.policy.draw_noise(
            self._noise, (self.horizon, self.env.num_envs), self._noise_state
        )
        everywhere = self._begin()
        if everywhere is not None and isinstance(actor, ActorSnapshot):
            actor.begin(everywhere)
        return actor, noise

    def graph_rounds(self) -> Any:
        """Returns the maker of rounds in the graph; see `RoundDataset`."""
        if self._graph_rounds is None and hasattr(self.env.env, "graph_env"):
            self._graph_rounds = self._make_graph_rounds(self._bound_agent())
        return self._graph_rounds

    @abc.abstractmethod
    def _make_graph_rounds(self, agent: Any) -> Any:
        """Returns the maker of rounds in the graph, or None."""

    def _begin_in_graph(self) -> Iterator[Any]:
        """Begins rounds in the graph, from where the environments are.

        It yields the agent for each round, as it is at its beginning but for
        its weights: what is drawn may depend on `env_steps`.
        """
        agent, collector = self._bound_agent(), self._collector
        agent.begin_round()
        if collector.needs_reset:
            self._reset()
        collector.leave()
        self._rounds_begun = self._rounds_of_call
        before = agent.env_steps
        try:
            for done in range(1, self._rounds_begun + 1):
                yield agent
                # Keras examines what is assigned to a model, which takes as
                # long as drawing the noise of a short round.
                steps = before + done * self.steps_per_round
                vars(agent)["env_steps"] = steps
        finally:
            agent.env_steps = before

    def _drop(self, error: BaseException | None = None) -> None:
        """Discards unfinished rollouts, for example after an error."""
        self._begun_at.clear()
        if isinstance(self._collector, WorkerCollector):
            self._collector.drop(error)

    def _present_actor(self) -> ActorSnapshot | SentActor:
        """Returns the agent's actor, made on first use."""
        if self._actor is None:
            agent = self._bound_agent()
            if isinstance(self.env, WorkerEnv):
                lags = self._rounds_ahead > 0 and hasattr(agent, "max_lag")
                self._actor = SentActor(
                    agent.policy, self.env.envs_per_worker, with_log_prob=lags
                )
            else:
                kind = self._collector.actor_kind or ActorSnapshot
                self._actor = kind(agent.policy, self.env.num_envs)
        return self._actor

    def _bound_agent(self) -> Any:
        """Returns the bound agent, or raises an error if there is none."""
        if self.agent is None:
            raise ValueError(
                f"Expected a {type(self).__name__} bound to an agent: call "
                "`agent.fit(...)`, `as_dataset(agent)` or `bind(agent)` "
                "first. Received: no agent"
            )
        return self.agent

    def _begin(self) -> np.ndarray | None:
        """Prepares the environments; returns `_reset()` or None."""
        env, stopwatch = self.env, self.stopwatch
        self._collector.env = TimedEnv(env, stopwatch) if stopwatch else env
        return self._reset() if self._collector.needs_reset else None

    def _reset(self) -> np.ndarray:
        """Begins new episodes; returns True for each environment, `[B]`."""
        seed = None
        if not self._collector.has_begun:
            seed = self._env_seed + self._resets_before
        self._collector.reset(seed=seed)
        everywhere = np.ones(self.env.num_envs, np.bool_)
        self._cut(everywhere)
        return everywhere

    def _receive(self, trajectory: Trajectory) -> None:
        """Passes a rollout to the agent, and counts its steps."""
        agent, collector = self._bound_agent(), self._collector
        if self._begun_at:
            rounds = self._rounds_given - self._begun_at.popleft()
            self._lag = rounds * self.updates_per_round
        # May raise an error, and must then leave no trace.
        agent.observe(trajectory)
        agent.env_steps += int(np.count_nonzero(trajectory.valid))
        if collector.lost is not None:
            self._cut(collector.lost)

    def logs(self) -> dict[str, float]:
        """Returns means of the last 100 episodes, outliers and exploration."""
        collector = self._collector
        logs = {"episode_return": np.nan, "episode_length": np.nan}
        if collector is not None and collector.episodes.returns:
            episodes = collector.episodes
            logs = {
                "episode_return": float(np.mean(episodes.returns)),
                "episode_length": float(np.mean(episodes.lengths)),
            }
        if self._rounds_ahead:
            logs["lag"] = float(self._lag)
        for key, outliers in self.outliers.items():
            logs[key] = float(outliers.count)
        if collector is not None:
            logs.update(self._bound_agent().exploration_logs())
        return logs

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that define a round, for display."""
        return {**super().settings(), "num_envs": self.env.num_envs}

    def __repr__(self) -> str:
        """Describes a round; `*` marks defaults of the algorithm."""
        own = self.own_settings()
        settings = self.settings()
        rounds = ", ".join(
            f"{name}={settings[name]}{'*' * (name in own)}"
            for name in ("num_envs", *self._shown.split())
            if name in settings
        )
        chosen = f"; *: defaults of {type(self.agent).__name__}" if own else ""
        return f"<{type(self).__name__} {self.env.name}: {rounds}{chosen}>"

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later rounds depend on, as plain data.

        It includes the state of environments that can be saved; see
        `keras_rl2.envs.env_state`. Others begin new episodes after
        `set_state`, with one warning.
        """
        return {
            "noise": self._noise.bit_generator.state,
            "noise_state": self._noise_state,
            "env": self.env.get_state(),
            "collector": self._collector.get_state() if self._collector else {},
            "simulation": self._simulation(),
            "begun_at": [n - self._rounds_given for n in self._begun_at],
        }

    def _simulation(self) -> dict[str, Any] | None:
        """Returns the state of the environments, if it can be saved."""
        if self._collector is None or not self.env.resets:
            return None
        simulation = self._collector.simulation()
        if simulation is None:
            return None
        if simulation["not_saved"] and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "A training that is resumed begins with new episodes, "
                f"since {simulation['not_saved']}",
                stacklevel=2,
            )
        # Workers keep the recurrent state with their environments.
        here = isinstance(self._actor, ActorSnapshot)
        memory = cast(ActorSnapshot, self._actor).get_state() if here else None
        return {**simulation, "memory": memory}

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`, after `bind`."""
        self._noise.bit_generator.state = state["noise"]
        self._noise_state = state["noise_state"]
        self.env.set_state(state["env"])
        if not self._collector or not state["collector"]:
            return
        self._drop()
        self._collector.set_state(state["collector"])
        begun_at = state["begun_at"]
        self._begun_at.extend(n + self._rounds_given for n in begun_at)
        simulation = state["simulation"]
        goes_on = simulation and self._collector.can_go_on(simulation)
        if not goes_on or simulation["not_saved"]:
            # Other episodes than those at the start of the training.
            self._resets_before = self.env.num_envs * self.env.resets
        if not goes_on:
            return
        actor = self._present_actor()
        observation = state["collector"]["observation"]
        if isinstance(actor, SentActor):
            self._collector.plan(actor.policy)
        self._collector.go_on(simulation, observation)
        memory = simulation["memory"]
        if isinstance(actor, ActorSnapshot) and memory is not None:
            actor.set_state(memory)

    def close(self) -> None:
        """Closes the environments, and ends processes that do not close."""
        self.env.close()

    def shielded(self) -> contextlib.AbstractContextManager[None]:
        """Shields the processes of the environments from signals."""
        return self.env.shielded()
