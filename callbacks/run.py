"""The counts of the `fit` that a callback takes part in."""

from typing import Any
from typing import TypeAlias

import keras
import tensorflow as tf

from keras_rl2.data.round_dataset import RoundDataset

#: What Keras passes to the methods of a callback.
Logs: TypeAlias = dict[str, Any] | None


def update_counter(model: keras.Model) -> Any:
    """Returns the variable that counts the updates of a model."""
    counter = getattr(model, "updates", None)
    if isinstance(counter, keras.Variable | tf.Variable):
        return counter
    return model.optimizer.iterations


def updates(model: keras.Model) -> int:
    """Returns the updates of a model so far."""
    return int(update_counter(model).numpy())


def takes_steps(rounds: RoundDataset | None) -> bool:
    """Returns whether the rounds of a dataset begin with environment steps."""
    return rounds is None or rounds.steps_per_round > 0


def rounds_of_fit(callback: keras.callbacks.Callback) -> RoundDataset | None:
    """Returns the dataset of the present `fit`; None for one without rounds."""
    return getattr(callback.model, "rollouts", None)
