"""Measurements of a training, and warnings of known faults with remedies."""

import dataclasses
import inspect
import math
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.callbacks.run import Logs
from keras_rl2.callbacks.run import rounds_of_fit

_SECTIONS = ("environment", "acting", "preparing", "update", "rest")
_OF_VALUES = {"q_value", "temperature"}
_CHOICES = (
    gymnasium.spaces.Discrete,
    gymnasium.spaces.MultiDiscrete,
    gymnasium.spaces.MultiBinary,
)
# A warning shows the line of the program that calls them.
_LIBRARIES = ("keras", "keras_rl2")
_LARGEST_STEP = 0.1
_LEAST_ENTROPY = 0.01
_USELESS_EPOCHS = 10


class TrainingWarning(UserWarning):
    """Warning of `Diagnostics` of a fault in a training, with a remedy.

    Example:

    >>> import warnings
    >>> warnings.simplefilter("error", TrainingWarning)
    """


class Diagnostics(keras.callbacks.Callback):
    """Measures the progress of a training, and warns of known faults.

    It adds to the logs of each epoch

    - `update_norm`: the norm of the change of the trainable weights, divided
      by the norm of the weights;
    - `environment_share`, `acting_share`, `preparing_share`, `update_share`
      and `rest_share`: shares of the time for steps of environments; choosing
      actions and storing steps; making minibatches; updates of the networks;
      anything else, such as evaluations.

    `TensorBoard` and `CSVLogger` write them too; in Keras' own loop, put it
    before these. The training is the same with and without it.

    It warns of known faults, of each at most once in a `fit`, with a remedy: a
    policy that moves too far (`approx_kl`) or no longer explores (`entropy`),
    a critic that predicts nothing (`explained_variance`), Q-values above any
    discounted return that the replayed rewards allow (`q_value`; not with an
    entropy bonus), gradients that are not finite (`gradient_norm`), outliers
    among observations and rewards.

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

    #: `fit` calls it before callbacks that read the logs.
    adds_logs = True

    @refusing_unknown
    def __init__(self, warn: bool = True) -> None:
        super().__init__()
        check_flag(warn=warn)
        self.warn = warn
        self._stopwatch = Stopwatch()
        self._seconds: dict[str, float] = {}
        self._faults = Faults()
        self._weights: list[np.ndarray] = []

    def on_train_begin(self, logs: Logs = None) -> None:
        """Starts the clock of the dataset."""
        rounds = rounds_of_fit(self)
        space = getattr(self.model, "action_space", None)
        self._faults = Faults(
            discrete=isinstance(space, _CHOICES),
            scales_loss=isinstance(
                self.model.optimizer, keras.optimizers.LossScaleOptimizer
            ),
            outliers=getattr(rounds, "outliers", {}),
            largest_return=getattr(rounds, "largest_return", _unbounded),
        )
        self._stopwatch = Stopwatch()
        if rounds is not None:
            # Another `Diagnostics` of the same `fit` reads the same one.
            self._stopwatch = rounds.stopwatch or self._stopwatch
            rounds.stopwatch = self._stopwatch
        self._stopwatch.switch("rest")
        self._seconds = self._stopwatch.seconds()

    def on_train_end(self, logs: Logs = None) -> None:
        """Stops the clock of the dataset."""
        rounds = rounds_of_fit(self)
        if rounds is not None:
            # Another `Diagnostics` of the same `fit` goes on reading it.
            rounds.stopwatch = None

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Copies the weights, whose change is measured."""
        self._weights = self._present_weights()

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Starts the clock of the updates; a dataset stops it meanwhile."""
        self._stopwatch.switch("update")

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Stops the clock of the updates."""
        self._stopwatch.switch("rest")

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
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
            self._faults.warn(logs)

    def get_state(self) -> dict[str, Any]:
        """Returns the state for a resumed `fit`."""
        return {"faults": self._faults.state, "weights": self._weights}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._faults.state = state["faults"]
        self._weights = state["weights"]

    def _present_weights(self) -> list[np.ndarray]:
        """Returns a copy of the trainable weights."""
        # Differences of bfloat16 would be mere rounding.
        return [
            np.array(variable.value.numpy(), np.float32)
            for variable in self.model.trainable_variables
        ]


class RecordedValues(keras.callbacks.Callback):
    """Warns of Q-values that recorded rewards do not allow, once in a `fit`."""

    def on_train_begin(self, logs: Logs = None) -> None:
        """Begins a `fit` without a warning."""
        largest_return = self.model.rollouts.largest_return
        self._faults = Faults(largest_return=largest_return)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Compares the Q-values with the recorded rewards."""
        logs = logs or {}
        self._faults.warn({k: logs[k] for k in _OF_VALUES & logs.keys()})


def _unbounded() -> float:
    """Returns the bound of Q-values if nothing is known of the rewards."""
    return math.inf


@dataclasses.dataclass
class Faults:
    """Detects known faults in the logs of epochs, each once.

    Missing values and NaN are no faults, except for the norm of gradients.
    Only the entropy of discrete actions has a lower bound. Updates that
    overflow are no fault of an optimizer that scales the loss. `outliers` are
    those of running statistics, by their key in the logs. `largest_return`
    returns a bound of Q-values without an entropy bonus.
    """

    discrete: bool = False
    scales_loss: bool = False
    outliers: Mapping[str, Outliers] = dataclasses.field(default_factory=dict)
    largest_return: Callable[[], float] = _unbounded

    def __post_init__(self) -> None:
        #: What further epochs depend on, as plain data.
        self.state: dict[str, Any] = {
            "warned": [],
            "entropy": None,
            "useless_epochs": 0,
            "outliers": {k: each.count for k, each in self.outliers.items()},
        }

    def warn(self, logs: Mapping[str, float]) -> None:
        """Warns of each fault not found in earlier epochs."""
        for message in self.in_logs(logs):
            warnings.warn(message, TrainingWarning, stacklevel=_stacklevel())

    def in_logs(self, logs: Mapping[str, float]) -> list[str]:
        """Returns a message for each fault not found in earlier epochs."""
        found = dict([*self._of_policy(logs), *self._of_values(logs)])
        new = [name for name in found if name not in self.state["warned"]]
        self.state["warned"] += new
        return [found[name] for name in new]

    def _of_policy(
        self, logs: Mapping[str, float]
    ) -> Iterator[tuple[str, str]]:
        """Yields name and message of each fault of the policy."""
        divergence = logs.get("approx_kl", 0.0)
        if divergence > _LARGEST_STEP:
            yield (
                "policy step",
                "The policy moves too far in one round: approx_kl="
                f"{divergence:.3g} is above {_LARGEST_STEP}, where the loss is "
                "a poor estimate of the new policy. Lower the learning rate or "
                "`passes`, or set `target_kl`",
            )
        entropy = logs.get("entropy", math.nan)
        if self.discrete and math.isfinite(entropy):
            first = self.state["entropy"]
            first = self.state["entropy"] = entropy if first is None else first
            if entropy < _LEAST_ENTROPY * first:
                yield (
                    "entropy",
                    "The policy hardly explores any more: "
                    f"entropy={entropy:.3g} is below {_LEAST_ENTROPY:.0%} of "
                    f"the {first:.3g} at first. Unless the return is optimal, "
                    "raise `entropy_coefficient` (for SAC `target_entropy`) or "
                    "lower the learning rate",
                )

    def _of_values(
        self, logs: Mapping[str, float]
    ) -> Iterator[tuple[str, str]]:
        """Yields name and message of each fault of values and gradients."""
        # Epochs in which values predict worse than a mean would.
        explained = logs.get("explained_variance", math.nan)
        epochs = self.state["useless_epochs"] + 1 if explained < 0.0 else 0
        self.state["useless_epochs"] = epochs
        if epochs >= _USELESS_EPOCHS:
            yield (
                "critic",
                "The critic predicts returns worse than their mean would: "
                f"explained_variance={explained:.3g}, below 0 for {epochs} "
                "epochs. Raise the critic's learning rate (`critic_optimizer`) "
                "or `value_coefficient`, and scale rewards (`scale_rewards`) "
                "and observations (`normalize_observations`)",
            )
        value = abs(logs.get("q_value", 0.0))
        # The temperature is that of an entropy bonus.
        bound = math.inf if "temperature" in logs else self.largest_return()
        if value > bound:
            yield (
                "overestimation",
                f"Q-values are too large: abs(q_value)={value:.3g}, but no "
                f"discounted return exceeds {bound:.3g} with these rewards and "
                "lengths of episodes. Lower the learning rate or the number of "
                "updates, slow the target down (`tau`), or set `n_step`",
            )
        norm = logs.get("gradient_norm", 0.0)
        skipped = int(logs.get("skipped_updates", 0))
        if not self.scales_loss and (skipped or not math.isfinite(norm)):
            yield (
                "gradients",
                f"Gradients are not finite: gradient_norm={norm}, "
                f"skipped_updates={skipped}. These updates changed no weight: "
                "look for rewards and observations that are far too large, "
                "scale them, and lower the learning rate",
            )
        for key, each in self.outliers.items():
            if each.count > self.state["outliers"].get(key, 0):
                yield (
                    key,
                    "A value is so far from all others that normalisation does "
                    f"not follow it: {each.newest}, {key}={each.count}. If the "
                    "environment is at fault, correct it there. Rare but "
                    "correct values do no harm",
                )


def _norm(arrays: list[np.ndarray]) -> float:
    """Returns the Euclidean norm of all arrays together."""
    return float(np.sqrt(sum(np.square(x, dtype=float).sum() for x in arrays)))


def _stacklevel() -> int:
    """Returns the level of the program that called `fit`, for a warning."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_back is not None:
        if frame.f_globals["__name__"].split(".")[0] not in _LIBRARIES:
            break
        level, frame = level + 1, frame.f_back
    return level - 1
