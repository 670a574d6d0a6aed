"""The states of callbacks for a `fit` that is resumed."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import keras

from keras_rl2.saving import plain_data

# Attributes that other packages' callbacks keep from one epoch to the next, by
# package and class. There is no public way to read them; a test finds missing
# ones.
KEPT = {
    "keras.CSVLogger": "keys",
    "keras.EarlyStopping": "wait stopped_epoch best best_weights best_epoch",
    "keras.History": "epoch history",
    "keras.ModelCheckpoint": "best _batches_seen_since_last_saving "
    "_last_batch_seen",
    "keras.ReduceLROnPlateau": "best wait cooldown_counter",
    "keras.SwapEMAWeights": "_ema_weights_in_model",
    "keras.TensorBoard": "_global_train_batch _global_test_batch "
    "_should_write_train_graph",
    "wandb.WandbMetricsLogger": "global_batch global_step",
    "wandb.WandbModelCheckpoint": "_local_best",
}


def read(callbacks: Iterable[keras.callbacks.Callback]) -> list[Any]:
    """Returns the states of callbacks, as plain data, copied."""
    states = []
    for name, callback in _named(callbacks).items():
        names = _kept_of(callback)
        kept = {n: v for n, v in vars(callback).items() if n in names}
        state = {"name": name, "state": kept}
        if hasattr(callback, "get_state"):
            # A class derived from one of Keras has both.
            state |= {"state": callback.get_state(), "kept": kept}
        elif not kept:
            continue
        try:
            states.append(plain_data.copied(state))
        except TypeError as error:
            raise TypeError(
                f"Expected the callback {type(callback).__name__} to have "
                f"a state of plain data. Received: {error}"
            ) from error
    return states


def write(
    callbacks: Iterable[keras.callbacks.Callback], states: Iterable[Any]
) -> None:
    """Restores the states of callbacks."""
    named = _named(callbacks)
    for each in states:
        callback = named.get(each["name"])
        if callback is None:
            continue
        has_state = hasattr(callback, "set_state")
        kept = each.get("kept", {}) if has_state else each["state"]
        names = _kept_of(callback)
        vars(callback).update({n: kept[n] for n in names if n in kept})
        if has_state:
            callback.set_state(each["state"])


def _named(callbacks: Iterable[keras.callbacks.Callback]) -> dict[str, Any]:
    """Returns callbacks by their class and a number within it."""
    named: dict[str, Any] = {}
    seen: Counter[str] = Counter()
    for callback in callbacks:
        kind = type(callback).__name__
        named[f"{kind}/{seen[kind]}"] = callback
        seen[kind] += 1
    return named


def _kept_of(callback: keras.callbacks.Callback) -> set[str]:
    """Returns the attributes that a callback's class and its bases keep."""
    names: set[str] = set()
    for kind in type(callback).__mro__:
        package = kind.__module__.partition(".")[0]
        names.update(KEPT.get(f"{package}.{kind.__name__}", "").split())
    return names
