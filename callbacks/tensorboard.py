"""Curves, histograms and settings of a training for TensorBoard."""

import json
import numbers
import os
from collections.abc import Mapping
from typing import Any

import keras

from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.callbacks import curves
from keras_rl2.callbacks import histograms
from keras_rl2.callbacks.event_writer import EventWriter
from keras_rl2.callbacks.protocols import as_agent


class TensorBoard(keras.callbacks.Callback):
    """Writes the logs of `fit` for TensorBoard, over environment steps.

    The tags are those of Stable-Baselines3 (`rollout/ep_rew_mean`,
    `train/approx_kl`, `eval/mean_reward`, `time/fps`), so that its dashboards
    show both. Keras' own callback writes over epochs, which cannot be compared
    between rollouts of different sizes, and restarts its batch axis in each
    `fit`; here a second `fit` continues the axis of the first. With an
    `OfflineDataset`, which takes no steps, the axis is that of updates.

    Values that are not finite are left out: before the first episode has
    ended there is no return.

    Args:
        log_dir: str or path. Directory to write to; each run needs its own.
        histogram_freq: int. Epochs from one set of histograms (every weight;
            on-policy advantages, returns and actions) to the next, beginning
            with the first epoch; 0 for none. Defaults to `10`.
        write_hyper_parameters: bool. Whether settings of agent, optimizers and
            rollouts are written, for the HParams tab and as text, and the
            summary of the model. Defaults to `True`.
        write_graph: bool. Whether the graph of the greedy policy is written.
            Defaults to `True`.
        hyper_parameters: Mapping of numbers, booleans and texts. The
            hyper-parameters of this run in the HParams tab, e.g. those that a
            tuner varies. Runs with equal ones, e.g. of several seeds, are
            shown as one, with their mean; values that are None are left out.
            None for all settings except seeds. Defaults to `None`.

    Raises:
        ValueError: If `histogram_freq` is negative, or the tab cannot show a
            hyper-parameter.

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

    @refusing_unknown
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
        check_path(log_dir=log_dir)
        check_at_least(0, histogram_freq=histogram_freq)
        check_flag(
            write_hyper_parameters=write_hyper_parameters,
            write_graph=write_graph,
        )
        if hyper_parameters is not None:
            _check_hyper_parameters(hyper_parameters)
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq = histogram_freq
        self.write_hyper_parameters = write_hyper_parameters
        self.write_graph = write_graph
        self.hyper_parameters = hyper_parameters
        self._writer = EventWriter(log_dir)
        self._described: Any = None
        self._epochs = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Writes settings and graph of a new model."""
        if self._described is self.model:
            return
        self._described = self.model
        if self.write_hyper_parameters:
            self._write_settings()
        agent = as_agent(self.model)
        if self.write_graph and agent is not None:
            self._writer.graph(
                agent.policy_function().get_concrete_function().graph
            )

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Marks the run as finished in the HParams tab."""
        if self.write_hyper_parameters:
            self._writer.end_of_run(self._position(logs or {}))

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Writes the logs of the epoch, and histograms when they are due."""
        logs = logs or {}
        due = self._histograms_are_due
        self._epochs += 1
        self._writer.write(
            self._position(logs),
            scalars=curves.scalars(self.model, logs),
            histograms=self._histograms() if due else {},
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

    @property
    def _histograms_are_due(self) -> bool:
        """Whether histograms of this epoch are written."""
        freq = self.histogram_freq
        return freq > 0 and self._epochs % freq == 0

    def _histograms(self) -> dict[str, Any]:
        """Returns the arrays for histograms."""
        found = histograms.of_samples(self.model)
        return found | histograms.of_weights(self.model)

    def _write_settings(self) -> None:
        """Writes settings, as text and for the HParams tab."""
        step = self._position({})
        self._writer.text(step, _descriptions(self.model))
        shown = self.hyper_parameters
        if shown is None:
            shown = curves.hyper_parameters(self.model)
        self._writer.hyper_parameters(step, present(**shown))

    def _position(self, logs: dict[str, Any]) -> int:
        """Returns the position on the axis."""
        return curves.position(self.model, logs, self._epochs)


def _descriptions(model: keras.Model) -> dict[str, str]:
    """Returns settings and summary of the model, as Markdown."""
    rows = [
        f"| {name} | {_cell(value)} |"
        for name, value in curves.settings(model).items()
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


def _cell(value: object) -> str:
    """Returns a setting as text for a table."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("|", "\\|")


def _check_hyper_parameters(given: object) -> None:
    """Checks that the HParams tab can show the values, before training."""
    if isinstance(given, Mapping) and all(
        isinstance(name, str)
        and isinstance(value, bool | str | numbers.Real | None)
        for name, value in given.items()
    ):
        return
    raise ValueError(
        "Expected `hyper_parameters` to be a mapping from names to numbers, "
        f"booleans and texts. Received: hyper_parameters={given!r:.200}"
    )
