"""Where a `fit` began, and how far it is."""

import dataclasses
from typing import Any

# Of a `fit` of which nothing is left.
_PAST_ALL_EPOCHS = 2**62


@dataclasses.dataclass(frozen=True)
class FitPosition:
    """How far a `fit` is, of one that may be resumed in another process.

    Attributes:
        first_epoch: int. The Keras epoch that it began with.
        warm_up: int. Environment steps that were to be taken before its first
            update.
        env_steps: int. Environment steps that the agent had been given by
            then.
        epoch: int. The Keras epoch that it is in.
        rounds: int. Rounds of that epoch that are done.
        total_steps: int or None. Environment steps that it was asked for;
            None where it counts epochs.
        last_epoch: int or None. The Keras epoch that it ends before; None
            where it counts epochs.
    """

    first_epoch: int
    warm_up: int
    env_steps: int
    epoch: int
    rounds: int = 0
    total_steps: int | None = None
    last_epoch: int | None = None

    @classmethod
    def beginning(cls, agent: Any, rounds: Any, epoch: int) -> "FitPosition":
        """Returns that of a `fit` which is about to begin.

        Args:
            agent: `keras_rl2.Agent`.
            rounds: `keras_rl2.data.RoundDataset`. Bound to it.
            epoch: int. The Keras epoch to begin with.

        Returns:
            `FitPosition`.
        """
        return cls(
            first_epoch=epoch,
            warm_up=rounds.steps_before_first_round,
            env_steps=agent.env_steps,
            epoch=epoch,
        )

    def at(self, epoch: int, rounds: int = 0) -> "FitPosition":
        """Returns a later one of the same `fit`.

        Args:
            epoch: int. The Keras epoch that it is in.
            rounds: int. Rounds of that epoch that are done. Defaults to `0`.

        Returns:
            `FitPosition`.
        """
        return dataclasses.replace(self, epoch=epoch, rounds=rounds)

    def until(self, total_steps: int | None, epoch: int) -> "FitPosition":
        """Returns the same of a `fit` with another end.

        Args:
            total_steps: int or None. Environment steps that it is asked for.
            epoch: int. The Keras epoch that it ends before.

        Returns:
            `FitPosition`.
        """
        if total_steps is None:
            return self
        return dataclasses.replace(
            self, total_steps=total_steps, last_epoch=epoch
        )

    def past_all(self) -> "FitPosition":
        """Returns that of a `fit` that has nothing left to do."""
        return self.at(_PAST_ALL_EPOCHS)

    @property
    def is_past_all(self) -> bool:
        """Whether there is nothing left to do."""
        return self.epoch == _PAST_ALL_EPOCHS
