"""The base of rollout and replay datasets: environments and an actor."""

import abc
import contextlib
import functools
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypedDict

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.collecting.collector import EpisodeStatistics
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.source import Source
from keras_rl2.policies.source import StarterOfWorkers
from keras_rl2.saving.checkpoint_folder import SegmentLog


class EnvironmentArguments(TypedDict, total=False):
    """Arguments of `CollectingDataset` that its subclasses hand on."""

    num_envs: int
    seed: int | None
    env_kwargs: Mapping[str, Any] | None
    wrappers: Sequence[EnvWrapper]
    workers: StarterOfWorkers | None


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
    #: Names of the settings that the algorithm chooses; set by a subclass.
    _open_settings: list[str]
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
        workers: StarterOfWorkers | None = None,
    ) -> None:
        super().__init__(rounds_per_epoch)
        arguments.check_positive(num_envs=num_envs)
        arguments.check_seed(seed)
        arguments.check_has(
            "`LocalWorkers`, `RayWorkers` or None",
            "start",
            **arguments.present(workers=workers),
        )
        self.seed = seed
        env_seed, noise, sampling = seeds.sequence(seed).spawn(3)
        # Gymnasium adds the index of the environment to it.
        first = int(env_seed.generate_state(1)[0] >> 2)
        make: Any = as_vector_env
        if workers is not None:
            make = functools.partial(workers.start, seed=first)
        self.env: VectorEnvAdapter = make(
            env, num_envs, env_kwargs=env_kwargs, wrappers=wrappers
        )
        kind: type[Source] = self.env.source_kind or Source
        #: Where the steps come from.
        self.source = kind(self.env, first, noise, self._cut)
        self._sampling_seed = sampling
        self._samples: dict[str, Any] = {}
        self._trajectory: Trajectory | None = None

    def _refused(self, text: str) -> ValueError:
        """Returns the error of unfit settings, after it ends the workers."""
        self.source.abandon()
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
        self.source.place(agent)
        if agent is self.agent:
            return
        # This comes first: an agent that raises an error is not bound.
        sequence_length = self._fit_to(agent)
        self.agent = agent
        self.ready = None
        self.source.bind(agent, self.horizon, sequence_length)

    def collect(self) -> Trajectory:
        """Takes the steps of a round; see `RoundDataset`."""
        with self._collecting():
            trajectory = self.source.collect(self.stopwatch)
            self._receive(trajectory)
        return trajectory

    @contextlib.contextmanager
    def _collecting(self) -> Iterator[None]:
        """Collects within on the device of the agent, or discards it all."""
        # Two rollouts of pictures may not fit into memory.
        self._samples, self._trajectory = {}, None
        with self._section("acting"), self._bound_agent().devices.placement():
            try:
                yield
            except BaseException as error:
                self.source.drop(error)
                raise

    def graph_rounds(self) -> Any:
        """Returns the maker of rounds in the graph; see `RoundDataset`."""
        return self.source.graph_rounds(self)

    def _bound_agent(self) -> Any:
        """Returns the bound agent, or raises an error if there is none."""
        if self.agent is None:
            raise ValueError(
                f"Expected a {type(self).__name__} bound to an agent: call "
                "`agent.fit(...)`, `as_dataset(agent)` or `bind(agent)` "
                "first. Received: no agent"
            )
        return self.agent

    def _receive(self, trajectory: Trajectory) -> None:
        """Passes a rollout to the agent, and counts its steps."""
        agent, lost = self._bound_agent(), self.source.collector.lost
        # It may raise an error, and must then leave no trace.
        agent.observe(trajectory)
        agent.env_steps += int(np.count_nonzero(trajectory.valid))
        if lost is not None:
            self._cut(lost)

    def logs(self) -> dict[str, float]:
        """Returns means of the last 100 episodes, outliers and exploration.

        If there are several players, these are 100 episodes per name.
        """
        collector = self.source.collector
        episodes = EpisodeStatistics(0, 1, self.env.players)
        logs = (collector.episodes if collector else episodes).logs()
        if self.source.rounds_ahead:
            logs["lag"] = float(self.source.lag * self.updates_per_round)
        logs |= super().logs()
        if collector is not None:
            logs |= self._bound_agent().exploration_logs()
        return logs

    def own_settings(self) -> dict[str, Any]:
        """Returns the settings that the algorithm chose."""
        if self.agent is None:
            return {}
        return {name: getattr(self, name) for name in self._open_settings}

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that define a round, for display."""
        return {**super().settings(), "num_envs": self.env.num_envs}

    def __repr__(self) -> str:
        """Describes a round; `*` marks defaults of the algorithm."""
        defaults = self.own_settings()
        settings = self.settings()
        text = ", ".join(
            f"{name}={settings[name]}{'*' * (name in defaults)}"
            for name in ("num_envs", *self._shown.split())
            if name in settings
        )
        if defaults:
            text += f"; *: defaults of {type(self.agent).__name__}"
        return f"<{type(self).__name__} {self.env.name}: {text}>"

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later rounds depend on, as plain data.

        It includes the state of environments that can be saved; see
        `keras_rl2.envs.env_state`. Others begin new episodes after
        `set_state`, with one warning.
        """
        return self.source.get_state()

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`, after `bind`."""
        self.source.set_state(state)
