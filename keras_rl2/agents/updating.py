"""Applying gradients."""

from typing import Any

import tensorflow as tf

from keras_rl2.shapes import Tensor


def apply_gradients(
    optimizer: Any,
    gradients: list[Any],
    variables: list[Any],
    max_norm: float | None,
) -> Tensor:
    """Applies gradients, clipped to a global norm if asked for.

    Args:
        optimizer: `keras.optimizers.Optimizer`, built with the variables.
        gradients: list of tensors, of a loss that `optimizer.scale_loss`
            scaled.
        variables: list of `keras.Variable`. What they are the gradients of.
        max_norm: float or None. Global norm that they are clipped to.

    Returns:
        scalar: global norm of the gradients before they were clipped.
    """
    # Under mixed precision gradients are scaled until they are applied.
    scale = optimizer.scale_loss(1.0)
    norm = tf.linalg.global_norm(gradients)
    if max_norm is not None:
        gradients, _ = tf.clip_by_global_norm(
            gradients, max_norm * scale, use_norm=norm
        )
    optimizer.apply(gradients, variables)
    return norm / scale
