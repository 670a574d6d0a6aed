"""Calling TensorFlow once for each round."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_rl2.shapes import Tensor
from keras_rl2.trees import map_leaves
from keras_rl2.trees import named_leaves
from keras_rl2.trees import with_leaves


class RoundCall:
    """Calls a graph with the arrays of a round.

    A `tf.function` finds out from the types of all that it is given, an
    iterator above all, which of its traces is meant: that takes as long as a
    small update. Here shapes and dtypes say it.

    Args:
        function: Callable from a round, a tree of tensors, to a tensor. What
            is traced, once for rounds of each form.

    Example:

    >>> call = RoundCall(lambda one_round: one_round["reward"] * 2.0)
    >>> call({"reward": np.array([1.0, 2.0], "float32")}).tolist()
    [2.0, 4.0]
    """

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        self._function = function
        self._traced: dict[tuple[Any, ...], Callable[..., Any]] = {}

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
        # To let TensorFlow convert them takes four times as long.
        result = traced(*[tf.constant(each) for _, each in named])
        array: np.ndarray = result.numpy()
        return array

    def _trace(self, one_round: Any) -> Callable[..., Any]:
        """Traces the function for rounds of this form."""
        form = map_leaves(_spec, one_round)

        def flat(*tensors: Tensor) -> Tensor:
            return self._function(with_leaves(form, [*tensors]))

        traced: Callable[..., Any] = tf.function(
            flat,
            input_signature=[each for _, each in named_leaves(form)],
            autograph=False,
        ).get_concrete_function()
        return traced


def _spec(array: Any) -> tf.TensorSpec:
    """Returns the form of an array."""
    return tf.TensorSpec(array.shape, array.dtype)
