"""Curves, histograms and settings of a training for TensorBoard."""

import contextlib
import json
import os
import struct
import textwrap
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.basics import arguments
from keras_rl2.callbacks import tracker
from keras_rl2.callbacks.run import Logs

_SAMPLE_KEYS = ("advantage", "returns", "action")
_HISTOGRAM_BINS = 30


class TensorBoard(keras.callbacks.Callback):
    """Writes the logs of `fit` for TensorBoard, over environment steps.

    The tags are those of Stable-Baselines3 (`rollout/ep_rew_mean`,
    `train/approx_kl`, `eval/mean_reward`, `time/fps`), so that its dashboards
    show both. Keras' own callback writes over epochs, which cannot be compared
    between rollouts of different sizes, and restarts its batch axis in each
    `fit`; here a second `fit` continues the axis of the first. With an
    `OfflineDataset`, which takes no steps, each update counts as one.

    Values that are not finite are left out: before the first episode has
    ended there is no return.

    Args:
        log_dir: str or path. Directory to write to; each run needs its own.
        histogram_freq: int. Epochs from one set of histograms (every weight;
            on-policy advantages, returns and actions, except of rounds in the
            graph) to the next, beginning with the first epoch; 0 for none.
            Defaults to `10`.
        write_hyper_parameters: bool. Whether settings of agent, optimizers and
            rollouts are written, for the HParams tab and as text, and the
            summary of the model. Defaults to `True`.
        write_graph: bool. Whether the graph of the greedy policy is written.
            Defaults to `True`.
        hyper_parameters: Mapping of numbers, booleans and texts. The
            hyper-parameters of this run in the HParams tab, such as those that
            a tuner varies. Runs with equal ones, for example of several seeds,
            are shown as one, with their mean; values that are None are left
            out. None for all settings except seeds, names, dtypes and spaces.
            Defaults to `None`.

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

    @arguments.refusing_unknown
    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        *,
        histogram_freq: int = 10,
        write_hyper_parameters: bool = True,
        write_graph: bool = True,
        hyper_parameters: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        arguments.check_path(log_dir=log_dir)
        arguments.check_at_least(0, histogram_freq=histogram_freq)
        arguments.check_flag(
            write_hyper_parameters=write_hyper_parameters,
            write_graph=write_graph,
        )
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq = histogram_freq
        self.write_hyper_parameters = write_hyper_parameters
        self.write_graph = write_graph
        self.hyper_parameters = hyper_parameters
        self._writer = EventWriter(log_dir)
        self._described: Any = None
        self._epochs = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Writes settings and graph of a new model."""
        if self._described is self.model:
            return
        self._described = self.model
        if self.write_hyper_parameters:
            step, values = self._position({}), self.hyper_parameters
            if values is None:
                values = tracker.hyper_parameters(self.model)
            self._writer.text(step, _descriptions(self.model))
            self._writer.hyper_parameters(step, arguments.present(**values))
        if self.write_graph and hasattr(self.model, "policy"):
            function = self.model.policy.function().get_concrete_function()
            self._writer.graph(function.graph)

    def on_train_end(self, logs: Logs = None) -> None:
        """Marks the run as finished in the HParams tab."""
        if self.write_hyper_parameters:
            self._writer.end_of_run(self._position(logs or {}))

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Writes the logs of the epoch, and histograms when they are due."""
        logs = logs or {}
        histograms: dict[str, Any] = {}
        if self.histogram_freq and self._epochs % self.histogram_freq == 0:
            histograms = _samples(self.model) | _weights(self.model)
        self._epochs += 1
        self._writer.write(
            self._position(logs),
            scalars=tracker.scalars(self.model, logs),
            histograms=histograms,
        )

    def get_state(self) -> dict[str, Any]:
        """Returns the state for a `fit` that is resumed."""
        return {"epochs": self._epochs, "files": self._writer.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state, and removes events written after it.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._epochs = state["epochs"]
        self._writer.set_state(state["files"])

    def _position(self, logs: dict[str, Any]) -> int:
        """Returns the position on the axis."""
        return tracker.position(self.model, logs, self._epochs)


def _descriptions(model: keras.Model) -> dict[str, str]:
    """Returns settings and summary of the model, as Markdown."""
    rows = ["| name | value |", "|-|-|"]
    for name, value in tracker.settings(model).items():
        text = value if isinstance(value, str) else json.dumps(value)
        cell = text.replace("|", "\\|")
        rows.append(f"| {name} | {cell} |")
    lines: list[str] = []
    model.summary(
        print_fn=lambda text, line_break=True: lines.append(text),
        expand_nested=True,
    )
    return {
        "hyper_parameters": "\n".join(rows),
        "model_summary": textwrap.indent("\n".join(lines), " " * 4),
    }


def _samples(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns arrays of the last on-policy rollout, by their tags."""
    rollouts: Any = getattr(model, "rollouts", None)
    return {
        f"rollout/{key}": rollouts.valid_samples(key)
        for key in _SAMPLE_KEYS
        if key in getattr(rollouts, "samples", {})
    }


def _weights(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns all weights but counters, by tags that begin with a network."""
    owners = {
        id(weight): layer.name
        for layer in model.layers
        for weight in layer.weights
    }
    tagged: dict[str, np.ndarray] = {}
    for weight in model.weights:
        array = weight.value.numpy()
        if array.dtype.kind in "iu":
            continue
        owner = owners.get(id(weight), model.name)
        tag = f"weights/{owner}/{weight.path.removeprefix(owner + '/')}"
        # Loaded networks may have layers of the same name.
        while tag in tagged:
            tag += "_"
        tagged[tag] = array
    return tagged


class EventWriter:
    """Writes a file of events for TensorBoard, over environment steps.

    The file is made by the first event, and flushed after each call, so that
    TensorBoard shows events at once.

    Example:

    >>> import tempfile
    >>> log_dir = tempfile.mkdtemp()
    >>> writer = EventWriter(log_dir)
    >>> writer.write(64, scalars={"loss": 1.0, "episode_return": 21.5})
    >>> len(os.listdir(log_dir))
    1
    """

    def __init__(self, log_dir: str | os.PathLike[str]) -> None:
        self.log_dir = os.fspath(log_dir)
        self._file: Any = None

    def write(
        self,
        step: int,
        *,
        scalars: Mapping[str, float] | None = None,
        histograms: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Writes curves, and histograms of finite numbers, by their tags."""
        values = [
            tf.compat.v1.Summary.Value(tag=tag, simple_value=value)
            for tag, value in (scalars or {}).items()
        ]
        for tag, array in (histograms or {}).items():
            finite = array[np.isfinite(array)].astype(np.float64)
            if finite.size:
                values.append(
                    tf.compat.v1.Summary.Value(tag=tag, histo=_counts(finite))
                )
        self._write(step, tf.compat.v1.Summary(value=values))

    def gif(self, step: int, tag: str, encoded: bytes) -> None:
        """Writes a GIF, which TensorBoard shows as a video."""
        width, height = struct.unpack("<HH", encoded[6:10])
        image = tf.compat.v1.Summary.Image(
            width=width,
            height=height,
            colorspace=3,
            encoded_image_string=encoded,
        )
        value = tf.compat.v1.Summary.Value(tag=tag, image=image)
        self._write(step, tf.compat.v1.Summary(value=[value]))

    def text(self, step: int, texts: Mapping[str, str]) -> None:
        """Writes texts."""
        with self._writing():
            for tag, text in texts.items():
                tf.summary.text(tag, text, step=step)

    def graph(self, graph: tf.Graph) -> None:
        """Writes a graph of TensorFlow."""
        with self._writing():
            tf.summary.graph(graph)

    def hyper_parameters(self, step: int, values: Mapping[str, Any]) -> None:
        """Writes the hyper-parameters for the HParams tab.

        Runs with equal values are one row of its table.
        """
        # Imported on demand, since it is slow.
        from tensorboard.plugins.hparams import api

        self._write(step, api.hparams_pb(dict(values)))

    def end_of_run(self, step: int) -> None:
        """Marks the run as successful in the HParams tab."""
        from tensorboard.plugins.hparams import api_pb2
        from tensorboard.plugins.hparams import summary

        self._write(step, summary.session_end_pb(api_pb2.STATUS_SUCCESS))

    def get_state(self) -> dict[str, int]:
        """Returns the present lengths of the event files."""
        if self._file is not None:
            self._file.flush()
        return {each.name: each.stat().st_size for each in self._files()}

    def set_state(self, state: Mapping[str, int]) -> None:
        """Removes events written after `get_state`, by a killed process."""
        for each in self._files():
            if each.name not in state:
                each.unlink()
            elif each.stat().st_size > state[each.name]:
                os.truncate(each, state[each.name])
        # The writer of a removed file would go on with it.
        self._file = None

    def _files(self) -> list[Path]:
        """Returns the event files in the directory."""
        return sorted(Path(self.log_dir).glob("events.out.tfevents.*"))

    def _write(self, step: int, summary: Any) -> None:
        """Writes one event: `tf.summary.scalar` costs 0.1 ms for each."""
        with self._writing():
            serialized = summary.SerializeToString()
            tf.summary.experimental.write_raw_pb(serialized, step)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Makes the file if there is none, and flushes it at the end."""
        if self._file is None:
            self._file = tf.summary.create_file_writer(self.log_dir)
        with self._file.as_default():
            yield
        self._file.flush()


def _counts(array: np.ndarray) -> Any:
    """Returns a histogram in TensorBoard's form."""
    counts, edges = np.histogram(array, _HISTOGRAM_BINS)
    return tf.compat.v1.HistogramProto(
        min=array.min(),
        max=array.max(),
        num=array.size,
        sum=array.sum(),
        sum_squares=np.square(array).sum(),
        bucket_limit=edges[1:],
        bucket=counts,
    )
