"""Logs of `fit` for Weights & Biases, MLflow and other trackers."""

import math
from collections.abc import Callable
from typing import Any

import keras

from keras_rl2.basics.arguments import check_has
from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.callbacks import curves
from keras_rl2.callbacks.run import Logs


class Tracker(keras.callbacks.Callback):
    """Passes logs of `fit` to an experiment tracker, over environment steps.

    Trackers have a function for numbers at a step, and one for settings. This
    callback needs no more, so it works with any tracker, and with a custom
    one:

    | tracker | |
    | --- | --- |
    | Weights & Biases | `Tracker(run.log, run.config.update)` |
    | MLflow | `Tracker(mlflow.log_metrics, mlflow.log_params)` |
    | Comet | `Tracker(experiment.log_metrics, experiment.log_parameters)` |

    Their own callbacks for Keras count epochs and batches, which cannot be
    compared between rollouts of different sizes. Here the axis and the tags
    are those of `keras_rl2.callbacks.TensorBoard` (`rollout/ep_rew_mean`,
    `eval/mean_reward`), and a second `fit` continues the axis of the first.
    With an `OfflineDataset` the axis is that of updates.

    Values that are not finite are left out: before the first episode has
    ended there is no return.

    Args:
        log: Callable. Called after each epoch as `log(values, step=step)`,
            with a dict of floats by their tags and an int.
        log_settings: Callable or None. Called once with a dict of settings of
            agent, optimizers and dataset by dotted names, e.g. `agent.gamma`.
            Defaults to `None`.

    Raises:
        ValueError: If one of them is not callable.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, passes=1,
    ...                              batch_size=32, seed=0)
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> settings, steps = {}, []
    >>> tracker = rl.callbacks.Tracker(
    ...     lambda values, step: steps.append(step), settings.update)
    >>> history = agent.fit(rollouts, epochs=2, callbacks=[tracker], verbose=0)
    >>> len(steps), settings["algorithm"], settings["dataset.horizon"]
    (2, 'PPO', 32)
    """

    @refusing_unknown
    def __init__(
        self,
        log: Callable[..., object],
        log_settings: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        super().__init__()
        check_has(
            "a function of a tracker, e.g. `wandb_run.log`",
            "__call__",
            log=log,
            **present(log_settings=log_settings),
        )
        self.log = log
        self.log_settings = log_settings
        self._described_model: Any = None
        self._epochs = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Passes the settings of a new model."""
        if self.log_settings is None or self._described_model is self.model:
            return
        self._described_model = self.model
        self.log_settings(curves.settings(self.model))

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Passes the logs of the epoch."""
        logs = logs or {}
        self._epochs += 1
        values = {
            tag: value
            for tag, value in curves.scalars(self.model, logs).items()
            if math.isfinite(value)
        }
        step = curves.position(self.model, logs, self._epochs)
        self.log(values, step=step)
