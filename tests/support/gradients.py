"""Gradients as arrays."""

import numpy as np
import tensorflow as tf


def gradient(function, value):
    """Return the gradient of the sum of a function's result."""
    value = tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch(value)
        total = tf.reduce_sum(function(value))
    return tape.gradient(
        total, value, unconnected_gradients=tf.UnconnectedGradients.ZERO
    ).numpy()


def numerical_gradient(loss, weights):
    """Central differences of a loss of a list of arrays, in place."""
    gradients = []
    for weight in weights:
        gradient = np.zeros_like(weight)
        for index in np.ndindex(weight.shape):
            old = weight[index]
            sides = []
            for side in (old + 1e-5, old - 1e-5):
                weight[index] = side
                sides.append(loss())
            weight[index] = old
            gradient[index] = (sides[0] - sides[1]) / 2e-5
        gradients.append(gradient)
    return gradients
