"""Logs of `fit` for Weights & Biases, MLflow and other trackers.

The tags are those of Stable-Baselines3, so that dashboards show both.
"""

import json
import math
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.callbacks.run import Logs
from keras_rl2.updates.skipped_updates import parts_of


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
    With an `OfflineDataset` each update counts as a step.

    Values that are not finite are left out: before the first episode has
    ended there is no return.

    Args:
        log: Callable. Called after each epoch as `log(values, step=step)`,
            with a dict of floats by their tags and an int.
        log_settings: Callable or None. Called once with a dict of settings of
            agent, optimizers and dataset by dotted names, such as
            `agent.gamma`. Defaults to `None`.

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

    @arguments.refusing_unknown
    def __init__(
        self,
        log: Callable[..., object],
        log_settings: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        super().__init__()
        arguments.check_has(
            "a function of a tracker, e.g. `wandb_run.log`",
            "__call__",
            log=log,
            **arguments.present(log_settings=log_settings),
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
        self.log_settings(settings(self.model))

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Passes the logs of the epoch."""
        logs = logs or {}
        self._epochs += 1
        step = position(self.model, logs, self._epochs)
        self.log(scalars(self.model, logs), step=step)


_TAGS = {
    "env_steps": "time/total_timesteps",
    "steps_per_second": "time/fps",
    "updates_per_second": "time/updates_per_second",
    "episode_return": "rollout/ep_rew_mean",
    "episode_length": "rollout/ep_len_mean",
    "policy_loss": "train/policy_gradient_loss",
    "entropy": "train/entropy_loss",
    "clip_ratio": "train/clip_range",
    "temperature": "train/ent_coef",
    "epsilon": "rollout/exploration_rate",
    "lag": "rollout/lag",
    "clipped_observations": "rollout/clipped_observations",
    "clipped_rewards": "rollout/clipped_rewards",
    "val_episode_return": "eval/mean_reward",
    "val_episode_length": "eval/mean_ep_length",
}
# Stable-Baselines3 logs the term of its loss, the negative entropy.
_NEGATED = ("entropy",)
_LONGEST_SETTING = 200
# Settings that do not affect learning, or differ between runs of one kind.
_NO_HYPER_PARAMETERS = ("name", "dtype", "seed")


def position(model: keras.Model, logs: Mapping[str, Any], epochs: int) -> int:
    """Returns the position on the axis: steps, and updates without steps."""
    steps = logs.get("env_steps", getattr(model, "env_steps", epochs))
    return int(steps) + getattr(model, "offline_updates", 0)


def scalars(model: keras.Model, logs: Mapping[str, Any]) -> dict[str, float]:
    """Returns all finite numbers after an epoch, by their tags."""
    clip_ratio = getattr(model, "clip_ratio", None)
    if callable(clip_ratio):
        clip_ratio = clip_ratio(model.optimizer.iterations)
    numbers = {"clip_ratio": clip_ratio, **logs}
    by_tag = {
        _tag(key): -float(value) if key in _NEGATED else float(value)
        for key, value in numbers.items()
        if value is not None and np.ndim(value) == 0 and math.isfinite(value)
    }
    log_std = getattr(model, "log_std", None)
    if log_std is not None:
        by_tag["train/std"] = float(np.mean(np.exp(log_std.value.numpy())))
    return by_tag


def settings(model: keras.Model) -> dict[str, Any]:
    """Returns settings of agent, optimizers and dataset by dotted names.

    The names are those of presets for all algorithms: `agent.gamma`,
    `optimizer.learning_rate`, `dataset.horizon`.
    """
    sections = {"agent": model.get_config()}
    for index, part in enumerate(parts_of(model.optimizer)):
        suffix = f"_{index}" if index else ""
        sections[f"optimizer{suffix}"] = part.get_config()
    if getattr(model, "rollouts", None) is not None:
        sections["dataset"] = model.rollouts.settings()
    return {"algorithm": type(model).__name__} | {
        f"{section}.{key}": plain
        for section, config in sections.items()
        for key, value in config.items()
        if (plain := _plain(value)) is not None
    }


def hyper_parameters(model: keras.Model) -> dict[str, Any]:
    """Returns the settings that distinguish kinds of runs.

    Seeds are left out: runs that differ only in them are of one kind.
    """
    return {
        key: value
        for key, value in settings(model).items()
        if (last := key.rpartition(".")[2]) not in _NO_HYPER_PARAMETERS
        and not last.endswith("_space")
    }


def _tag(key: str) -> str:
    """Returns TensorBoard's tag for a key of the logs."""
    stem, *player = key.split("/", 1)
    if stem in _TAGS:
        return "/".join([_TAGS[stem], *player])
    if player:
        return key
    if key.startswith("val_"):
        return f"eval/{key.removeprefix('val_')}"
    return f"train/{key}"


def _plain(value: object) -> Any:
    """Returns a setting as one value; None for networks and the like."""
    if isinstance(value, float):
        # Optimizers return float32 numbers with all digits of a float.
        return float(f"{value:.6g}")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping) and "schedules" in value.get("module", ""):
        numbers = ", ".join(
            f"{key}={each:.6g}"
            for key, each in value["config"].items()
            if type(each) in (int, float)
        )
        return f"{value['class_name']}({numbers})"
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_SETTING else None
