"""Which way is better, for callbacks of Keras that watch a value."""

from collections.abc import Iterable
from typing import Any
from typing import cast

import keras

_BETTER = {
    "episode_return": "max",
    "explained_variance": "max",
}


def better(name: str) -> str | None:
    """Returns whether more or less of what the logs hold is better.

    Args:
        name: str. Key of the logs, that of an evaluation too.

    Returns:
        `"max"` or `"min"`; None where that depends on the task.

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
    """Tells callbacks of `mode="auto"` what they cannot find out.

    `EarlyStopping`, `ModelCheckpoint` and `ReduceLROnPlateau` know accuracies
    and the like, since Keras' own metrics say privately which way they go;
    what is not among the metrics of `compile` they refuse. `mode` is what a
    user would have given them.

    Args:
        callbacks: Iterable of `keras.callbacks.Callback`. Those of a `fit`.

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
            # Has one: it was `"auto"`.
            cast(Any, callback).mode = mode
