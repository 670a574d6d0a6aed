"""Measurements of a training, and warnings of known faults with remedies."""

import warnings
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.callbacks.diagnostic_rules import Faults
from keras_rl2.callbacks.diagnostic_rules import TrainingWarning
from keras_rl2.callbacks.protocols import Rounds
from keras_rl2.callbacks.protocols import rollouts_of

_SECTIONS = ("environment", "acting", "preparing", "update", "rest")
_CHOICES = (
    gymnasium.spaces.Discrete,
    gymnasium.spaces.MultiDiscrete,
    gymnasium.spaces.MultiBinary,
)


class Diagnostics(keras.callbacks.Callback):
    """Measures the progress of a training, and warns of known faults.

    It adds to the logs of each epoch

    - `update_norm`: the norm of the change of the trainable weights, divided
      by the norm of the weights;
    - `environment_share`, `acting_share`, `preparing_share`, `update_share`
      and `rest_share`: shares of the time for steps of environments; choosing
      actions and storing steps; making minibatches; updates of the networks;
      anything else, e.g. evaluations.

    Put it before a `TensorBoard` or `CSVLogger` that is to write them too. The
    training is the same with and without it.

    It warns of known faults, of each at most once in a `fit`, with a remedy: a
    policy that moves too far (`approx_kl`) or no longer explores (`entropy`),
    a critic that predicts nothing (`explained_variance`), gradients that are
    not finite (`gradient_norm`), outliers among observations and rewards.

    Args:
        warn: bool. Whether it warns. Defaults to `True`.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=128, passes=1,
    ...                              batch_size=64, seed=0)
    >>> agent = rl.PPO.for_env("CartPole-v1", seed=0)
    >>> history = agent.fit(rollouts, verbose=0,
    ...                     callbacks=[rl.callbacks.Diagnostics()]).history
    >>> 0.0 < history["update_norm"][0] < 0.1
    True
    >>> round(sum(history[f"{each}_share"][0] for each in (
    ...     "environment", "acting", "preparing", "update", "rest")), 6)
    1.0
    """

    @refusing_unknown
    def __init__(self, warn: bool = True) -> None:
        super().__init__()
        check_flag(warn=warn)
        self.warn = warn
        self._rounds: Rounds | None = None
        self._stopwatch = Stopwatch()
        self._seconds: dict[str, float] = {}
        self._faults = Faults()
        self._weights: list[np.ndarray] = []

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts the clock of the dataset."""
        # An earlier `fit` may have been interrupted.
        self._stop_watching()
        self._rounds = rounds = rollouts_of(self.model)
        space = getattr(self.model, "action_space", None)
        self._faults = Faults(
            discrete=isinstance(space, _CHOICES),
            scales_loss=isinstance(
                self.model.optimizer, keras.optimizers.LossScaleOptimizer
            ),
            outliers=None if rounds is None else rounds.outliers,
        )
        self._stopwatch = Stopwatch()
        if rounds is not None:
            # Another `Diagnostics` of the same `fit` reads the same one.
            self._stopwatch = rounds.stopwatch or self._stopwatch
            rounds.stopwatch = self._stopwatch
        self._stopwatch.switch("rest")
        self._seconds = self._stopwatch.seconds()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Stops the clock of the dataset."""
        self._stop_watching()

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Copies the weights, whose change is measured."""
        self._weights = self._present_weights()

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Starts the clock of the updates; a dataset stops it meanwhile."""
        self._stopwatch.switch("update")

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stops the clock of the updates."""
        self._stopwatch.switch("rest")

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Measures and warns."""
        logs = {} if logs is None else logs
        pairs = zip(self._weights, self._present_weights(), strict=True)
        change = _norm([after - before for before, after in pairs])
        logs["update_norm"] = change / max(_norm(self._weights), 1e-12)
        before, self._seconds = self._seconds, self._stopwatch.seconds()
        spent = [
            self._seconds.get(each, 0.0) - before.get(each, 0.0)
            for each in _SECTIONS
        ]
        for section, seconds in zip(_SECTIONS, spent, strict=True):
            logs[f"{section}_share"] = seconds / max(sum(spent), 1e-9)
        if self.warn:
            for message in self._faults.in_logs(logs):
                warnings.warn(message, TrainingWarning, stacklevel=2)

    def get_state(self) -> dict[str, Any]:
        """Returns the state for a resumed `fit`."""
        return {"faults": self._faults.state, "weights": self._weights}

    def set_state(self, state: dict[str, Any] | None) -> None:
        """Restores the state.

        Args:
            state: dict, as returned by `get_state`; that of an earlier release
                is left alone.
        """
        if state is not None and "faults" in state:
            self._faults.state = state["faults"]
            self._weights = state["weights"]

    def _stop_watching(self) -> None:
        """Stops the clock of the dataset."""
        if self._rounds is not None:
            # Another `Diagnostics` of the same `fit` goes on reading it.
            self._rounds.stopwatch = None
        self._rounds = None

    def _present_weights(self) -> list[np.ndarray]:
        """Returns a copy of the trainable weights."""
        # In float32: differences of bfloat16 would be mere rounding.
        return [
            np.array(variable.value.numpy(), np.float32)
            for variable in self.model.trainable_variables
        ]


def _norm(arrays: list[np.ndarray]) -> float:
    """Returns the Euclidean norm of all arrays together."""
    return float(np.sqrt(sum(np.square(x, dtype=float).sum() for x in arrays)))
