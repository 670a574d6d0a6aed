"""Keras' own callbacks in a run that is resumed: what they leave behind."""

import csv
import io
import zipfile
from pathlib import Path

import h5py
import keras
import numpy as np
import tensorflow as tf

CALLBACKS = keras.callbacks


def made(folder):
    """Makes callbacks of eight classes, two of some of them.

    What they watch goes to and fro, so that all that they count matters.

    Args:
        folder: Path. Where they write.
    """
    return [
        CALLBACKS.TerminateOnNaN(),
        CALLBACKS.LearningRateScheduler(lambda epoch, rate: 0.9 * rate),
        CALLBACKS.ReduceLROnPlateau(
            "loss", factor=0.5, patience=1, cooldown=2, min_delta=1e9
        ),
        # The first epoch is the best one, and that is long ago.
        CALLBACKS.EarlyStopping(
            "loss", patience=9, min_delta=1e9, restore_best_weights=True
        ),
        CALLBACKS.EarlyStopping("env_steps", patience=7, mode="min"),
        CALLBACKS.ModelCheckpoint(
            folder / "best.keras", "loss", save_best_only=True
        ),
        CALLBACKS.ModelCheckpoint(
            folder / "{epoch}-{batch}.weights.h5",
            save_weights_only=True,
            # Of updates, no part of those of an epoch.
            save_freq=9,
        ),
        CALLBACKS.SwapEMAWeights(swap_on_epoch=True),
        CALLBACKS.CSVLogger(folder / "log.csv"),
        CALLBACKS.CSVLogger(folder / "other.csv", separator=";", append=True),
        CALLBACKS.TensorBoard(folder / "board", update_freq="batch"),
    ]


def left_by(callbacks, folder):
    """Returns what callbacks have come to, and what is in their files.

    Args:
        callbacks: list as returned by `made`.
        folder: Path.
    """
    return {
        "counted": [
            {
                name: value
                for name, value in vars(each).items()
                if isinstance(value, bool | int | float)
            }
            for each in callbacks
            # Their files say it.
            if not isinstance(each, CALLBACKS.CSVLogger | CALLBACKS.TensorBoard)
        ],
        "rows": {
            path.name: rows(path) for path in sorted(folder.glob("*.csv"))
        },
        "saved": {
            path.name: arrays(path)
            for pattern in ("*.h5", "*.keras")
            for path in sorted(folder.glob(pattern))
        },
        "events": {
            name: events(folder / "board" / name)
            for name in ("train", "validation")
        },
    }


def rows(path):
    """Returns the rows of a table, but for what the clock says."""
    with path.open(newline="", encoding="utf-8") as file:
        separator = ";" if ";" in file.readline() else ","
        file.seek(0)
        return [
            {key: x for key, x in row.items() if "per_second" not in key}
            for row in csv.DictReader(file, delimiter=separator)
        ]


def arrays(path):
    """Returns the arrays of a saved model, or of its weights alone."""
    content = path.read_bytes()
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            content = archive.read("model.weights.h5")
    found = {}

    def take(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = np.array(item)

    with h5py.File(io.BytesIO(content)) as file:
        file.visititems(take)
    return found


def events(folder):
    """Returns the curves of a folder, but for what the clock says."""
    curves = {}
    for file in sorted(Path(folder).glob("events*")):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                if "per_second" not in value.tag:
                    number = float(tf.make_ndarray(value.tensor))
                    curves.setdefault(value.tag, []).append(
                        (event.step, number)
                    )
    # Files of one second are named in no order.
    return {tag: sorted(points) for tag, points in curves.items()}
