"""The direction of improvement, for Keras' callbacks that monitor a value."""

from collections.abc import Iterable
from typing import Any
from typing import cast

import keras

_BETTER = {
    "episode_return": "max",
    "explained_variance": "max",
}


def better(name: str) -> str | None:
    """Returns whether higher or lower values of a key of the logs are better.

    Args:
        name: str. A key of the logs, also of an evaluation.

    Returns:
        `"max"` or `"min"`; None if it depends on the task.

    Example:

    >>> better("val_episode_return"), better("value_loss")
    ('max', 'min')
    >>> better("episode_length")
    """
    name = name.removeprefix("val_")
    if name == "loss" or name.endswith("_loss"):
        return "min"
    return _BETTER.get(name)


def give_directions(callbacks: Iterable[keras.callbacks.Callback]) -> None:
    """Sets the `mode` of callbacks with `mode="auto"`.

    `EarlyStopping`, `ModelCheckpoint` and `ReduceLROnPlateau` know the
    directions of Keras' own metrics only; for a value that is not among the
    metrics of `compile` they raise an error. So `mode` is set as users would
    pass it.

    Args:
        callbacks: Iterable of `keras.callbacks.Callback`. The callbacks of a
            `fit`.

    Example:

    >>> stopping = keras.callbacks.EarlyStopping("episode_return", patience=9)
    >>> give_directions([stopping])
    >>> stopping.mode
    'max'
    """
    for callback in callbacks:
        if getattr(callback, "mode", None) != "auto":
            continue
        mode = better(str(getattr(callback, "monitor", "")))
        if mode is not None:
            # The attribute exists: it was `"auto"`.
            cast(Any, callback).mode = mode
