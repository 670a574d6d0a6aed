"""Pruning of unpromising trials by Optuna."""

import importlib
import math
from typing import Any

import keras

from keras_rl2.basics.arguments import check_has
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.callbacks.run import Logs
from keras_rl2.callbacks.run import rounds_of_fit


class OptunaPruning(keras.callbacks.Callback):
    """Reports a trial's progress to Optuna, and ends trials that it prunes.

    It reports at the end of each epoch with the value in its logs, over
    environment steps, so that trials with rounds of different sizes can be
    compared. Pruners compare trials at exactly the same steps: so resets of
    NEXT_STEP environments count as steps, as in `total_steps` of `fit`, and a
    round of whole episodes counts as its largest number of steps. With an
    `OfflineDataset`, which takes no steps, it counts updates.

    Args:
        trial: `optuna.Trial`. The trial to report to.
        monitor: str. A key of the logs, whose value the study maximises or
            minimises. Defaults to `"val_episode_return"`.

    Raises:
        optuna.TrialPruned: In `fit`, when Optuna prunes the trial.

    Example:

    >>> def objective(trial):
    ...     agent.compile(keras.optimizers.Adam(
    ...         trial.suggest_float("rate", 1e-4, 1e-2, log=True)))
    ...     history = agent.fit(
    ...         rollouts, total_steps=20_000, validation_data=episodes,
    ...         callbacks=[OptunaPruning(trial)])
    ...     return history.history["val_episode_return"][-1]
    """

    @refusing_unknown
    def __init__(self, trial: Any, monitor: str = "val_episode_return") -> None:
        super().__init__()
        check_has("a trial of Optuna", "report", "should_prune", trial=trial)
        self.trial = trial
        self.monitor = monitor
        self._steps: int | None = None
        self._env_steps_of_epoch = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Computes the steps of an epoch."""
        rollouts = rounds_of_fit(self)
        if rollouts is None:
            return
        rounds = self.params["steps"] // rollouts.updates_per_round
        self._env_steps_of_epoch = rounds * (
            rollouts.steps_per_round or rollouts.updates_per_round
        )
        if self._steps is None:
            self._steps = int(self.model.env_steps)
        self._steps += rollouts.steps_before_first_round

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Reports the value, and ends the trial if Optuna prunes it."""
        logs = logs or {}
        step = int(logs.get("env_steps", epoch + 1))
        if self._steps is not None:
            self._steps += self._env_steps_of_epoch
            step = self._steps
        value = logs.get(self.monitor)
        # NaN: there is no return before the first episode has ended.
        if value is None or not math.isfinite(value):
            return
        self.trial.report(float(value), step)
        if self.trial.should_prune():
            # Where there is a trial, Optuna is installed.
            raise importlib.import_module("optuna").TrialPruned(
                f"{self.monitor}={value:.6g} after {step} steps"
            )
