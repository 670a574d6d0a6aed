"""Layers of PyTorch as layers of Keras, with their weights."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.building import DATA_FORMAT

Array = npt.NDArray[Any]

#: Keras names of PyTorch's activation classes, for functions that are the same
#: with the same defaults.
ACTIVATIONS = {
    "CELU": "celu",
    "ELU": "elu",
    "GELU": "gelu",
    "Hardtanh": "hard_tanh",
    "Identity": "linear",
    "LeakyReLU": "leaky_relu",
    "Mish": "mish",
    "ReLU": "relu",
    "ReLU6": "relu6",
    "SELU": "selu",
    "Sigmoid": "sigmoid",
    "SiLU": "silu",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Tanh": "tanh",
}
# Keras has another default slope.
_LEAKY_SLOPE = 0.01


class TorchLayers:
    """The weights of a PyTorch module, removed one layer at a time.

    Each part is used once, as a layer of Keras. No part may remain at the end,
    since the network would lack it.

    Args:
        weights: Mapping of arrays, by PyTorch's names.
        activation: str. Activation of the hidden layers, a value of
            `ACTIVATIONS`.
    """

    def __init__(self, weights: Mapping[str, Array], activation: str) -> None:
        self._weights = weights
        self._activation = activation
        self._taken: set[str] = set()

    def has(self, name: str) -> bool:
        """Returns whether a layer or part of that name exists."""
        return any(each.startswith(f"{name}.") for each in self._weights)

    def array(self, name: str) -> Array:
        """Removes and returns one array.

        Args:
            name: str.

        Returns:
            The array.

        Raises:
            ValueError: If the array does not exist.
        """
        if name not in self._weights:
            raise ValueError(f"weights without {name}")
        self._taken.add(name)
        return self._weights[name]

    def refuse_rest(self) -> None:
        """Raises an error if weights remain unused.

        Raises:
            ValueError: If any weights remain.
        """
        rest = sorted(set(self._weights) - self._taken)
        if rest:
            shown = ", ".join(rest[:3])
            raise ValueError(
                f"weights of unknown parts: {shown}"
                f"{' and more' if len(rest) > 3 else ''}"
            )

    def alike(self, first: str, second: str) -> bool:
        """Returns whether two parts have equal weights, and removes the second.

        Args:
            first: str. Name of a part.
            second: str. Name of another part; a missing one counts as equal.

        Returns:
            bool.
        """
        same = True
        for name in self._weights:
            if name.startswith(f"{second}."):
                other = first + name.removeprefix(second)
                same &= other in self._weights and np.array_equal(
                    self._weights[other], self.array(name)
                )
        return same

    def linear(
        self,
        x: Tensor,
        *names: str,
        name: str,
        activation: str | None = None,
        picture: tuple[int, ...] | None = None,
    ) -> Tensor:
        """Applies linear layers, and concatenates their outputs.

        Args:
            x: `[B, F]`. The input.
            *names: str. Names of the layers in PyTorch, usually one.
            name: str. Name of the layer in Keras.
            activation: str or None. Defaults to `None`.
            picture: tuple of ints or None. `(channels, height, width)` of an
                image that PyTorch has flattened; Keras flattens it with the
                channels last. Defaults to `None`.

        Returns:
            `[B, units]`.
        """
        kernels = [self.array(f"{each}.weight") for each in names]
        biases = [self.array(f"{each}.bias") for each in names]
        width = x.shape[-1]
        for each, kernel in zip(names, kernels, strict=True):
            if kernel.ndim != 2 or kernel.shape[1] != width:
                raise ValueError(
                    f"{each}.weight of shape {kernel.shape}, for {width} inputs"
                )
        kernel = np.concatenate(kernels)
        if picture is not None:
            # [F, C * H * W] -> [F, H * W * C]
            kernel = kernel.reshape(-1, *picture).transpose(0, 2, 3, 1)
            kernel = kernel.reshape(len(kernel), -1)
        dense = keras.layers.Dense(len(kernel), name=name)
        output: Tensor = dense(x)
        dense.set_weights([kernel.T, np.concatenate(biases)])
        if activation is None:
            return output
        return _activated(output, activation, name)

    def hidden(self, x: Tensor, prefix: str, name: str) -> Tensor:
        """Applies all layers of a part, each with the activation.

        Args:
            x: `[B, F]`.
            prefix: str. Name of the part in PyTorch; it may have no layers.
            name: str. Prefix of the names of layers in Keras.

        Returns:
            `[B, units]`.
        """
        for index, each in enumerate(self._sequence(prefix)):
            x = self.linear(
                x, each, name=f"{name}_{index}", activation=self._activation
            )
        return x

    def perceptron(self, x: Tensor, prefix: str) -> Tensor:
        """Applies all layers of a part, the last without activation.

        Args:
            x: `[B, F]`.
            prefix: str. Name of the part in PyTorch.

        Returns:
            `[B, units]`.
        """
        *hidden, last = self._sequence(prefix) or [f"{prefix}.0"]
        for index, each in enumerate(hidden):
            x = self.linear(
                x, each, name=f"hidden_{index}", activation=self._activation
            )
        return self.linear(x, last, name="output")

    def _sequence(self, prefix: str) -> list[str]:
        """Returns the names of linear layers with an activation after each."""
        count = 0
        while f"{prefix}.{2 * count}.weight" in self._weights:
            count += 1
        return [f"{prefix}.{2 * index}" for index in range(count)]

    def convolution(self, x: Tensor, prefix: str, strides: int) -> Tensor:
        """Applies a convolution and ReLU.

        Args:
            x: `[B, height, width, channels]`.
            prefix: str. Name of the layer in PyTorch.
            strides: int.

        Returns:
            `[B, height, width, filters]`.
        """
        kernel = self.array(f"{prefix}.weight")
        if kernel.ndim != 4 or kernel.shape[1] != x.shape[-1]:
            raise ValueError(
                f"{prefix}.weight of shape {kernel.shape}, for {x.shape[-1]} "
                "channels"
            )
        layer = keras.layers.Conv2D(
            len(kernel),
            kernel.shape[2:],
            strides,
            activation="relu",
            data_format=DATA_FORMAT,
            name=prefix.replace(".", "_"),
        )
        output: Tensor = layer(x)
        # [filters, channels, height, width] -> channels and filters last
        bias = self.array(f"{prefix}.bias")
        layer.set_weights([kernel.transpose(2, 3, 1, 0), bias])
        return output


def _activated(x: Tensor, activation: str, name: str) -> Tensor:
    """Applies an activation as PyTorch computes it."""
    layer: keras.layers.Layer
    if activation == "leaky_relu":
        layer = keras.layers.LeakyReLU(_LEAKY_SLOPE, name=f"{name}_activation")
    else:
        layer = keras.layers.Activation(activation, name=f"{name}_activation")
    output: Tensor = layer(x)
    return output
