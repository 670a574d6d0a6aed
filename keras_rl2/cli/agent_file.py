"""Saving an agent while it is being trained."""

from pathlib import Path
from typing import Any

import keras

from keras_rl2.cli.axis import STEPS
from keras_rl2.cli.axis import Axis
from keras_rl2.files.atomic_files import replacing


class AgentFile(keras.callbacks.Callback):
    """Saves the agent after a number of environment steps, or updates.

    Each write is atomic: if the process is stopped, the previous file remains.

    Args:
        path: Path. The `.keras` file.
        every: int. Environment steps from one saving to the next, between
            Keras epochs; 0 to save only when `save` is called.
        axis: `Axis`. The unit of `every`. Defaults to `STEPS`.
    """

    def __init__(self, path: Path, every: int, axis: Axis = STEPS) -> None:
        super().__init__()
        self.axis = axis
        self.path = path
        self.every = every
        self._due = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Counts from the steps that the agent has taken so far."""
        self._due = self.axis.count(self.model) + self.every

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Saves the agent if it is due.

        This is not done at the end of the previous epoch, since a checkpoint is
        written first, from which a training killed in between can be resumed.
        """
        done = self.axis.count(self.model)
        if self.every and done >= self._due:
            self._due = done + self.every
            self.save(self.model)

    def get_state(self) -> int:
        """Returns the count at which the next saving is due."""
        return self._due

    def set_state(self, state: int) -> None:
        """Restores a state of `get_state`.

        Args:
            state: int, as returned by `get_state`.
        """
        self._due = state

    def save(self, agent: keras.Model) -> None:
        """Saves an agent, replacing an existing file.

        Args:
            agent: `keras_rl2.Agent`.
        """
        with replacing(self.path) as unfinished:
            agent.save(unfinished)
