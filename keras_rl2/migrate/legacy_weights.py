"""Weights saved by Keras before 3: HDF5 files and TensorFlow checkpoints.

keras-rl writes them by `save_weights`. Keras 2 chose the format by the name:
HDF5 for `.h5` and `.hdf5`, a checkpoint for any other, including `.h5f`.
"""

import os
import re
from collections.abc import Sequence
from typing import Any

import h5py
import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_rl2.files import hdf5_arrays
from keras_rl2.files.plain_files import require_file

_INDEX = ".index"
_HDF5_START = b"\x89HDF\r\n\x1a\n"
_MOST_NAMES = 2**14
_VARIABLE = re.compile(
    r"layer_with_weights-(\d+)/(?:.*/)?(\w+)/\.ATTRIBUTES/VARIABLE_VALUE"
)


def load_weights(path: str | os.PathLike[str], network: keras.Model) -> None:
    """Sets the weights of a network from a file, all of them or none.

    Layers are matched by their order, as in Keras 2: the first layer with
    weights in the file is the first layer with weights in the network.

    Args:
        path: str or path. The file, or the prefix of the names of a
            checkpoint's files.
        network: `keras.Model`. Built.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, or its weights do not fit.
    """
    path = os.fspath(path)
    layers = [layer for layer in network.layers if layer.weights]
    if os.path.exists(path + _INDEX):
        arrays = _of_checkpoint(path, layers)
    else:
        arrays = _of_hdf5(path, layers)
    for layer, values in zip(layers, arrays, strict=True):
        layer.set_weights(values)


def _of_hdf5(
    path: str, layers: Sequence[keras.layers.Layer]
) -> list[list[npt.NDArray[Any]]]:
    """Reads the arrays of each layer from an HDF5 file."""
    require_file(path)
    with open(path, "rb") as opened:
        if opened.read(len(_HDF5_START)) != _HDF5_START:
            raise ValueError("neither an HDF5 file nor a checkpoint")
    with h5py.File(path, "r") as file:
        root = h5py.h5g.open(file.id, b"/")
        found = []
        for name in _names(root, "layer_names"):
            group = hdf5_arrays.open_member(root, name)
            names = _names(group, "weight_names")
            if names:
                found.append((name, group, names))
        _check_count("layers with weights", len(found), len(layers))
        read = []
        for (name, group, names), layer in zip(found, layers, strict=True):
            _check_count(f"weights of {name}", len(names), len(layer.weights))
            values = []
            for each, variable in zip(names, layer.weights, strict=True):
                member = hdf5_arrays.open_member(group, each)
                _check_shape(each, member.shape, variable)
                array = hdf5_arrays.read(member).astype("float32")
                values.append(_finite(each, array))
            read.append(values)
    return read


def _names(group: h5py.Group, attribute: str) -> list[str]:
    """Returns the names in an attribute, which may be split into several."""
    attributes = h5py.Group(group).attrs
    if attribute in attributes:
        parts = [attributes[attribute]]
    else:
        parts = []
        while f"{attribute}{len(parts)}" in attributes:
            parts.append(attributes[f"{attribute}{len(parts)}"])
        if not parts:
            raise ValueError(f"no weights of Keras 2: {attribute} is missing")
    found = [name for part in parts for name in np.ravel(part)]
    if len(found) > _MOST_NAMES:
        raise ValueError(f"{len(found):,} {attribute}")
    return [
        name.decode() if isinstance(name, bytes) else str(name)
        for name in found
    ]


def _of_checkpoint(
    path: str, layers: Sequence[keras.layers.Layer]
) -> list[list[npt.NDArray[Any]]]:
    """Reads the arrays of each layer from a TensorFlow checkpoint."""
    reader = tf.train.load_checkpoint(path)
    shapes: dict[str, Sequence[int]] = reader.get_variable_to_shape_map()
    by_layer: dict[int, dict[str, str]] = {}
    for key in shapes:
        match = _VARIABLE.fullmatch(key)
        if match:
            by_layer.setdefault(int(match[1]), {})[match[2]] = key
    _check_count("layers with weights", len(by_layer), len(layers))
    read = []
    for index, layer in zip(sorted(by_layer), layers, strict=True):
        keys = by_layer[index]
        part = f"weights of layer {index}"
        _check_count(part, len(keys), len(layer.weights))
        values = []
        for variable in layer.weights:
            if variable.name not in keys:
                raise ValueError(f"{part} without {variable.name!r}")
            key = keys[variable.name]
            _check_shape(key, shapes[key], variable)
            array = np.asarray(reader.get_tensor(key), "float32")
            values.append(_finite(key, array))
        read.append(values)
    return read


def _check_count(part: str, received: int, expected: int) -> None:
    """Raises an error unless the counts of layers or weights are equal."""
    if received != expected:
        raise ValueError(f"{received} {part}, where the network has {expected}")


def _check_shape(
    name: str, shape: Sequence[int], variable: keras.Variable
) -> None:
    """Raises an error if an array does not fit, before it is read."""
    if tuple(shape) != tuple(variable.shape):
        raise ValueError(
            f"{name} of shape {tuple(shape)}, where the network has "
            f"{tuple(variable.shape)}"
        )


def _finite(
    name: str, array: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Raises an error for weights that are not finite."""
    if not np.isfinite(array).all():
        raise ValueError(f"weights that are not finite, in {name}")
    return array
