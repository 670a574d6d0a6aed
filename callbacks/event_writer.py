"""Writing event files for TensorBoard."""

import contextlib
import math
import os
import struct
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

_BINS = 30


class EventWriter:
    """Writes a file of events for TensorBoard, over environment steps.

    The file is made by the first event, and flushed after each call, so that
    TensorBoard shows events at once.

    Args:
        log_dir: str or path. Directory of the file.

    Example:

    >>> import tempfile
    >>> log_dir = tempfile.mkdtemp()
    >>> writer = EventWriter(log_dir)
    >>> writer.write(64, scalars={"loss": 1.0, "episode_return": np.nan})
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
        """Writes curves and histograms by their tags.

        Args:
            step: int. Position on the axis, in environment steps.
            scalars: dict of floats. Values that are not finite are left
                out. Defaults to `None`.
            histograms: dict of arrays of any shape. Values that are not finite
                are left out. Defaults to `None`.
        """
        values = [
            tf.compat.v1.Summary.Value(tag=tag, simple_value=value)
            for tag, value in (scalars or {}).items()
            if math.isfinite(value)
        ]
        for tag, array in (histograms or {}).items():
            finite = array[np.isfinite(array)].astype(np.float64)
            if finite.size:
                values.append(
                    tf.compat.v1.Summary.Value(tag=tag, histo=_counts(finite))
                )
        self._write(step, tf.compat.v1.Summary(value=values))

    def gif(self, step: int, tag: str, encoded: bytes) -> None:
        """Writes a GIF, which TensorBoard shows as a video.

        Args:
            step: int. Position on the axis, in environment steps.
            tag: str. Name of the image.
            encoded: bytes. The GIF.
        """
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
        """Writes texts.

        Args:
            step: int. Position on the axis, in environment steps.
            texts: dict of Markdown by tags.
        """
        with self._writing():
            for tag, text in texts.items():
                tf.summary.text(tag, text, step=step)

    def graph(self, graph: tf.Graph) -> None:
        """Writes a graph of TensorFlow.

        Args:
            graph: `tf.Graph`.
        """
        with self._writing():
            tf.summary.graph(graph)

    def hyper_parameters(self, step: int, values: Mapping[str, Any]) -> None:
        """Writes the hyper-parameters for the HParams tab.

        Runs with equal values are one row of its table.

        Args:
            step: int. Position on the axis, in environment steps.
            values: dict of numbers, booleans and texts.
        """
        # Imported on demand, since it is slow.
        from tensorboard.plugins.hparams import api

        self._write(step, api.hparams_pb(dict(values)))

    def end_of_run(self, step: int) -> None:
        """Marks the run as successful in the HParams tab.

        Args:
            step: int. Position on the axis, in environment steps.
        """
        from tensorboard.plugins.hparams import api_pb2
        from tensorboard.plugins.hparams import summary

        self._write(step, summary.session_end_pb(api_pb2.STATUS_SUCCESS))

    def get_state(self) -> dict[str, int]:
        """Returns the present lengths of the event files.

        Returns:
            dict from the name of a file to its bytes.
        """
        if self._file is not None:
            self._file.flush()
        return {each.name: each.stat().st_size for each in self._files()}

    def set_state(self, state: Mapping[str, int]) -> None:
        """Removes events written after `get_state`, by a killed process.

        Args:
            state: dict, as returned by `get_state`.
        """
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
    counts, edges = np.histogram(array, _BINS)
    return tf.compat.v1.HistogramProto(
        min=array.min(),
        max=array.max(),
        num=array.size,
        sum=array.sum(),
        sum_squares=np.square(array).sum(),
        bucket_limit=edges[1:],
        bucket=counts,
    )
