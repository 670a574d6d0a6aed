"""Stepping environments with a policy: the hottest loop of the library."""

import logging
import operator
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np

from keras_rl2.collecting.broken_episodes import BrokenEpisodes
from keras_rl2.collecting.checks import check_mask
from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.policy_actor import PolicyActor
from keras_rl2.collecting.sent_policy import SendingActor
from keras_rl2.collecting.trajectory import RolloutStorage
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.envs import env_state
from keras_rl2.envs.errors import MismatchError
from keras_rl2.envs.vector_env import TimedEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import map_leaves

# Noise of an actor by step: [T, B, *noise_shape], or random draws made in
# advance for an actor without a trained policy.
StepNoise = np.ndarray | Sequence[Actions]

#: Most failures in a row, without a step between them, before giving up.
MOST_RESTARTS = 5

logger = logging.getLogger(__name__)


class Collector:
    """Steps a vector environment with an actor and records the trajectory.

    The loop itself only acts, steps and stores; everything derived (episode
    returns, masks, checks) is computed once per rollout.

    Args:
        env: `VectorEnvAdapter`. The environments, B.
        horizon: int. Steps of one rollout, T.
        head: `ActionFormat`. Shape and dtype of actions.
        window: int. Episodes over which returns are averaged. Defaults to
            `100`.
        sequence_length: int or None. Steps after which the recurrent state of
            the policy is stored; None for a policy without one. Defaults to
            `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> env = rl.envs.as_vector_env("CartPole-v1", num_envs=2)
    >>> collector = Collector(env, 16, agent.policy_head)
    >>> collector.reset(seed=0)
    >>> actor = rl.data.ActorSnapshot(agent, num_envs=2)
    >>> noise, _ = agent.draw_noise(np.random.default_rng(0), (16, 2))
    >>> trajectory = collector.collect(actor, noise)
    >>> trajectory.reward.shape
    (16, 2)
    """

    #: Class of the actors that it runs, if it needs one of its own.
    actor_kind: type[Any] | None = None
    #: Class of the storage of a rollout in progress.
    storage_kind: type[RolloutStorage] = RolloutStorage

    def __init__(
        self,
        env: VectorEnvAdapter,
        horizon: int,
        head: ActionFormat,
        window: int = 100,
        sequence_length: int | None = None,
    ) -> None:
        self.env: VectorEnvAdapter | TimedEnv = env
        self.horizon = horizon
        self.head = head
        self.sequence_length = sequence_length
        self._observation: Any = None
        self._observe: Callable[[], Any] | None = None
        self.episodes = EpisodeStatistics(env.num_envs, window)
        #: Whether this collector has ever reset the environments.
        self.has_begun = False
        self._is_masked = is_masked(env.observation_space)
        self._resets_seen = -1
        #: Seed of restarted environments, by the number of earlier restarts;
        #: None if a failure raises its error.
        self.restart_seed: Callable[[int], int] | None = None
        self.env_restarts = 0
        #: Broken episodes of the last rollout; None without failures.
        self.broken: BrokenEpisodes | None = None
        #: Whether to store log-probabilities, which the actor must return.
        self.keeps_log_prob = False
        self._adapter = env
        #: Reason for not saving the environments' state, once known.
        self.not_saved = ""
        self._failed = np.zeros(env.num_envs, np.bool_)
        self._failures = 0
        self._failed_at = -1

    @property
    def observation(self) -> Any:
        """The observations to act on next, `[B, ...]`; None at first."""
        if self._observe is not None:
            self.observation = self._observe()
        return self._observation

    @observation.setter
    def observation(self, observation: Any) -> None:
        self._observation, self._observe = observation, None

    @property
    def needs_reset(self) -> bool:
        """Whether the environments must be reset before the next rollout.

        They have never been reset, a rollout was interrupted, or other code has
        used them in the meantime, e.g. `evaluate`.
        """
        return self._resets_seen != self.env.resets

    def reset(self, seed: int | None = None) -> None:
        """Begins new episodes in every environment.

        Args:
            seed: int or None. Seeds environment i with `seed + i`. Defaults to
                `None`: the random states continue.
        """
        try:
            self.observation = self.env.reset(seed=seed)
        except Exception as error:
            self.observation = self._begun_anew(error)
        self._resets_seen = self.env.resets
        self.has_begun = True
        self.episodes.begin()

    def collect(
        self, actor: Actor | SendingActor, noise: StepNoise
    ) -> Trajectory:
        """Takes T steps in each environment, from its current state.

        Args:
            actor: `PolicyActor`, or a function with the same signature. Chooses
                the actions.
            noise: `[T, B, *noise_shape]` float32. Noise of the actor by step,
                or its other inputs.

        Returns:
            A `Trajectory`.

        Raises:
            ValueError: If an observation or a reward is not finite; the message
                names the environment, the step and the array.
        """
        assert callable(actor)
        assert self.observation is not None
        storage = self.storage_kind(
            self.env, self.head, len(noise), self.observation
        )
        if self.keeps_log_prob:
            storage.log_prob = np.empty(storage.reward.shape, np.float32)
        # Until the rollout is complete: Ctrl-C may also interrupt it.
        self._resets_seen = -1
        try:
            self._run(actor, noise, storage)
        except Exception as error:
            # An environment may fail on an action that is NaN.
            storage.check_finite()
            raise error
        storage.check_finite()
        self._resets_seen = self.env.resets
        self.observation = map_leaves(
            operator.itemgetter(-1), storage.observation
        )
        self.broken = storage.broken
        trajectory = storage.trajectory()
        self.episodes.count(trajectory, self.broken)
        return trajectory

    def leave(self) -> None:
        """Leaves the environments to a program that steps them itself."""
        self._resets_seen = -1

    def take_back(
        self,
        observe: Callable[[], Any],
        ended: np.ndarray,
        in_progress: np.ndarray,
    ) -> None:
        """Takes the environments back after `leave`.

        Args:
            observe: Callable. Returns the last observations, `[B, ...]`. It is
                called when they are needed, which is seldom: the same program
                usually takes the next steps too.
            ended: `[2, E]`. See `EpisodeStatistics.add`.
            in_progress: `[2, B]`. See `EpisodeStatistics.add`.
        """
        self._resets_seen = self.env.resets
        self._observe = observe
        self.episodes.add(ended, in_progress)

    def _run(
        self, actor: Actor, noise: StepNoise, storage: RolloutStorage
    ) -> None:
        """Acts, steps and stores, up to T times."""
        remembers = self.sequence_length is not None
        for t in range(len(noise)):
            if remembers:
                self._remember(actor, storage, t)
                # NEXT_STEP environments begin an episode after the step that
                # resets.
                resetting = self.env.pending_reset
            observation = storage.acted_on(t)
            if self._is_masked:
                over = self.env.pending_reset | storage.is_over(t)
                check_mask(self.head, observation, over, self.env.name, t)
            storage.action[t], action = actor(observation, noise[t])
            if storage.log_prob is not None:
                storage.log_prob[t] = cast(PolicyActor, actor).log_prob
            try:
                (
                    observation,
                    storage.reward[t],
                    storage.terminated[t],
                    storage.truncated[t],
                    final,
                ) = self.env.step(action)
            except Exception as error:
                self._survive(error, storage, t)
            else:
                storage.keep_observation(t + 1, observation)
                if final is not None:
                    storage.keep_final(t, final)
            storage.steps = t + 1
            if remembers:
                self._remember_end(actor, storage, t, resetting)
            if storage.is_complete(t):
                break

    def _survive(
        self, error: Exception, storage: RolloutStorage, t: int
    ) -> None:
        """Resets the environments in place of a failed step, if enabled."""
        if self.restart_seed is not None:
            # An environment that failed on a NaN would fail again.
            storage.check_finite()
        observation = self._begun_anew(error)
        storage.keep_restart(t, self._failed, observation)

    def _begun_anew(self, error: Exception) -> Any:
        """Resets all environments, or raises the error of the failure.

        Args:
            error: The error that an environment raised.

        Returns:
            `[B, ...]`. The first observations.
        """
        if self.restart_seed is None or isinstance(error, MismatchError):
            raise error
        self._failed = self.env.failed
        # Counted here, since the loop of steps is hot.
        if self.env.steps > self._failed_at + 1:
            self._failures = 0
        self._failed_at = self.env.steps
        another: Exception | None = None
        while self._failures < MOST_RESTARTS:
            self._failures += 1
            self.env_restarts += 1
            logger.warning(
                "Environments begin anew after a failure: %r %s",
                error,
                " ".join(getattr(error, "__notes__", ())),
            )
            try:
                return self.env.restart(self.restart_seed(self.env_restarts))
            except Exception as raised:
                another = raised
        if another is not None:
            error.add_note(f"Beginning anew failed, too: {another!r}.")
        error.add_note(
            f"No step succeeded after {MOST_RESTARTS} new beginnings in a row."
        )
        raise error

    def _remember(self, actor: Any, storage: RolloutStorage, t: int) -> None:
        """Stores the state of a recurrent policy before a step."""
        assert self.sequence_length is not None
        if t == 0:
            storage.keep_begins(actor.begins)
        if t % self.sequence_length == 0:
            storage.keep_state(actor.state)

    def _remember_end(
        self, actor: Any, storage: RolloutStorage, t: int, resetting: np.ndarray
    ) -> None:
        """Stores the recurrent state after a step."""
        if storage.final_step == t:
            storage.keep_final_state(t, actor.state)
        actor.begin(
            np.ones(self.env.num_envs, np.bool_)
            if storage.restarts_at(t)
            else self._beginning(storage, t, resetting)
        )
        storage.keep_begins(actor.begins)

    def _beginning(
        self, storage: RolloutStorage, t: int, resetting: np.ndarray
    ) -> np.ndarray:
        """Returns whether step `t + 1` is the first of an episode, `[B]`."""
        if self.env.masks_reset_rows:
            return resetting
        ended: np.ndarray = storage.terminated[t] | storage.truncated[t]
        return ended

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later statistics depend on, as plain data."""
        return {
            **self.episodes.get_state(),
            "observation": self.observation,
            "env_restarts": self.env_restarts,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
        """
        self.episodes.set_state(state)
        self.env_restarts = int(state.get("env_restarts", 0))

    def simulation(self) -> dict[str, Any] | None:
        """Returns the state of the environments, if it can be saved.

        If not, `not_saved` is the reason.
        """
        self.not_saved = ""
        try:
            state = env_state.read(self._adapter)
        except Exception as error:
            # Environments may raise errors of any type.
            self.not_saved = (
                f"the state of {self._adapter.name} is not saved: "
                f"{str(error) or repr(error)}"
            )
            return None
        return {"env": state, "adrift": self.needs_reset}

    def can_go_on(self, simulation: dict[str, Any]) -> bool:
        """Returns whether `go_on` supports the form of a simulation.

        Args:
            simulation: dict, as returned by `simulation` of any collector.
        """
        return "env" in simulation

    def go_on(self, simulation: dict[str, Any], observation: Any) -> None:
        """Continues the environments from the state of others.

        Args:
            simulation: dict, as returned by `simulation`.
            observation: `[B, ...]`. The last observations in that state.
        """
        self._resets_seen = -1
        env_state.write(self._adapter, simulation["env"], observation)
        if not simulation["adrift"]:
            self.observation = observation
            self.has_begun = True
            self._resets_seen = self.env.resets


class EpisodeStatistics:
    """Adds up rewards of episodes, which may span several rollouts.

    Args:
        num_envs: int. Environments, B.
        window: int. Number of episodes that are kept.

    Attributes:
        returns: deque of float. Returns of the last episodes, in the order of
            their ends.
        lengths: deque of int. Lengths of the same episodes.
    """

    def __init__(self, num_envs: int, window: int) -> None:
        self.returns: deque[float] = deque(maxlen=window)
        self.lengths: deque[int] = deque(maxlen=window)
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)

    def begin(self) -> None:
        """Begins new episodes in all environments."""
        self._return[:] = 0.0
        self._length[:] = 0

    def count(
        self, trajectory: Trajectory, broken: BrokenEpisodes | None
    ) -> None:
        """Adds a rollout.

        Args:
            trajectory: `Trajectory` of T steps of B environments.
            broken: `BrokenEpisodes` or None. Failures in the rollout.
        """
        if broken is not None:
            self._return[broken.cut_before] = 0.0
            self._length[broken.cut_before] = 0
        # [T, B], sums from the beginning of the rollout.
        reward = np.where(trajectory.valid, trajectory.reward, 0.0)
        returns = self._return + np.cumsum(reward, axis=0, dtype=np.float64)
        lengths = self._length + np.cumsum(trajectory.valid, axis=0)
        before_return = np.zeros(len(self._return))
        before_length = np.zeros(len(self._return), np.int64)
        over, counted = trajectory.ended, trajectory.ended
        if broken is not None:
            over, counted = over | broken.cut, counted & ~broken.cut
        for t, b in np.argwhere(over):
            if counted[t, b]:
                self.returns.append(returns[t, b] - before_return[b])
                self.lengths.append(lengths[t, b] - before_length[b])
            before_return[b] = returns[t, b]
            before_length[b] = lengths[t, b]
        self._return = returns[-1] - before_return
        self._length = lengths[-1] - before_length

    @property
    def in_progress(self) -> np.ndarray:
        """Returns and lengths of unfinished episodes, `[2, B]` float64."""
        return np.array([self._return, self._length])

    def add(self, ended: np.ndarray, in_progress: np.ndarray) -> None:
        """Adds episodes that were counted elsewhere.

        Args:
            ended: `[2, E]`. Returns and lengths of the episodes that ended, in
                the order of their ends.
            in_progress: `[2, B]`. Returns and lengths of unfinished episodes.
        """
        self.returns.extend(ended[0].tolist())
        self.lengths.extend(ended[1].astype(int).tolist())
        self._return = in_progress[0].copy()
        self._length = in_progress[1].astype(np.int64)

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later statistics depend on, as plain data."""
        return {
            "episode_returns": [float(r) for r in self.returns],
            "episode_lengths": [int(n) for n in self.lengths],
            "current_return": self._return.copy(),
            "current_length": self._length.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
        """
        self.returns.clear()
        self.returns.extend(state["episode_returns"])
        self.lengths.clear()
        self.lengths.extend(state["episode_lengths"])
        self._return = np.array(state["current_return"], np.float64)
        self._length = np.array(state["current_length"], np.int64)
