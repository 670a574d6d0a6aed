"""The dataset of a `fit`, and counts of its model, for callbacks."""

from typing import Any
from typing import TypeAlias
from typing import cast

import keras

from keras_rl2.data.round_dataset import RoundDataset

#: What Keras passes to the methods of a callback.
Logs: TypeAlias = dict[str, Any] | None


def updates(model: keras.Model) -> int:
    """Returns the updates of a model so far.

    Args:
        model: `keras.Model`, compiled.

    Returns:
        int.
    """
    count = getattr(model, "updates", None)
    count = model.optimizer.iterations if count is None else count
    return int(keras.ops.convert_to_numpy(count))


def takes_steps(rounds: RoundDataset | None) -> bool:
    """Returns whether the rounds of a dataset begin with environment steps.

    Args:
        rounds: A dataset; None if it is unknown.

    Returns:
        bool. False for an `OfflineDataset`, whose updates are counted.
    """
    return rounds is None or rounds.steps_per_round > 0


def rounds_of_fit(callback: keras.callbacks.Callback) -> RoundDataset | None:
    """Returns the dataset of the present `fit`.

    Args:
        callback: `keras.callbacks.Callback`. A callback of the `fit`.

    Returns:
        The dataset; None for a plain Keras model, or for a `fit` with a
        `tf.data.Dataset`: an agent then still has the dataset of an earlier
        `fit`, which is recognized by its size.
    """
    rounds = getattr(callback.model, "rollouts", None)
    steps = (callback.params or {}).get("steps")
    if rounds is None or steps != rounds.steps_per_epoch:
        return None
    return cast(RoundDataset, rounds)
