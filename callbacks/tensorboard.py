"""Curves, histograms and settings of a training for TensorBoard."""

import json
import os
from typing import Any

import keras
import numpy as np

from keras_rl2.arguments import check_at_least
from keras_rl2.arguments import check_flag
from keras_rl2.arguments import check_path
from keras_rl2.callbacks.event_writer import EventWriter
from keras_rl2.callbacks.protocols import Rounds
from keras_rl2.callbacks.protocols import as_agent
from keras_rl2.callbacks.protocols import takes_steps
from keras_rl2.callbacks.protocols import updates

_TAGS = {
    "env_steps": "time/total_timesteps",
    "steps_per_second": "time/fps",
    "updates_per_second": "time/updates_per_second",
    "episode_return": "rollout/ep_rew_mean",
    "episode_length": "rollout/ep_len_mean",
    "policy_loss": "train/policy_gradient_loss",
    "clip_ratio": "train/clip_range",
    "temperature": "train/ent_coef",
    "epsilon": "rollout/exploration_rate",
    "env_restarts": "rollout/env_restarts",
    "lag": "rollout/lag",
    "val_episode_return": "eval/mean_reward",
    "val_episode_length": "eval/mean_ep_length",
}
_SAMPLE_KEYS = ("advantage", "returns", "action")
_LONGEST_SETTING = 200


class TensorBoard(keras.callbacks.Callback):
    """Writes what `fit` logs for TensorBoard, over environment steps.

    The tags are those of Stable-Baselines3 (`rollout/ep_rew_mean`,
    `train/approx_kl`, `eval/mean_reward`, `time/fps`), so that its dashboards
    show both. Keras' own callback writes over epochs, which mean nothing where
    rollouts differ in size, and starts its batch axis anew with each `fit`;
    here a second `fit` goes on where the first one stopped. On an
    `OfflineDataset`, which takes no steps, the axis is that of updates.

    Values that are not finite are left out: before the first episode has
    ended there is no return.

    Args:
        log_dir: str or path. Directory to write to; each run needs its own.
        histogram_freq: int. Epochs from one set of histograms (advantages,
            returns, actions, every weight) to the next, beginning with the
            first epoch; 0 for none. Defaults to `10`.
        write_hyper_parameters: bool. Whether settings of agent, optimizers and
            rollouts, and the summary of the model, are written as text.
            Defaults to `True`.
        write_graph: bool. Whether the graph of the greedy policy is written.
            Defaults to `True`.

    Raises:
        ValueError: If `histogram_freq` is negative.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, passes=1,
    ...                              batch_size=32, seed=0)
    >>> agent = rl.PPO.for_env("CartPole-v1", seed=0)
    >>> log_dir = tempfile.mkdtemp()
    >>> history = agent.fit(rollouts, epochs=2, verbose=0,
    ...                     callbacks=[rl.callbacks.TensorBoard(log_dir)])
    >>> len(os.listdir(log_dir))
    1
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        *,
        histogram_freq: int = 10,
        write_hyper_parameters: bool = True,
        write_graph: bool = True,
    ) -> None:
        super().__init__()
        check_path(log_dir=log_dir)
        check_at_least(0, histogram_freq=histogram_freq)
        check_flag(
            write_hyper_parameters=write_hyper_parameters,
            write_graph=write_graph,
        )
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq = histogram_freq
        self.write_hyper_parameters = write_hyper_parameters
        self.write_graph = write_graph
        self._writer = EventWriter(log_dir)
        self._described: Any = None
        self._epochs = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Describes a model not seen before."""
        if self._described is self.model:
            return
        self._described = self.model
        if self.write_hyper_parameters:
            self._writer.text(self._step({}), _descriptions(self.model))
        agent = as_agent(self.model)
        if self.write_graph and agent is not None:
            self._writer.graph(
                agent.policy_function().get_concrete_function().graph
            )

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Writes the logs of the epoch, and histograms when they are due."""
        logs = dict(logs or {})
        logs.setdefault("clip_ratio", _clip_ratio(self.model))
        due = self.histogram_freq and self._epochs % self.histogram_freq == 0
        self._epochs += 1
        self._writer.write(
            self._step(logs),
            scalars=_scalars(logs, _log_std(self.model)),
            histograms=_arrays(self.model) if due else {},
        )

    def get_state(self) -> dict[str, Any]:
        """Returns what has been written so far, for a `fit` that is resumed."""
        return {"epochs": self._epochs, "files": self._writer.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave; cuts off what was written since.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._epochs = state["epochs"]
        self._writer.set_state(state["files"])

    def _step(self, logs: dict[str, Any]) -> int:
        """Returns the place on the axis: environment steps taken so far.

        Updates made so far, where the dataset takes no steps.
        """
        if not takes_steps(getattr(self.model, "rollouts", None)):
            return updates(self.model)
        steps = logs.get("env_steps", getattr(self.model, "env_steps", None))
        return self._epochs if steps is None else int(steps)


def _tag(key: str) -> str:
    """Returns where TensorBoard shows what the logs call `key`."""
    if key in _TAGS or "/" in key:
        return _TAGS.get(key, key)
    if key.startswith("val_"):
        return f"eval/{key.removeprefix('val_')}"
    return f"train/{key}"


def _scalars(logs: dict[str, Any], log_std: Any) -> dict[str, float]:
    """Returns all scalars by their tags."""
    scalars = {
        _tag(key): float(value)
        for key, value in logs.items()
        if value is not None and np.ndim(value) == 0
    }
    if "train/entropy" in scalars:
        # Stable-Baselines3 writes the term of its loss.
        scalars["train/entropy_loss"] = -scalars["train/entropy"]
    if log_std is not None:
        scalars["train/std"] = float(np.mean(np.exp(log_std)))
    return scalars


def _clip_ratio(model: Any) -> float | None:
    """Returns how far the policy may move at present, where that is bounded."""
    clip_ratio = getattr(model, "clip_ratio", None)
    if callable(clip_ratio):
        clip_ratio = clip_ratio(model.optimizer.iterations)
    return None if clip_ratio is None else float(clip_ratio)


def _log_std(model: Any) -> Any:
    """Returns a log standard deviation that the model itself holds."""
    log_std = getattr(model, "log_std", None)
    return None if log_std is None else log_std.value.numpy()


def _arrays(model: Any) -> dict[str, np.ndarray]:
    """Returns what histograms are made of, by their tags."""
    arrays = {}
    rollouts: Any = getattr(model, "rollouts", None)
    samples = getattr(rollouts, "samples", {})
    for key in _SAMPLE_KEYS:
        if key in samples:
            arrays[f"rollout/{key}"] = rollouts.valid_samples(key)
    for tag, weight in _tagged_weights(model).items():
        arrays[tag] = weight.value.numpy()
    return arrays


def _tagged_weights(model: Any) -> dict[str, Any]:
    """Returns all weights by tags that begin with the network's name."""
    owners = {
        id(weight): layer.name
        for layer in model.layers
        for weight in layer.weights
    }
    tagged: dict[str, Any] = {}
    for weight in model.weights:
        owner = owners.get(id(weight), model.name)
        tag = f"weights/{owner}/{weight.path.removeprefix(owner + '/')}"
        # Networks that were loaded may hold layers of the same name.
        while tag in tagged:
            tag += "_"
        tagged[tag] = weight
    return tagged


def _descriptions(model: Any) -> dict[str, str]:
    """Returns settings and summary of the model, as Markdown."""
    rows = [
        f"| {name} | {value} |"
        for name, value in _settings(model).items()
        if value is not None
    ]
    lines: list[str] = []
    model.summary(
        print_fn=lambda text, line_break=True: lines.append(text),
        expand_nested=True,
    )
    indented = "\n".join(f"    {x}" for x in "\n".join(lines).splitlines())
    return {
        "hyper_parameters": "\n".join(["| name | value |", "|-|-|", *rows]),
        "model_summary": indented,
    }


def _settings(model: Any) -> dict[str, str | None]:
    """Returns settings of agent, optimizers and rollouts by dotted names."""
    sections = {type(model).__name__: model.get_config()}
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    optimizers = getattr(optimizer, "optimizers", [optimizer])
    for index, part in enumerate(optimizers):
        again = f"_{index}" if index else ""
        sections[f"optimizer{again} ({part.name})"] = part.get_config()
    rollouts: Rounds | None = getattr(model, "rollouts", None)
    if rollouts is not None:
        sections[type(rollouts).__name__] = rollouts.settings()
    return {
        f"{section}.{key}": _short(value)
        for section, config in sections.items()
        for key, value in config.items()
    }


def _short(value: Any) -> str | None:
    """Returns a setting as JSON; None for networks and the like."""
    if isinstance(value, float):
        # An optimizer gives its float32 numbers with all their digits.
        return f"{value:.6g}"
    text = json.dumps(value, default=str)
    if len(text) > _LONGEST_SETTING:
        return None
    return text.replace("|", "\\|")
