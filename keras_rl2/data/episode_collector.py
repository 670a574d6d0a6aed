"""Collecting whole episodes."""

import numpy as np

from keras_rl2.data.actors import ActorSnapshot
from keras_rl2.data.collector import Collector
from keras_rl2.data.record import Record


class EpisodeCollector(Collector):
    """Plays one whole episode in each environment, from a reset.

    For agents that learn from Monte-Carlo returns. Taking what ends within a
    fixed number of steps instead would prefer short episodes. Steps after an
    environment's episode are not valid; an episode that reaches the horizon
    is cut there, as by a time limit.
    """

    @property
    def adrift(self) -> bool:
        """Whether the environments are to be reset: always."""
        return True

    def _run(
        self, actor: ActorSnapshot, noise: np.ndarray, record: Record
    ) -> None:
        """Acts, steps and stores until every episode has ended."""
        record.clear()
        running = np.ones(self.env.num_envs, np.bool_)
        for t in range(self.horizon):
            record.alive[t] = running
            self._step(actor, noise, record, t)
            running &= ~(record.terminated[t] | record.truncated[t])
            if not running.any():
                break
        ended = record.terminated | record.truncated
        record.terminated &= record.alive
        record.truncated &= record.alive
        record.truncated[-1] |= record.alive[-1] & ~ended[-1]
