"""Pruning of unpromising trials by Optuna."""

import importlib
import math
import warnings
from typing import Any

import keras

from keras_rl2.basics.arguments import check_has
from keras_rl2.basics.arguments import check_text
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.callbacks.protocols import rounds_of_fit


class OptunaPruning(keras.callbacks.Callback):
    """Reports a trial's progress to Optuna, and ends trials that it prunes.

    It reports at the end of each epoch with the value in its logs, over
    environment steps, so that trials with rounds of different sizes can be
    compared. Pruners compare trials at exactly the same steps: so resets of
    NEXT_STEP environments count as steps, as in `total_steps` of `fit`, and a
    round of whole episodes counts as its largest number of steps.

    NaN is not reported: there is no return before the first episode has
    ended, and Optuna would treat it as a failure.

    Args:
        trial: `optuna.Trial`. The trial to report to.
        monitor: str. A key of the logs, whose value the study maximises or
            minimises. Defaults to `"val_episode_return"`.

    Raises:
        ImportError: If Optuna is not installed.
        optuna.TrialPruned: In `fit`, when Optuna prunes the trial.

    Example:

    >>> import keras_rl2 as rl
    >>> import optuna
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, passes=1,
    ...                              batch_size=32, seed=0)
    >>> def objective(trial):
    ...     rate = trial.suggest_float("rate", 1e-4, 1e-2, log=True)
    ...     agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    ...     agent.compile(keras.optimizers.Adam(rate))
    ...     pruning = rl.callbacks.OptunaPruning(trial)
    ...     history = agent.fit(
    ...         rollouts, epochs=2, callbacks=[pruning], verbose=0,
    ...         validation_data=rl.EvaluationDataset("CartPole-v1", 1, seed=0))
    ...     return history.history["val_episode_return"][-1]
    >>> optuna.logging.disable_default_handler()
    >>> study = optuna.create_study(direction="maximize")
    >>> study.optimize(objective, n_trials=1)
    >>> list(study.best_trial.intermediate_values)
    [32, 64]

    Reference:
        [Akiba et al., 2019](https://arxiv.org/abs/1907.10902).
    """

    @refusing_unknown
    def __init__(self, trial: Any, monitor: str = "val_episode_return") -> None:
        super().__init__()
        check_has("a trial of Optuna", "report", "should_prune", trial=trial)
        check_text(monitor=monitor)
        try:
            self._optuna = importlib.import_module("optuna")
        except ImportError as error:
            raise ImportError(
                "Expected Optuna for `OptunaPruning`: pip install optuna. "
                f"Received: {error}"
            ) from error
        self.trial = trial
        self.monitor = monitor
        self._epochs = 0
        self._seen: set[str] = set()
        self._steps: int | None = None
        self._steps_per_epoch = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Computes the steps of an epoch."""
        self._seen = set()
        self._steps_per_epoch = 0
        rollouts = rounds_of_fit(self)
        if rollouts is None:
            return
        self._steps_per_epoch = (
            rollouts.rounds_per_epoch * rollouts.steps_per_round
        )
        if self._steps is None:
            self._steps = int(self.model.env_steps)
        self._steps += rollouts.steps_before_first_round

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Reports the value, and ends the trial if Optuna prunes it."""
        logs = logs or {}
        self._epochs += 1
        self._seen.update(logs)
        step = self._count(logs)
        value = logs.get(self.monitor)
        if value is None or not math.isfinite(value):
            return
        self.trial.report(float(value), step)
        if self.trial.should_prune():
            raise self._optuna.TrialPruned(
                f"{self.monitor}={value:.6g} after {step} steps"
            )

    def get_state(self) -> dict[str, Any]:
        """Returns the position on Optuna's axis, for a resumed `fit`."""
        return {
            "epochs": self._epochs,
            "seen": self._seen,
            "steps": self._steps,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state that `get_state` returned.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._epochs = state["epochs"]
        self._seen = state["seen"]
        self._steps = state["steps"]

    def _count(self, logs: dict[str, Any]) -> int:
        """Counts an epoch, and returns the position on Optuna's axis."""
        if self._steps is not None and self._steps_per_epoch:
            self._steps += self._steps_per_epoch
            return self._steps
        return int(logs.get("env_steps", self._epochs))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Warns if the value was never in the logs."""
        if self.monitor not in self._seen:
            warnings.warn(
                f"Expected {self.monitor!r} among the logs of `fit`, which "
                "needs `validation_data` for names that begin with val_. "
                f"Received: {sorted(self._seen)}. Nothing was reported to "
                "Optuna",
                stacklevel=2,
            )
