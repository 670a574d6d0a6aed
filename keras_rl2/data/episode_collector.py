"""Collecting whole episodes."""

import numpy as np

from keras_rl2.data.actors import Actor
from keras_rl2.data.collector import Collector
from keras_rl2.data.collector import StepNoise
from keras_rl2.data.record import Record
from keras_rl2.envs import VectorEnvAdapter
from keras_rl2.envs.timed_env import TimedEnv
from keras_rl2.policy_heads import PolicyHead


class EpisodeRecord(Record):
    """A record of the first episode of each environment and of no other.

    Steps that are never taken, or come after that episode, are not valid and
    hold its last observation, in every autoreset mode: what an environment
    does with nobody's use of it, be it a NaN, leaves no trace.

    Args:
        env: `VectorEnvAdapter`. As of `Record`.
        head: `PolicyHead`. As of `Record`.
        horizon: int. As of `Record`.
        first: `[B, ...]`. As of `Record`.
    """

    def __init__(
        self,
        env: VectorEnvAdapter | TimedEnv,
        head: PolicyHead,
        horizon: int,
        first: np.ndarray,
    ) -> None:
        super().__init__(env, head, horizon, first)
        for array in (self.action, self.reward):
            array[:] = 0
        self.alive = np.zeros(self.reward.shape, np.bool_)
        for flags in (self.terminated, self.truncated):
            flags[:] = False

    def keep_final(self, t: int, final_observation: np.ndarray) -> None:
        """Puts last observations in the place of those of the resets.

        Args:
            t: int. The step.
            final_observation: `[B, ...]`. Rows of episodes that ended count.
        """
        ended = self.terminated[t] | self.truncated[t]
        self.observation[t + 1, ended] = final_observation[ended]

    def forget_others(self, t: int) -> None:
        """Takes back what environments gave whose episode was over.

        Args:
            t: int. The step.
        """
        over = ~self.alive[t]
        if not over.any():
            return
        self.observation[t + 1, over] = self.observation[t, over]
        for array in (self.action, self.reward, self.terminated):
            array[t, over] = 0
        self.truncated[t, over] = False

    def finish(self) -> None:
        """Cuts off what still runs, and fills the rows of no step."""
        self.observation[self.steps + 1 :] = self.observation[self.steps]
        self.truncated[-1] |= self.alive[-1] & ~self.terminated[-1]

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

    def _run(self, actor: Actor, noise: StepNoise, record: Record) -> None:
        """Acts, steps and stores until every episode has ended."""
        assert isinstance(record, EpisodeRecord)
        running = np.ones(self.env.num_envs, np.bool_)
        for t in range(self.horizon):
            record.alive[t] = running
            self._step(actor, noise, record, t)
            record.forget_others(t)
            running = running & ~(record.terminated[t] | record.truncated[t])
            if not running.any():
                break
        record.finish()
