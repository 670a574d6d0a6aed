"""Calling TensorFlow once for each round."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves

_Traced = Callable[[list[Any]], tf.Tensor]


class RoundCall:
    """Calls a graph with the arrays of a round.

    A `tf.function` finds out from the types of all that it is given, an
    iterator above all, which of its traces is meant: that takes as long as a
    small update. Here shapes and dtypes say it.

    Args:
        function: Callable from a round, a tree of tensors, to a tensor. What
            is traced, once for rounds of each form.
        compiled: bool. Whether XLA compiles all that it does. Defaults to
            `False`.

    Example:

    >>> call = RoundCall(lambda one_round: one_round["reward"] * 2.0)
    >>> call({"reward": np.array([1.0, 2.0], "float32")}).tolist()
    [2.0, 4.0]
    """

    def __init__(
        self, function: Callable[[Any], Tensor], compiled: bool = False
    ) -> None:
        self._function = function
        # Graphs that TensorFlow runs itself are to follow the options of
        # `tf.config`, and a GPU has arrays where only it can tell.
        self._directly = compiled and not tf.config.list_logical_devices("GPU")
        self._traced: dict[tuple[Any, ...], _Traced] = {}

    def __call__(self, one_round: Any) -> np.ndarray:
        """Runs the graph.

        Args:
            one_round: Tree of arrays, or of tensors.

        Returns:
            np.ndarray.
        """
        named = list(named_leaves(one_round))
        form = tuple([(path, each.shape, each.dtype) for path, each in named])
        traced = self._traced.get(form)
        if traced is None:
            traced = self._traced[form] = self._trace(one_round)
        result: np.ndarray = traced([each for _, each in named]).numpy()
        return result

    def _trace(self, one_round: Any) -> _Traced:
        """Traces the function for rounds of this form."""
        form = map_leaves(_spec, one_round)

        def flat(*tensors: Tensor) -> Tensor:
            return self._function(with_leaves(form, [*tensors]))

        traced = tf.function(
            flat,
            input_signature=[each for _, each in named_leaves(form)],
            autograph=False,
        ).get_concrete_function()
        if self._directly:
            return _direct(traced)
        # To let TensorFlow convert them takes four times as long.
        return lambda arrays: traced(*map(tf.constant, arrays))


def _direct(traced: tf.types.experimental.ConcreteFunction) -> _Traced:
    """Returns the operation that a call of a function comes down to.

    What TensorFlow does in Python before that takes a third of the time of a
    small update.
    """
    captured, dtype = traced.captured_inputs, traced.structured_outputs.dtype

    def call(arrays: list[Any]) -> tf.Tensor:
        result: tf.Tensor
        [result] = tf.raw_ops.StatefulPartitionedCall(
            args=[*arrays, *captured], Tout=[dtype], f=traced
        )
        return result

    return call


def _spec(array: Any) -> tf.TensorSpec:
    """Returns the form of an array."""
    return tf.TensorSpec(array.shape, array.dtype)
