"""Measurements of a training, and warnings of known faults with remedies."""

import os
import warnings
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.callbacks import diagnostic_rules
from keras_rl2.callbacks.diagnostic_measures import HiddenUnits
from keras_rl2.callbacks.diagnostic_measures import RecentSteps
from keras_rl2.callbacks.diagnostic_measures import TimeShares
from keras_rl2.callbacks.diagnostic_measures import relative_change
from keras_rl2.callbacks.diagnostic_rules import Rule
from keras_rl2.callbacks.diagnostic_rules import TrainingWarning
from keras_rl2.callbacks.diagnostic_rules import rules_for
from keras_rl2.callbacks.event_writer import EventWriter
from keras_rl2.callbacks.protocols import LearningAgent
from keras_rl2.callbacks.protocols import Rounds
from keras_rl2.callbacks.protocols import as_agent
from keras_rl2.callbacks.protocols import env_steps

_CHOICES = (
    gymnasium.spaces.Discrete,
    gymnasium.spaces.MultiDiscrete,
    gymnasium.spaces.MultiBinary,
)


class Diagnostics(keras.callbacks.Callback):
    """Measures the progress of a training, and warns of known faults.

    It adds to the logs

    - `update_norm`: the norm of an epoch's change of the trainable weights,
      divided by the norm of the weights;
    - `dead_units`: the share of hidden ReLU units (of `Dense` layers in
      functional networks) that returned 0 for all of some 256 recent
      observations; absent if there are no such units;
    - `environment_share`, `acting_share`, `preparing_share`, `update_share`
      and `rest_share`: shares of the time since they were last logged, for
      steps of environments; choosing actions and storing steps; making
      minibatches; updates of the networks; anything else, e.g. evaluations.

    Put it before a `TensorBoard` or `CSVLogger` that is to write them too. The
    training is the same with and without it.

    In each epoch it checks for known faults, and warns of each at most once in
    a `fit`, with a remedy: a policy that moves too far (`approx_kl`) or no
    longer explores (`entropy`), a critic that predicts nothing
    (`explained_variance`), overestimated values (`q_value`), gradients that
    are not finite (`gradient_norm`), dead units, outliers among observations
    and rewards (`clipped_observations`, `clipped_rewards`).

    Args:
        log_dir: str or path or None. Directory for events of TensorBoard with
            the above and `gradient_norm` over environment steps, with tags
            `diagnostics/...`; preferably a separate directory below that of
            the `TensorBoard` callback; None to write none. Defaults to `None`.
        every: int. Epochs from one measurement to the next; each takes some
            milliseconds for small networks. Defaults to `1`.
        warn: bool. Whether it warns. Defaults to `True`.

    Raises:
        ValueError: If `every` is below 1.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=128, passes=1,
    ...                              batch_size=64, seed=0)
    >>> agent = rl.PPO.for_env("CartPole-v1", activation="relu", seed=0)
    >>> history = agent.fit(rollouts, verbose=0,
    ...                     callbacks=[rl.callbacks.Diagnostics()]).history
    >>> 0.0 < history["update_norm"][0] < 0.1
    True
    >>> history["dead_units"][0] < 0.2
    True
    >>> round(sum(history[f"{each}_share"][0] for each in (
    ...     "environment", "acting", "preparing", "update", "rest")), 6)
    1.0
    """

    @refusing_unknown
    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        every: int = 1,
        warn: bool = True,
    ) -> None:
        super().__init__()
        check_path(**present(log_dir=log_dir))
        check_positive(every=every)
        check_flag(warn=warn)
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self.every = every
        self.warn = warn
        self._writer = None if log_dir is None else EventWriter(log_dir)
        self._agent: LearningAgent | None = None
        self._rounds: Rounds | None = None
        self._stopwatch = Stopwatch()
        self._shares = TimeShares(self._stopwatch)
        self._steps = RecentSteps()
        self._units: HiddenUnits | None = None
        self._rules: list[Rule] = []
        self._weights: list[np.ndarray] | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts observing the agent and its dataset."""
        # An earlier `fit` may have been interrupted.
        self._stop_watching()
        self._agent = agent = as_agent(self.model)
        self._rounds = None if agent is None else agent.rollouts
        self._rules = _rules_of(self.model, self._rounds) if self.warn else []
        self._units = None if agent is None else HiddenUnits(agent)
        if agent is not None:
            agent.observers.add(self._steps.take)
        self._stopwatch = _stopwatch_of(self._rounds)
        self._shares = TimeShares(self._stopwatch)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Stops observing the agent and its dataset."""
        self._stop_watching()

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Copies the weights, if their change is to be measured."""
        self._weights = self._present_weights() if self._is_due(epoch) else None

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Starts the clock of the updates: the round has been collected."""
        self._stopwatch.switch("update")

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stops the clock of the updates."""
        self._stopwatch.switch("rest")

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Measures and warns, if due."""
        logs = {} if logs is None else logs
        if self._is_due(epoch):
            logs.update(measured := self._measure())
            norms = {"gradient_norm": logs.get("gradient_norm")}
            self._write({**norms, **measured}, logs)
            self._weights = None
        self._check(logs)

    def get_state(self) -> dict[str, Any]:
        """Returns the state for a resumed `fit`."""
        return {
            "files": self._writer and self._writer.get_state(),
            "steps": self._steps.get_state(),
            "rules": diagnostic_rules.get_state(self._rules),
            "weights": self._weights,
        }

    def set_state(self, state: dict[str, Any] | None) -> None:
        """Restores the state, and removes events written after it.

        Args:
            state: dict, as returned by `get_state`; in 0.2 it was that of the
                files alone.
        """
        if state is None or "steps" not in state:
            state = {"files": state}
        else:
            self._steps.set_state(state["steps"])
            self._rules = diagnostic_rules.set_state(
                self._rules, state["rules"]
            )
            self._weights = state["weights"]
        if self._writer is not None and state["files"] is not None:
            self._writer.set_state(state["files"])

    def _stop_watching(self) -> None:
        """Stops observing."""
        if self._agent is not None:
            self._agent.observers.remove(self._steps.take)
        if self._rounds is not None:
            # Another `Diagnostics` of the same `fit` goes on reading it.
            self._rounds.stopwatch = None
        self._agent = self._rounds = None

    def _is_due(self, epoch: int) -> bool:
        """Returns whether an epoch is to be measured."""
        return (epoch + 1) % self.every == 0

    def _present_weights(self) -> list[np.ndarray]:
        """Returns a copy of the trainable weights."""
        # In float32: differences of bfloat16 would be mere rounding.
        return [
            np.array(variable.value.numpy(), np.float32)
            for variable in self.model.trainable_variables
        ]

    def _measure(self) -> dict[str, float]:
        """Returns the measurements for the logs."""
        measured = {}
        if self._weights is not None:
            measured["update_norm"] = relative_change(
                self._weights, self._present_weights()
            )
        if self._units is not None:
            share = self._units.dead_share(self._steps)
            if share is not None:
                measured["dead_units"] = share
        for section, share in self._shares.take().items():
            measured[f"{section}_share"] = share
        return measured

    def _check(self, logs: dict[str, Any]) -> None:
        """Applies all rules that have not warned yet."""
        values = {
            key: float(value)
            for key, value in logs.items()
            if value is not None and np.ndim(value) == 0
        }
        values["largest_reward"] = self._steps.largest_reward
        for rule in list(self._rules):
            message = rule(values)
            if message is not None:
                self._rules.remove(rule)
                warnings.warn(message, TrainingWarning, stacklevel=2)

    def _write(
        self, values: dict[str, float | None], logs: dict[str, Any]
    ) -> None:
        """Writes scalars for TensorBoard, over environment steps."""
        if self._writer is None:
            return
        step = logs.get("env_steps", env_steps(self.model) or 0)
        self._writer.write(
            int(step),
            scalars={f"diagnostics/{key}": x for key, x in values.items()},
        )


def _stopwatch_of(rounds: Rounds | None) -> Stopwatch:
    """Returns the dataset's stopwatch, or a new one without a dataset."""
    if rounds is None:
        return Stopwatch()
    if rounds.stopwatch is None:
        rounds.stopwatch = Stopwatch()
    # An interrupted `fit` may have left it in another section.
    rounds.stopwatch.switch("rest")
    return rounds.stopwatch


def _rules_of(model: keras.Model, rounds: Rounds | None) -> list[Rule]:
    """Returns the rules that apply to a model."""
    return rules_for(
        discrete=isinstance(getattr(model, "action_space", None), _CHOICES),
        gamma=getattr(model, "gamma", None),
        scales_loss=isinstance(
            model.optimizer, keras.optimizers.LossScaleOptimizer
        ),
        outliers=None if rounds is None else rounds.outliers,
    )
