"""Stepping environments with a policy: the hottest loop of the library."""

from collections import deque
from typing import Any

import numpy as np

from keras_rl2.data.actors import ActorSnapshot
from keras_rl2.data.trajectory import Trajectory


class Collector:
    """Steps a vector environment with an actor and keeps what happened.

    The loop itself only acts, steps and stores; all that can be derived
    (episode returns, masks, checks) is derived once per rollout.

    Args:
        env: `keras_rl2.envs.VectorEnvAdapter`. The environments.
        horizon: int. Steps of one rollout, T.
        head: `PolicyHead`. Says what actions look like.
        window: int. Episodes over which returns are averaged. Defaults to
            `100`.
    """

    def __init__(
        self, env: Any, horizon: int, head: Any, window: int = 100
    ) -> None:
        self.env = env
        self.horizon = horizon
        self.head = head
        self.observation: np.ndarray | None = None
        self.episode_returns: deque[float] = deque(maxlen=window)
        self.episode_lengths: deque[int] = deque(maxlen=window)
        self._resets_seen = -1
        self._return = np.zeros(env.num_envs)
        self._length = np.zeros(env.num_envs, np.int64)

    @property
    def adrift(self) -> bool:
        """Whether the environments are not where the last rollout left them.

        They have never been reset, a rollout broke off, or somebody else,
        `evaluate` say, has used them since.
        """
        return bool(self._resets_seen != self.env.resets)

    def reset(self, seed: int | None = None) -> None:
        """Starts new episodes in every environment."""
        self.observation = self.env.reset(seed=seed)
        self._resets_seen = self.env.resets
        self._return[:] = 0.0
        self._length[:] = 0

    def collect(self, actor: ActorSnapshot, noise: np.ndarray) -> Trajectory:
        """Takes T steps in each environment, from where it is.

        Args:
            actor: `ActorSnapshot`. Chooses the actions.
            noise: `[T, B, *noise_shape]` float32. Its noise.

        Returns:
            A `Trajectory`.

        Raises:
            ValueError: If an observation or a reward is not finite; the text
                names the environment, the step and the array.
        """
        record = _Record(self)
        # Until all has gone well: also Ctrl-C may break the rollout off.
        self._resets_seen = -1
        try:
            self._run(actor, noise, record)
        except Exception as error:
            # An environment may choke on the action that a NaN led to.
            _check_finite(record)
            raise error
        _check_finite(record)
        self._resets_seen = self.env.resets
        self.observation = record.observation[-1]
        trajectory = record.trajectory()
        self._count_episodes(trajectory)
        return trajectory

    def _run(
        self, actor: ActorSnapshot, noise: np.ndarray, record: "_Record"
    ) -> None:
        """Acts, steps and stores, T times."""
        step = self.env.step
        observations, actions = record.observation, record.action
        rewards = record.reward
        terminations, truncations = record.terminated, record.truncated
        for t in range(self.horizon):
            actions[t], for_environment = actor(observations[t], noise[t])
            (
                observations[t + 1],
                rewards[t],
                terminations[t],
                truncations[t],
                final,
            ) = step(for_environment)
            if final is not None:
                record.keep_final(t, final)
            record.steps = t + 1

    def _count_episodes(self, trajectory: Trajectory) -> None:
        """Adds up returns and lengths of the episodes that ended."""
        reward = np.where(trajectory.valid, trajectory.reward, 0.0)
        returns = self._return + np.cumsum(reward, axis=0, dtype=np.float64)
        lengths = self._length + np.cumsum(trajectory.valid, axis=0)
        before_return = np.zeros(self.env.num_envs)
        before_length = np.zeros(self.env.num_envs, np.int64)
        for t, b in np.argwhere(trajectory.ended):
            self.episode_returns.append(returns[t, b] - before_return[b])
            self.episode_lengths.append(lengths[t, b] - before_length[b])
            before_return[b] = returns[t, b]
            before_length[b] = lengths[t, b]
        self._return = returns[-1] - before_return
        self._length = lengths[-1] - before_length

    def get_state(self) -> dict[str, Any]:
        """Returns what the statistics of a later rollout depend on."""
        return {
            "episode_returns": [float(r) for r in self.episode_returns],
            "episode_lengths": [int(n) for n in self.episode_lengths],
            "current_return": self._return.copy(),
            "current_length": self._length.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave."""
        self.episode_returns.clear()
        self.episode_returns.extend(state["episode_returns"])
        self.episode_lengths.clear()
        self.episode_lengths.extend(state["episode_lengths"])
        self._return = np.array(state["current_return"], np.float64)
        self._length = np.array(state["current_length"], np.int64)


class _Record:
    """Arrays that a rollout in progress is written to.

    They are made anew for each rollout: TensorFlow may keep pointing at
    memory that it was given.
    """

    def __init__(self, collector: Collector) -> None:
        first = collector.observation
        assert first is not None
        env, head = collector.env, collector.head
        leading = (collector.horizon, env.num_envs)
        self.observation = np.empty((leading[0] + 1, *first.shape), first.dtype)
        self.observation[0] = first
        self.action = np.empty(
            (*leading, *head.action_shape), head.action_dtype
        )
        self.reward = np.empty(leading, np.float32)
        self.terminated = np.empty(leading, np.bool_)
        self.truncated = np.empty(leading, np.bool_)
        self.steps = 0
        self.masks_reset_rows = env.masks_reset_rows
        self.pending_reset = np.array(env.pending_reset, np.bool_)
        self._final: list[np.ndarray] = []
        self._final_index: list[np.ndarray] = []

    def keep_final(self, t: int, final_observation: np.ndarray) -> None:
        """Keeps the true last observations of the episodes that ended."""
        (ended,) = np.nonzero(self.terminated[t] | self.truncated[t])
        self._final.append(np.array(final_observation)[ended])
        self._final_index.append(t * self.reward.shape[1] + ended)

    def final(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the final observations and where they belong."""
        if not self._final:
            shape = (0, *self.observation.shape[2:])
            return np.empty(shape, self.observation.dtype), np.empty(
                0, np.int32
            )
        return (
            np.concatenate(self._final).astype(self.observation.dtype),
            np.concatenate(self._final_index).astype(np.int32),
        )

    def valid(self) -> np.ndarray:
        """Marks the rows that are transitions and not mere resets."""
        valid = np.ones(self.reward.shape, np.bool_)
        if self.masks_reset_rows:
            valid[0] = ~self.pending_reset
            valid[1:] = ~(self.terminated[:-1] | self.truncated[:-1])
        return valid

    def trajectory(self) -> Trajectory:
        """Returns what was recorded."""
        final_observation, final_index = self.final()
        return Trajectory(
            observation=self.observation,
            action=self.action,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            valid=self.valid(),
            final_observation=final_observation,
            final_index=final_index,
        )


def _check_finite(record: _Record) -> None:
    """Refuses NaN and infinity, naming where they came from."""
    final, final_index = record.final()
    count = record.steps
    for key, array in (
        ("observation", record.observation[: count + 1]),
        ("reward", record.reward[:count]),
        ("final observation", final),
    ):
        if array.dtype.kind != "f" or np.isfinite(array).all():
            continue
        where = np.argwhere(~np.isfinite(array))[0]
        if key == "final observation":
            step, env = divmod(
                int(final_index[where[0]]), record.reward.shape[1]
            )
        else:
            step, env = int(where[0]), int(where[1])
        raise ValueError(
            f"Expected a finite {key} from every environment. Received: "
            f"{key}={array[tuple(where)]} from environment {env} at step "
            f"{step} of the rollout. No weight has been changed by it."
        )
