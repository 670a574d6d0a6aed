"""Saving an agent while it is being trained."""

import os
from pathlib import Path
from typing import Any

import keras


class AgentFile(keras.callbacks.Callback):
    """Saves the agent every so many environment steps.

    A file is never seen half written: it gets its name when it is complete,
    so that whatever stops the process leaves the file before it.

    Args:
        path: Path. The `.keras` file.
        every: int. Environment steps from one saving to the next, at ends of
            Keras epochs; 0 to save only when `save` is called.
    """

    def __init__(self, path: Path, every: int) -> None:
        super().__init__()
        self.path = path
        self.every = every
        self._due = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Counts from the steps that the agent has taken so far."""
        self._due = self.model.env_steps + self.every

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Saves if it is time to."""
        if self.every and self.model.env_steps >= self._due:
            self._due = self.model.env_steps + self.every
            self.save(self.model)

    def save(self, agent: keras.Model) -> None:
        """Saves an agent in place of the file that was there.

        Args:
            agent: `keras_rl2.Agent`. What is saved.
        """
        # Keras insists on the ending.
        unfinished = self.path.with_name(f"{self.path.stem}.partial.keras")
        try:
            agent.save(unfinished)
            os.replace(unfinished, self.path)
        finally:
            unfinished.unlink(missing_ok=True)
