"""The callbacks of a `fit`, called once for each round."""

from typing import Any

import keras


class FitCallbacks(keras.callbacks.CallbackList):
    """Tells callbacks of a batch without looking at the logs again.

    Keras makes a number of each log, and starts a thread for callbacks that
    ask for none: of short rounds that is a part of the time. Here logs that
    are numbers already are passed on as they are.

    Of an epoch that is resumed in its midst, callbacks are not told of what
    they have been told before: Keras begins each epoch with its first batch.

    Args:
        callbacks: list of `keras.callbacks.Callback`.
        **settings: As of `keras.callbacks.CallbackList`.

    Example:

    >>> seen = keras.callbacks.LambdaCallback(
    ...     on_train_batch_end=lambda batch, logs: print(batch, logs))
    >>> FitCallbacks([seen]).on_train_batch_end(3, {"loss": 0.5})
    3 {'loss': 0.5}
    """

    _is_made = False

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Tells all callbacks that a batch begins."""
        self._is_made = getattr(self.model, "updates_already_made", 0) > 0
        if self._is_made:
            return
        # Keras passes none.
        given = logs or {}
        for callback in self.callbacks:
            callback.on_train_batch_begin(batch, logs=given)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Tells all callbacks that a batch has ended."""
        if self._is_made:
            return
        given = logs or {}
        if not all(type(value) is float for value in given.values()):
            super().on_train_batch_end(batch, logs)
            return
        for callback in self.callbacks:
            callback.on_train_batch_end(batch, logs=given)
