"""Collection of whole episodes."""

from typing import Any

import numpy as np

from keras_rl2.collecting.broken_episodes import BrokenEpisodes
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.trajectory import RolloutStorage
from keras_rl2.envs.vector_env import TimedEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves


class EpisodeStorage(RolloutStorage):
    """Stores only the first episode of each environment.

    Steps that are never taken, or follow the episode, are not valid and hold
    its last observation, in every autoreset mode. Anything that an environment
    returns after its episode, e.g. NaN, is ignored.

    Args:
        env: `VectorEnvAdapter`. See `RolloutStorage`.
        head: `ActionFormat`. See `RolloutStorage`.
        horizon: int. See `RolloutStorage`.
        first: `[B, ...]`. See `RolloutStorage`.
    """

    def __init__(
        self,
        env: VectorEnvAdapter | TimedEnv,
        head: ActionFormat,
        horizon: int,
        first: Tree[np.ndarray],
    ) -> None:
        super().__init__(env, head, horizon, first)
        for array in (self.action, self.reward):
            array[:] = 0
        #: Steps of the episodes, `[T, B]`.
        self.alive = np.zeros(self.reward.shape, np.bool_)
        self.alive[0] = True
        self._running = self.alive[0].copy()
        #: Whether steps act on `present` instead of the stored observations.
        self.acts_on_present = False
        #: Observations of all environments, including those of finished
        #: episodes.
        self.present = first
        for flags in (self.terminated, self.truncated):
            flags[:] = False

    def acted_on(self, t: int) -> Any:
        """Returns the observations that step `t` acts on, `[B, ...]`."""
        if not self.acts_on_present:
            return super().acted_on(t)
        return map_leaves(np.ascontiguousarray, self.present)

    def keep_observation(self, t: int, observation: Any) -> None:
        """Stores the observations before step `t`, `[B, ...]`."""
        super().keep_observation(t, observation)
        self.present = observation

    def keep_final(self, t: int, final_observation: Any) -> None:
        """Replaces the observations after resets by the last observations.

        Args:
            t: int. The step.
            final_observation: `[B, ...]`. Only rows of finished episodes count.
        """
        ended = self.terminated[t] | self.truncated[t]

        def put(array: np.ndarray, last: np.ndarray) -> None:
            array[t + 1, ended] = last[ended]

        map_leaves(put, self.observation, final_observation)

    def keep_restart(
        self, t: int, failed: np.ndarray, observation: Any
    ) -> None:
        """Begins new episodes in place of the unfinished ones.

        The return of an interrupted episode would be incomplete.

        Args:
            t: int. The step that failed.
            failed: `[B]` bool. The environments that failed.
            observation: `[B, ...]`. The first observations.
        """
        running = self.alive[t].copy()
        self.alive[: t + 1, running] = False
        self.broken = self.broken or BrokenEpisodes(self.reward.shape)
        self.broken.anew[t] = True
        for array in (self.action, self.reward, self.terminated):
            array[t] = 0
        self.truncated[t] = False
        self.keep_observation(t + 1, observation)
        for array in leaves(self.observation):
            array[t + 1, ~running] = array[t, ~running]

    def is_complete(self, t: int) -> bool:
        """Returns whether each episode has ended, and prepares the next step.

        Results of environments after the end of their episodes are removed.

        Args:
            t: int. The step that was taken.
        """
        over = ~self._running
        if over.any() and not self.restarts_at(t):
            for array in leaves(self.observation):
                array[t + 1, over] = array[t, over]
            for array in (self.action, self.reward, self.terminated):
                array[t, over] = 0
            self.truncated[t, over] = False
        self._running = ~(over | self.terminated[t] | self.truncated[t])
        if t + 1 < len(self.alive):
            self.alive[t + 1] = self._running
        return not self._running.any()

    def finish(self) -> None:
        """Truncates unfinished episodes, and fills the rows without steps."""
        for array in leaves(self.observation):
            array[self.steps + 1 :] = array[self.steps]
        self.truncated[-1] |= self.alive[-1] & ~self.terminated[-1]

    def is_over(self, t: int) -> np.ndarray:
        """Marks environments with a finished episode, `[B]`."""
        over: np.ndarray = ~self.alive[t]
        return over

    def valid(self) -> np.ndarray:
        """Marks the steps of the episodes, `[T, B]`."""
        return self.alive


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

    def go_on(self, simulation: dict[str, Any], observation: Any) -> None:
        """Continues the environments from the state of others."""
        super().go_on({**simulation, "adrift": False}, observation)

    def _run(
        self, actor: Actor, noise: StepNoise, storage: RolloutStorage
    ) -> None:
        """Acts, steps and stores until every episode has ended."""
        assert isinstance(storage, EpisodeStorage)
        # Environments with a finished episode have begun another one, and may
        # mask an action that their last observation allowed.
        storage.acts_on_present = self._is_masked
        super()._run(actor, noise, storage)
        if self.sequence_length is not None:
            self._fill_memory(actor, storage, self.sequence_length)
        storage.finish()

    def _beginning(
        self, storage: RolloutStorage, t: int, resetting: np.ndarray
    ) -> np.ndarray:
        """Marks that no other episode begins: later steps are ignored."""
        return np.zeros(self.env.num_envs, np.bool_)

    def _fill_memory(
        self, actor: Any, storage: RolloutStorage, sequence_length: int
    ) -> None:
        """Stores placeholders for the steps that are never taken."""
        for t in range(storage.steps, self.horizon):
            storage.keep_begins(actor.begins)
            if t % sequence_length == 0:
                storage.keep_state(actor.state)
