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
from typing import Generic
from typing import TypedDict
from typing import TypeVar
from typing import cast

import numpy as np

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import check_seed
from keras_rl2.collecting.collector import MOST_RESTARTS
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.episode_collector import EpisodeCollector
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

# Longer than the episodes of nearly all tasks.
_MANY_STEPS = 100_000

AgentT = TypeVar("AgentT", bound=CollectingAgent)


class EnvironmentArguments(TypedDict, total=False):
    """Arguments of `CollectingDataset` that its subclasses hand on."""

    num_envs: int
    seed: int | None
    env_kwargs: Mapping[str, Any] | None
    wrappers: Sequence[EnvWrapper]
    on_env_error: str
    workers: Workers | None


class CollectingDataset(RoundDataset, Generic[AgentT]):
    """Base of datasets whose rounds begin with steps in environments.

    A subclass specifies which agents learn from it, `AgentT`.

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
        on_env_error: str. `"raise"`, or `"restart"` to reset the environments
            when one of them raises an error, and to discard the failed
            episode. See docs/failing_environments.md. Defaults to `"raise"`.
        workers: `Workers` or None. Processes that step the environments:
            `keras_rl2.LocalWorkers`, or `RayWorkers` on several machines.
            `env` must then be an id, or a function that makes an environment.
            Defaults to `None`: this process.
    """

    #: Steps of one round in each environment, T; set by a subclass.
    horizon: int
    #: Settings that `repr` shows.
    _shown: tuple[str, ...]
    agent: AgentT | None

    def __init__(
        self,
        env: GivenEnv,
        *,
        rounds_per_epoch: int = 1,
        num_envs: int = 1,
        seed: int | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
        on_env_error: str = "raise",
        workers: Workers | None = None,
    ) -> None:
        super().__init__(rounds_per_epoch)
        check_positive(num_envs=num_envs)
        check_seed(seed)
        check_choice(on_env_error=(on_env_error, ("raise", "restart")))
        if workers is not None and not isinstance(workers, Workers):
            raise ValueError(
                "Expected `workers` to be `LocalWorkers`, `RayWorkers` or "
                f"None. Received: workers={workers!r}"
            )
        self.on_env_error = on_env_error
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
        self._collector: Collector | None = None
        # Rounds that workers collect while there are updates of earlier ones.
        self._rounds_ahead = 0
        # Rounds handed over before each unfinished rollout was begun.
        self._begun_at: deque[int] = deque()
        self._rounds_given = 0
        # By the last `prepare`.
        self._rounds_begun = 1
        self._lag = 0
        self._whole_episodes = False
        # Of a training that is resumed in new environments.
        self._resets_before = 0
        self._has_warned = False
        # Until an episode has ended, or the user was warned that none does.
        self._steps_in_first_episodes: int | None = 0

    @property
    def updates_ready(self) -> int:
        """Updates of the rounds that were begun by the last `prepare`."""
        return self._rounds_begun * self.updates_per_round

    @contextlib.contextmanager
    def _closing_if_refused(self) -> Iterator[None]:
        """Closes the workers if the code within raises an error."""
        try:
            yield
        except BaseException:
            if isinstance(self.env, WorkerEnv):
                self.env.close()
            raise

    @abc.abstractmethod
    def settle(self, algorithm: Any) -> None:
        """Sets the arguments left open to an algorithm's defaults.

        Args:
            algorithm: `keras_rl2.Agent`, or a subclass.
        """

    @abc.abstractmethod
    def _accept(self, agent: CollectingAgent) -> AgentT:
        """Returns the agent, checking that it learns from such a dataset."""

    @abc.abstractmethod
    def _fit_to(self, agent: AgentT) -> int | None:
        """Sets all that depends on the agent; changes nothing on error.

        Returns:
            int or None. Steps after which the state of a recurrent policy is
            kept.
        """

    @abc.abstractmethod
    def _cut(self, envs: np.ndarray, discarded: np.ndarray) -> None:
        """Marks episodes that were interrupted before the next step.

        Args:
            envs: `[B]` bool. The environments that begin new episodes.
            discarded: `[B]` bool. The environments where the steps since the
                last reset are discarded.
        """

    def bind(self, agent: CollectingAgent) -> None:
        """Binds the dataset to an agent, checking that the two fit.

        Args:
            agent: `keras_rl2.Agent`. Acts and learns.

        Raises:
            ValueError: If the agent does not learn from such a dataset, or
                its networks or spaces do not fit those of the environment.
        """
        accepted = self._accept(agent)
        agent.bind(self.env.observation_space, self.env.action_space)
        if agent is self.agent:
            return
        # First, so that an agent that raises an error is not bound.
        sequence_length = self._fit_to(accepted)
        self.agent = accepted
        self._actor = None
        self._noise_state = None
        self.ready = None
        self._drop()
        kind = self._collector_kind(accepted)
        if (
            self._collector is None
            or (
                not isinstance(self.env, WorkerEnv)
                and type(self._collector) is not kind
            )
            or self._collector.horizon != self.horizon
            or self._whole_episodes != agent.whole_episodes
        ):
            action = agent.policy_head.format
            if isinstance(self.env, WorkerEnv):
                self._collector = WorkerCollector(
                    self.env, self.horizon, action, agent.whole_episodes
                )
            else:
                self._collector = kind(self.env, self.horizon, action)
            if self.on_env_error == "restart":
                self._collector.restart_seed = self._restart_seed
        self._whole_episodes = agent.whole_episodes
        self._collector.sequence_length = sequence_length

    def _collector_kind(self, agent: AgentT) -> type[Collector]:
        """Returns the class that steps the environments in this process."""
        if agent.whole_episodes:
            return EpisodeCollector
        if not hasattr(self.env.env, "graph_env") or agent.initial_state(1):
            return Collector
        # Few trainings need it, and it loads a package of its own.
        from keras_rl2.graph.graph_collector import GraphCollector

        return GraphCollector

    def _restart_seed(self, restarts: int) -> int:
        """Returns the seed of environments that are made again."""
        sequence = np.random.SeedSequence((self._env_seed, restarts))
        return int(sequence.generate_state(1)[0] >> 2)

    def collect(self) -> Trajectory | None:
        """Takes the steps of a round with the agent's current weights.

        Returns:
            `Trajectory`; None where the train function takes the steps itself.

        Raises:
            ValueError: If the dataset is not bound to an agent, or an
                observation or reward is not finite.
            RuntimeError: If the environments fail, again and again, without a
                usable step.
        """
        collector = self._bound_collector()
        if self._collects_in_graph():
            return None
        self._rounds_begun = 1
        with self._section("acting"):
            for _ in range(MOST_RESTARTS):
                try:
                    if isinstance(collector, WorkerCollector):
                        self._begin_on_workers(collector)
                        trajectory = collector.finish()
                    else:
                        trajectory = collector.collect(*self._acting())
                    self._receive(trajectory)
                except BaseException as error:
                    self._drop(error)
                    raise
                if collector.broken is None or trajectory.valid.any():
                    return trajectory
            raise RuntimeError(
                f"Expected environments of {self.env.name} that fail now and "
                "then, with `on_env_error='restart'`. Received: "
                f"{MOST_RESTARTS} rollouts without a usable step"
            )

    def _collects_in_graph(self) -> bool:
        """Whether the train function takes the steps of the next round."""
        return self._gives_inputs

    def _begin_on_workers(self, collector: WorkerCollector) -> None:
        """Begins rollouts until as many are under way as may be ahead."""
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
        noise, self._noise_state = agent.draw_noise(
            self._noise, (self.horizon, self.env.num_envs), self._noise_state
        )
        everywhere = self._begin()
        if everywhere is not None and isinstance(actor, ActorSnapshot):
            actor.begin(everywhere)
        return actor, noise

    def _begin_in_graph(self) -> Iterator[AgentT]:
        """Begins rounds in the graph, from where the environments are.

        Yields:
            The agent, for each round, as it is at its beginning but for its
            weights: what is drawn may depend on `env_steps`.
        """
        agent, collector = self._bound_agent(), self._bound_collector()
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
        """Discards unfinished rollouts, e.g. after an error."""
        self._begun_at.clear()
        if isinstance(self._collector, WorkerCollector):
            self._collector.drop(error)

    def _present_actor(self) -> ActorSnapshot | SentActor:
        """Returns the agent's actor, made on first use."""
        if self._actor is None:
            agent = self._bound_agent()
            self._actor = (
                SentActor(
                    agent,
                    self.env.envs_per_worker,
                    with_log_prob=(
                        self._rounds_ahead > 0 and hasattr(agent, "max_lag")
                    ),
                )
                if isinstance(self.env, WorkerEnv)
                else (self._bound_collector().actor_kind or ActorSnapshot)(
                    agent, self.env.num_envs
                )
            )
        return self._actor

    def _bound_agent(self) -> AgentT:
        """Returns the bound agent, or raises an error if there is none."""
        if self.agent is None:
            raise ValueError(
                f"Expected a {type(self).__name__} bound to an agent: call "
                "`agent.fit(...)`, `as_dataset(agent)` or `bind(agent)` "
                "first. Received: no agent"
            )
        return self.agent

    def _begin(self) -> np.ndarray | None:
        """Prepares the environments for a rollout.

        Returns:
            `[B]`, True for each environment, if they have begun new episodes.
        """
        collector = self._bound_collector()
        collector.env = (
            self.env
            if self.stopwatch is None
            else TimedEnv(self.env, self.stopwatch)
        )
        return self._reset() if collector.needs_reset else None

    def _reset(self) -> np.ndarray:
        """Begins new episodes; returns True for each environment, `[B]`."""
        collector = self._bound_collector()
        seed = None
        if not collector.has_begun:
            seed = self._env_seed + self._resets_before
        collector.reset(seed=seed)
        everywhere = np.ones(self.env.num_envs, np.bool_)
        self._cut(everywhere, ~everywhere)
        return everywhere

    def _receive(self, trajectory: Trajectory) -> None:
        """Passes a rollout to the agent, and counts its steps."""
        agent, collector = self._bound_agent(), self._bound_collector()
        if self._begun_at:
            rounds = self._rounds_given - self._begun_at.popleft()
            self._lag = rounds * self.updates_per_round
        # May raise an error, and must then leave no trace.
        agent.observe(trajectory)
        steps = int(np.count_nonzero(trajectory.valid))
        agent.env_steps += steps
        if collector.broken is not None:
            broken = collector.broken
            self._cut(broken.cut_before, broken.discarded_before)
        self._look_for_ends(steps)

    def _look_for_ends(self, steps: int) -> None:
        """Warns once if no episode has ended after very many steps."""
        if self._steps_in_first_episodes is None:
            return
        self._steps_in_first_episodes += steps
        if self._bound_collector().episodes.returns:
            self._steps_in_first_episodes = None
        elif self._steps_in_first_episodes >= _MANY_STEPS:
            self._warn_that_nothing_ends(self._steps_in_first_episodes)
            self._steps_in_first_episodes = None

    def _warn_that_nothing_ends(self, steps: int) -> None:
        """Warns that no episode has ended after very many steps."""
        warnings.warn(
            f"No episode of {self.env.name} has ended in {steps:,} steps, so "
            "that there is no `episode_return`. Return `truncated=True` after "
            "so many steps, or wrap it in gymnasium.wrappers.TimeLimit",
            stacklevel=2,
        )

    def _bound_collector(self) -> Collector:
        """Returns the collector, which exists once an agent is bound."""
        self._bound_agent()
        assert self._collector is not None
        return self._collector

    def logs(self) -> dict[str, float]:
        """Returns the mean of the last 100 episodes, and counts of failures."""
        collector = self._collector
        logs = {"episode_return": np.nan, "episode_length": np.nan}
        if collector is not None and collector.episodes.returns:
            episodes = collector.episodes
            logs = {
                "episode_return": float(np.mean(episodes.returns)),
                "episode_length": float(np.mean(episodes.lengths)),
            }
        if self.on_env_error == "restart":
            restarts = 0 if collector is None else collector.env_restarts
            logs["env_restarts"] = float(restarts)
        if self._rounds_ahead:
            logs["lag"] = float(self._lag)
        for key, outliers in self.outliers.items():
            logs[key] = float(outliers.count)
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
            for name in ("num_envs", *self._shown)
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
            self._warn_of_new_episodes(self._collector.not_saved)
            return None
        # Workers keep the recurrent state with their environments.
        here = isinstance(self._actor, ActorSnapshot)
        memory = cast(ActorSnapshot, self._actor).get_state() if here else None
        return {**simulation, "memory": memory}

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`, after `bind`.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. Not used. Defaults to `None`.
        """
        self._noise.bit_generator.state = state["noise"]
        self._noise_state = state["noise_state"]
        self.env.set_state(state["env"])
        if self._collector is None or not state["collector"]:
            return
        self._drop()
        self._collector.set_state(state["collector"])
        begun_at = state.get("begun_at", ())
        self._begun_at.extend(n + self._rounds_given for n in begun_at)
        # States saved by earlier releases do not contain it.
        simulation = state.get("simulation")
        if simulation is None or not self._collector.can_go_on(simulation):
            # Other episodes than those at the start of the training.
            self._resets_before = self.env.num_envs * self.env.resets
            return
        actor = self._present_actor()
        observation = state["collector"]["observation"]
        if isinstance(actor, SentActor):
            cast(WorkerCollector, self._collector).plan(actor)
        self._collector.go_on(simulation, observation)
        memory = simulation["memory"]
        if isinstance(actor, ActorSnapshot) and memory is not None:
            actor.set_state(memory)

    def _warn_of_new_episodes(self, reason: str) -> None:
        """Warns once why a resumed training begins new episodes."""
        if reason and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "A training that is resumed begins with new episodes, since "
                f"{reason}",
                stacklevel=2,
            )

    def close(self) -> None:
        """Closes the environments, and ends processes that do not close."""
        self.env.close()

    def shielded(self) -> contextlib.AbstractContextManager[None]:
        """Shields the processes of the environments from signals."""
        return self.env.shielded()
