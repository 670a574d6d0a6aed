"""Collecting whole episodes."""

from typing import Any

import numpy as np

from keras_rl2.collecting.broken_episodes import BrokenEpisodes
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.trajectory import Record
from keras_rl2.envs import VectorEnvAdapter
from keras_rl2.envs.timed_env import TimedEnv
from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves


class EpisodeRecord(Record):
    """A record of the first episode of each environment and of no other.

    Steps that are never taken, or come after that episode, are not valid and
    hold its last observation, in every autoreset mode: what an environment
    does with nobody's use of it, be it a NaN, leaves no trace.

    Args:
        env: `VectorEnvAdapter`. As of `Record`.
        head: `ActionFormat`. As of `Record`.
        horizon: int. As of `Record`.
        first: `[B, ...]`. As of `Record`.
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
        self.alive = np.zeros(self.reward.shape, np.bool_)
        #: Whether steps act on `present`, and not on what is kept.
        self.acts_on_present = False
        #: Observations of all environments, also where the episode is over.
        self.present = first
        for flags in (self.terminated, self.truncated):
            flags[:] = False

    def acted_on(self, t: int) -> Any:
        """Returns the observations that step `t` acts on, `[B, ...]`."""
        if not self.acts_on_present:
            return super().acted_on(t)
        return map_leaves(np.ascontiguousarray, self.present)

    def keep_observation(self, t: int, observation: Any) -> None:
        """Keeps the observations before step `t`, `[B, ...]`."""
        super().keep_observation(t, observation)
        self.present = observation

    def keep_final(self, t: int, final_observation: Any) -> None:
        """Puts last observations in the place of those of the resets.

        Args:
            t: int. The step.
            final_observation: `[B, ...]`. Rows of episodes that ended count.
        """
        ended = self.terminated[t] | self.truncated[t]

        def put(array: np.ndarray, last: np.ndarray) -> None:
            array[t + 1, ended] = last[ended]

        map_leaves(put, self.observation, final_observation)

    def keep_restart(
        self, t: int, failed: np.ndarray, observation: Any
    ) -> None:
        """Begins the episodes anew that were under way, of all environments.

        A return that was cut off would say nothing of the whole.

        Args:
            t: int. The step that failed.
            failed: `[B]` bool. The environments that failed.
            observation: `[B, ...]`. What they begin with.
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

    def forget_others(self, t: int) -> None:
        """Takes back what environments gave whose episode was over.

        Args:
            t: int. The step.
        """
        over = ~self.alive[t]
        if not over.any():
            return
        for array in leaves(self.observation):
            array[t + 1, over] = array[t, over]
        for array in (self.action, self.reward, self.terminated):
            array[t, over] = 0
        self.truncated[t, over] = False

    def finish(self) -> None:
        """Cuts off what still runs, and fills the rows of no step."""
        for array in leaves(self.observation):
            array[self.steps + 1 :] = array[self.steps]
        self.truncated[-1] |= self.alive[-1] & ~self.terminated[-1]

    def is_over(self, t: int) -> np.ndarray:
        """Marks environments whose episode is over, `[B]`."""
        over: np.ndarray = ~self.alive[t]
        return over

    def valid(self) -> np.ndarray:
        """Marks the steps of the episodes, `[T, B]`."""
        return self.alive


class EpisodeCollector(Collector):
    """Plays one whole episode in each environment, from a reset.

    For agents that learn from Monte-Carlo returns. Taking what ends within a
    fixed number of steps instead would prefer short episodes. Steps after an
    environment's episode are not valid; an episode that reaches the horizon
    is cut there, as by a time limit.
    """

    record_kind = EpisodeRecord

    @property
    def adrift(self) -> bool:
        """Whether the environments are to be reset: always."""
        return True

    def go_on(self, simulation: dict[str, Any], observation: Any) -> bool:
        """Has the environments go on where others were."""
        return super().go_on({**simulation, "adrift": False}, observation)

    def _run(self, actor: Actor, noise: StepNoise, record: Record) -> None:
        """Acts, steps and stores until every episode has ended."""
        assert isinstance(record, EpisodeRecord)
        # Environments whose episode is over have begun another one, and may
        # forbid an action that their last observation allowed.
        record.acts_on_present = self._is_masked
        running = np.ones(self.env.num_envs, np.bool_)
        step = self._step
        if self.sequence_length is not None:
            step = self._remembered_step
        for t in range(self.horizon):
            record.alive[t] = running
            step(actor, noise, record, t)
            if not record.restarts_at(t):
                record.forget_others(t)
            running = running & ~(record.terminated[t] | record.truncated[t])
            if not running.any():
                break
        if self.sequence_length is not None:
            self._fill_memory(actor, record, self.sequence_length)
        record.finish()

    def _beginning(
        self, record: Record, t: int, resetting: np.ndarray
    ) -> np.ndarray:
        """Says that no other episode begins: what follows is of no account."""
        return np.zeros(self.env.num_envs, np.bool_)

    def _fill_memory(
        self, actor: Any, record: Record, sequence_length: int
    ) -> None:
        """Keeps something for the steps that are never taken."""
        for t in range(record.steps, self.horizon):
            record.keep_begins(actor.begins)
            if t % sequence_length == 0:
                record.keep_state(actor.state)
