"""Gradients as arrays."""

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
