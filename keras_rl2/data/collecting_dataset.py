"""What rollout and replay datasets share: environments and an actor."""

import abc
import logging
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Generic
from typing import TypeVar

import numpy as np

from keras_rl2.data.actors import Actor
from keras_rl2.data.actors import ActorSnapshot
from keras_rl2.data.agent_protocols import CollectingAgent
from keras_rl2.data.collector import Collector
from keras_rl2.data.collector import StepNoise
from keras_rl2.data.episode_collector import EpisodeCollector
from keras_rl2.data.ring_log import StateLog
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.trajectory import Trajectory
from keras_rl2.envs import EnvWrapper
from keras_rl2.envs import TimedEnv
from keras_rl2.envs import as_vector_env
from keras_rl2.envs import env_state
from keras_rl2.stopwatch import in_section

logger = logging.getLogger(__name__)

AgentT = TypeVar("AgentT", bound=CollectingAgent)


class CollectingDataset(RoundDataset, Generic[AgentT]):
    """Base of datasets whose rounds begin with steps in environments.

    A subclass says which agents learn from it, `AgentT`.

    Args:
        env: Environment, vector environment or id string.
        rounds_per_epoch: int. Rounds of one Keras epoch.
        num_envs: int. Environments to make when `env` is an id.
        seed: int or None. Seeds environments, acting and the rest.
        env_kwargs: dict or None. Arguments of an environment given by its id.
            Defaults to `None`.
        wrappers: sequence of functions from an environment to another one,
            for an environment given by its id. Defaults to `()`.
        step_timeout: float or None. Seconds that a step may take. Defaults to
            `None`: as long as it likes.
        on_env_error: str. `"raise"` or `"restart"`. Defaults to `"raise"`.
    """

    #: Steps of one round in each environment, T; set by a subclass.
    horizon: int
    agent: AgentT | None

    def __init__(
        self,
        env: Any,
        *,
        rounds_per_epoch: int,
        num_envs: int,
        seed: int | None,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
        step_timeout: float | None = None,
        on_env_error: str = "raise",
    ) -> None:
        super().__init__(rounds_per_epoch)
        if on_env_error not in ("raise", "restart"):
            raise ValueError(
                "Expected `on_env_error` to be 'raise' or 'restart'. "
                f"Received: on_env_error={on_env_error!r}"
            )
        self.env = as_vector_env(
            env, num_envs, env_kwargs=env_kwargs, wrappers=wrappers
        )
        if step_timeout is not None:
            self.env.limit_steps(step_timeout)
        self.step_timeout = step_timeout
        self.on_env_error = on_env_error
        self.seed = seed
        env_seed, noise, own = np.random.SeedSequence(seed).spawn(3)
        # Gymnasium adds the index of the environment to it.
        self._env_seed = int(env_seed.generate_state(1)[0] >> 2)
        self._noise = np.random.default_rng(noise)
        self._noise_state: object = None
        self._own_seed = own
        self._actor: ActorSnapshot | None = None
        self._collector: Collector | None = None
        self._env_repeats: bool | None = None
        # Of a training that goes on in environments that are new.
        self._resets_before = 0

    @abc.abstractmethod
    def _accept(self, agent: CollectingAgent) -> AgentT:
        """Refuses an agent that does not learn from such a dataset."""

    def bind(self, agent: CollectingAgent) -> None:
        """Ties the dataset to an agent, checking that the two fit.

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
        self.agent = accepted
        self._actor = None
        self._noise_state = None
        self._ready.clear()
        kind = EpisodeCollector if agent.whole_episodes else Collector
        if type(self._collector) is not kind:
            self._collector = kind(self.env, self.horizon, agent.policy_head)
            if self.on_env_error == "restart":
                self._collector.restart_seed = self._restart_seed
        self._collector.sequence_length = self._sequence_length_for(accepted)

    def _sequence_length_for(self, agent: AgentT) -> int | None:
        """Returns how often the state of an agent that remembers is kept."""
        return self.horizon if agent.initial_state(1) else None

    def _restart_seed(self, restarts: int) -> int:
        """Returns the seed of environments that are made again."""
        sequence = np.random.SeedSequence((self._env_seed, restarts))
        return int(sequence.generate_state(1)[0] >> 2)

    @in_section("acting")
    def collect(self) -> Trajectory:
        """Takes the steps of one round with the agent's present weights.

        Returns:
            A `Trajectory`.

        Raises:
            ValueError: If the dataset is not bound to an agent, or an
                observation or reward is not finite.
        """
        agent = self._bound_agent()
        agent.begin_round()
        actor = self._present_actor()
        actor.sync()
        noise, self._noise_state = agent.draw_noise(
            self._noise, (self.horizon, self.env.num_envs), self._noise_state
        )
        return self._take(actor, noise)

    def _present_actor(self) -> ActorSnapshot:
        """Returns what acts for the agent, which is made when first needed."""
        if self._actor is None:
            self._actor = ActorSnapshot(self._bound_agent(), self.env.num_envs)
        return self._actor

    def _bound_agent(self) -> AgentT:
        """Returns the agent, or refuses to act without anybody who could."""
        if self.agent is None:
            raise ValueError(
                f"Expected a {type(self).__name__} bound to an agent: call "
                "`agent.fit(...)`, `as_dataset(agent)` or `bind(agent)` "
                "first. Received: no agent"
            )
        return self.agent

    def _take(self, actor: Actor, noise: StepNoise) -> Trajectory:
        """Takes steps with an actor, and tells the agent of them."""
        agent = self._bound_agent()
        assert self._collector is not None
        self._collector.env = (
            self.env
            if self.stopwatch is None
            else TimedEnv(self.env, self.stopwatch)
        )
        if self._collector.adrift:
            self._begin_episodes()
            if isinstance(actor, ActorSnapshot):
                actor.begin(np.ones(self.env.num_envs, np.bool_))
        trajectory = self._collector.collect(actor, noise)
        # May be refused, and is then to have left no trace.
        agent.observe(trajectory)
        agent.env_steps += int(np.count_nonzero(trajectory.valid))
        return trajectory

    def _begin_episodes(self) -> None:
        """Resets all environments, and what goes with an episode."""
        assert self._collector is not None
        first = self._collector.observation is None
        seed = self._env_seed + self._resets_before if first else None
        self._collector.reset(seed=seed)

    def logs(self) -> dict[str, float]:
        """Returns the mean of the last 100 episodes, and what failed."""
        collector = self._collector
        logs = {"episode_return": np.nan, "episode_length": np.nan}
        if collector is not None and collector.episode_returns:
            logs = {
                "episode_return": float(np.mean(collector.episode_returns)),
                "episode_length": float(np.mean(collector.episode_lengths)),
            }
        if self.on_env_error == "restart":
            restarts = 0 if collector is None else collector.env_restarts
            logs["env_restarts"] = float(restarts)
        return logs

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that it was made with, for people to read."""
        return {**super().settings(), "num_envs": self.env.num_envs}

    def get_state(self, log: StateLog | None = None) -> dict[str, Any]:
        """Returns everything that later rounds depend on, as plain data.

        The environments' own state is in it where a copy of them repeats
        itself with it, which is found out the first time; see
        `keras_rl2.envs.env_state`. Others begin new episodes after
        `set_state`.
        """
        return {
            "noise": self._noise.bit_generator.state,
            "noise_state": self._noise_state,
            "env": self.env.get_state(),
            "collector": self._collector.get_state() if self._collector else {},
            "simulation": self._simulation(),
        }

    def _simulation(self) -> dict[str, Any] | None:
        """Returns where the environments are, if that can be copied."""
        if self._collector is None or not self.env.resets:
            return None
        if self._env_repeats is None:
            self._env_repeats = env_state.repeats(self.env)
            if not self._env_repeats:
                logger.info(
                    "The state of %s cannot be saved: a training that is "
                    "resumed begins with new episodes.",
                    self.env.name,
                )
        if not self._env_repeats:
            return None
        actor = self._actor
        return {
            "env": env_state.read(self.env.env),
            "adrift": self._collector.adrift,
            "memory": None if actor is None else actor.get_state(),
        }

    def set_state(
        self, state: dict[str, Any], log: StateLog | None = None
    ) -> None:
        """Takes back what `get_state` gave, in a dataset bound to an agent.

        Args:
            state: dict, as returned by `get_state`.
            log: `StateLog` or None. Not used. Defaults to `None`.
        """
        self._noise.bit_generator.state = state["noise"]
        self._noise_state = state["noise_state"]
        self.env.set_state(state["env"])
        if self._collector is None or not state["collector"]:
            return
        self._collector.set_state(state["collector"])
        # States of earlier releases have none.
        simulation = state.get("simulation")
        if simulation is not None:
            self._go_on(simulation, state["collector"]["observation"])
        else:
            # Not the episodes that it began with.
            self._resets_before = self.env.num_envs * self.env.resets

    def _go_on(self, simulation: dict[str, Any], observation: Any) -> None:
        """Has the environments go on where others were."""
        assert self._collector is not None
        env_state.write(self.env.env, simulation["env"])
        if not simulation["adrift"] or self._bound_agent().whole_episodes:
            self._collector.go_on(observation)
        if simulation["memory"] is not None:
            self._present_actor().set_state(simulation["memory"])

    def close(self) -> None:
        """Closes the environments, and ends processes that do not close."""
        self.env.close()


def check_positive(**numbers: object) -> None:
    """Refuses sizes below 1.

    Args:
        **numbers: name = value.

    Raises:
        ValueError: If one is not an integer of at least 1.
    """
    for name, value in numbers.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(
                f"Expected `{name}` to be an integer of at least 1. "
                f"Received: {name}={value!r}"
            )
