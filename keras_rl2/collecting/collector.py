"""Stepping environments with a policy: the hottest loop of the library."""

from collections import deque
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np

from keras_rl2.collecting.checks import check_mask
from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.policy_actor import PolicyActor
from keras_rl2.collecting.trajectory import EpisodeStorage
from keras_rl2.collecting.trajectory import RolloutStorage
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.envs import env_state
from keras_rl2.envs.vector_env import Step
from keras_rl2.envs.vector_env import TimedEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import map_leaves

# Noise of an actor by step: [T, B, n], or random draws made in
# advance for an actor without a trained policy.
StepNoise = np.ndarray | Sequence[Actions]

# Yields actions for the environments, receives their steps, and returns what
# they have amounted to.
Rollout = Generator[Any, Step, Trajectory]


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

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> env = rl.envs.as_vector_env("CartPole-v1", num_envs=2)
    >>> collector = Collector(env, 16, agent.policy.head)
    >>> collector.reset(seed=0)
    >>> actor = rl.data.ActorSnapshot(agent.policy, num_envs=2)
    >>> noise, _ = agent.policy.noise.draw(np.random.default_rng(0), (16, 2))
    >>> trajectory = collector.collect(actor, noise)
    >>> trajectory.reward.shape
    (16, 2)
    """

    #: Class of the storage of a rollout in progress.
    storage_kind: type[RolloutStorage] = RolloutStorage

    def __init__(
        self,
        env: VectorEnvAdapter,
        horizon: int,
        head: ActionFormat,
        window: int = 100,
    ) -> None:
        self.env: VectorEnvAdapter | TimedEnv = env
        self.horizon = horizon
        self.head = head
        #: Steps after which the recurrent state of the policy is stored.
        self.sequence_length: int | None = None
        self._observation: Any = None
        self._observe: Callable[[], Any] | None = None
        self.episodes = EpisodeStatistics(env.num_envs, window, env.players)
        #: Whether this collector has ever reset the environments.
        self.has_begun = False
        self._is_masked = is_masked(env.observation_space)
        self._resets_seen = -1
        #: Whether to store log-probabilities, which the actor must return.
        self.keeps_log_prob = False
        #: Environments whose unfinished episodes were lost before the last
        #: rollout, `[B]` bool; None for none.
        self.lost: np.ndarray | None = None
        self._adapter = env

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

        They have never been reset, a rollout was interrupted, or other code,
        such as `evaluate`, has used them in the meantime.
        """
        return self._resets_seen != self.env.resets

    def reset(self, seed: int | None = None) -> None:
        """Begins new episodes in every environment."""
        self.begin_episodes(self.env.reset(seed=seed))

    def begin_episodes(self, observation: Any) -> None:
        """Begins the episodes of environments that have just been reset."""
        self.observation = observation
        self._resets_seen = self.env.resets
        self.has_begun = True
        self.episodes.begin()

    def collect(self, actor: Any, noise: StepNoise) -> Trajectory:
        """Takes T steps in each environment, from its current state.

        Args:
            actor: `PolicyActor`, or a function with the same signature. Chooses
                the actions.
            noise: `[T, B, n]` float32. Noise of the actor by step,
                or its other inputs.
        """
        rollout, step = self.rollout(actor, noise), self.env.step
        try:
            action = next(rollout)
            while True:
                try:
                    outcome = step(action)
                except Exception as error:
                    rollout.throw(error)
                action = rollout.send(outcome)
        except StopIteration as end:
            trajectory: Trajectory = end.value
        return trajectory

    def rollout(self, actor: Any, noise: StepNoise) -> Rollout:
        """Acts and stores as `collect`, which steps the environments.

        Errors of the environments are to be thrown into it.

        Args:
            actor: See `collect`.
            noise: See `collect`.

        Yields:
            `[B, ...]`. The actions to take, for which it receives a `Step`.
        """
        storage = self.storage_kind(
            self.env, self.head, len(noise), self.observation
        )
        if self.keeps_log_prob:
            storage.log_prob = np.empty(storage.reward.shape, np.float32)
        # It stays -1 until the rollout is complete: Ctrl-C may interrupt it.
        self._resets_seen = -1
        try:
            yield from self._run(actor, noise, storage)
        except Exception as error:
            # An environment may fail on an action that is NaN.
            storage.check_finite()
            raise error
        storage.check_finite()
        self._resets_seen = self.env.resets
        # A view would keep the whole rollout in memory.
        self.observation = map_leaves(
            lambda each: each[-1].copy(), storage.observation
        )
        trajectory = storage.trajectory()
        self.episodes.count(trajectory)
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
    ) -> Generator[Any, Step, None]:
        """Acts and stores, up to T times."""
        remembers = self.sequence_length is not None
        for t in range(len(noise)):
            pending = self.env.pending_reset
            storage.pending.append(pending)
            if remembers:
                self._remember(actor, storage, t)
            observation = storage.acted_on(t)
            if self._is_masked:
                over = pending | storage.is_over(t)
                check_mask(self.head, observation, over, self.env.name, t)
            storage.action[t], action = actor(observation, noise[t])
            if storage.log_prob is not None:
                storage.log_prob[t] = cast(PolicyActor, actor).log_prob
            (
                observation,
                storage.reward[t],
                storage.terminated[t],
                storage.truncated[t],
                final,
            ) = yield action
            storage.keep_observation(t + 1, observation)
            if final is not None:
                storage.keep_final(t, final)
            storage.steps = t + 1
            if remembers:
                self._remember_end(actor, storage, t, pending)
            if storage.is_complete(t):
                break

    def _remember(self, actor: Any, storage: RolloutStorage, t: int) -> None:
        """Stores the state of a recurrent policy before a step."""
        assert self.sequence_length is not None
        if t == 0:
            storage.begins.append(actor.begins)
        if t % self.sequence_length == 0:
            storage.states.append(actor.state)

    def _remember_end(
        self, actor: Any, storage: RolloutStorage, t: int, pending: np.ndarray
    ) -> None:
        """Stores the recurrent state after a step."""
        if storage.final_step == t:
            storage.keep_final_state(t, actor.state)
        actor.begin(self._beginning(storage, t, pending))
        storage.begins.append(actor.begins)

    def _beginning(
        self, storage: RolloutStorage, t: int, pending: np.ndarray
    ) -> np.ndarray:
        """Returns whether step `t + 1` is the first of an episode, `[B]`."""
        return self.env.begins(pending, storage.ended(t))

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later statistics depend on, as plain data."""
        return {**self.episodes.get_state(), "observation": self.observation}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`."""
        self.episodes.set_state(state)

    def simulation(self) -> dict[str, Any] | None:
        """Returns the state of the environments, as far as it can be saved.

        `not_saved` is the reason if not all of it can be, or else empty.
        """
        state = env_state.read(self._adapter)
        reasons = "; ".join(dict.fromkeys(env_state.refusals(state)))
        if reasons:
            reasons = (
                f"the state of {self._adapter.name} is not saved: {reasons}"
            )
        return {"env": state, "adrift": self.needs_reset, "not_saved": reasons}

    def can_go_on(self, simulation: dict[str, Any]) -> bool:
        """Returns whether `go_on` supports the form of a simulation."""
        return "env" in simulation

    def go_on(self, simulation: dict[str, Any], observation: Any) -> None:
        """Continues the environments from the state of others.

        If not all of that was saved, new episodes begin.

        Args:
            simulation: dict, as returned by `simulation`.
            observation: `[B, ...]`. The last observations in that state.
        """
        self._resets_seen = -1
        env_state.write(self._adapter, simulation["env"])
        self.has_begun = not simulation["not_saved"]
        if self.has_begun and not simulation["adrift"]:
            self.observation = observation
            self._resets_seen = self.env.resets


class EpisodeCollector(Collector):
    """Plays one whole episode in each environment, from a reset.

    For agents that learn from Monte-Carlo returns. Taking the episodes that end
    within a fixed number of steps instead would prefer short episodes. Steps
    after an environment's episode are not valid; an episode that reaches the
    horizon is truncated there, as by a time limit.
    """

    storage_kind = EpisodeStorage

    @property
    def needs_reset(self) -> bool:
        """Whether the environments must be reset: always."""
        return True

    def _run(
        self, actor: Any, noise: StepNoise, storage: RolloutStorage
    ) -> Generator[Any, Step, None]:
        """Acts and stores until every episode has ended."""
        assert isinstance(storage, EpisodeStorage)
        # Environments with a finished episode have begun another one, and may
        # mask an action that their last observation allowed.
        storage.acts_on_present = self._is_masked
        yield from super()._run(actor, noise, storage)
        if self.sequence_length is not None:
            # Placeholders for the steps that are never taken.
            for t in range(storage.steps, self.horizon):
                storage.begins.append(actor.begins)
                if t % self.sequence_length == 0:
                    storage.states.append(actor.state)
        storage.finish()

    def _beginning(
        self, storage: RolloutStorage, t: int, pending: np.ndarray
    ) -> np.ndarray:
        """Marks that no other episode begins: later steps are ignored."""
        return np.zeros(self.env.num_envs, np.bool_)


class EpisodeStatistics:
    """Adds up rewards of episodes, which may span several rollouts.

    Attributes:
        returns: deque of float. Returns of the last episodes, in the order of
            their ends.
        lengths: deque of int. Lengths of the same episodes.
        rows: deque of int. The environments that they were played in.
    """

    def __init__(
        self, num_envs: int, window: int, players: Sequence[str] = ()
    ) -> None:
        self.players = players
        window = int(window) * (len(set(players)) or 1)
        self.returns: deque[float] = deque(maxlen=window)
        self.lengths: deque[int] = deque(maxlen=window)
        self.rows: deque[int] = deque(maxlen=window)
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)

    def begin(self, envs: Any = slice(None)) -> None:
        """Begins new episodes in all or some environments, `[B]` bool."""
        self._return[envs] = 0.0
        self._length[envs] = 0

    def count(self, trajectory: Trajectory) -> None:
        """Adds a rollout."""
        # [T, B], sums from the beginning of the rollout.
        reward = np.where(trajectory.valid, trajectory.reward, 0.0)
        returns = self._return + np.cumsum(reward, axis=0, dtype=np.float64)
        lengths = self._length + np.cumsum(trajectory.valid, axis=0)
        before_return = np.zeros(len(self._return))
        before_length = np.zeros(len(self._return), np.int64)
        for t, b in np.argwhere(trajectory.ended):
            self.append(
                returns[t, b] - before_return[b],
                lengths[t, b] - before_length[b],
                b,
            )
            before_return[b] = returns[t, b]
            before_length[b] = lengths[t, b]
        self._return = returns[-1] - before_return
        self._length = lengths[-1] - before_length

    def append(self, total: float, length: int, row: int) -> None:
        """Adds an episode that has ended."""
        self.returns.append(total)
        self.lengths.append(length)
        self.rows.append(row)

    def logs(self) -> dict[str, float]:
        """Returns the mean return and length, NaN if there are no episodes.

        With several players, `episode_return/NAME` is the mean of each name.
        """
        logs: dict[str, Sequence[float]] = {
            "episode_return": self.returns,
            "episode_length": self.lengths,
        }
        names = dict.fromkeys(self.players)
        for name in names if len(names) > 1 else ():
            logs[f"episode_return/{name}"] = [
                each
                for each, row in zip(self.returns, self.rows, strict=True)
                if self.players[row] == name
            ]
        return {
            key: float(np.mean(each)) if each else np.nan
            for key, each in logs.items()
        }

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
            "episode_rows": [int(b) for b in self.rows],
            "current_return": self._return.copy(),
            "current_length": self._length.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`."""
        self.returns.clear()
        self.returns.extend(state["episode_returns"])
        self.lengths.clear()
        self.lengths.extend(state["episode_lengths"])
        self.rows.clear()
        # Older checkpoints have none.
        self.rows.extend(state.get("episode_rows", ()))
        self._return = np.array(state["current_return"], np.float64)
        self._length = np.array(state["current_length"], np.int64)
