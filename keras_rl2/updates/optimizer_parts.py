"""Optimizers that hold others."""

import keras


def parts_of(
    optimizer: keras.optimizers.Optimizer,
) -> list[keras.optimizers.Optimizer]:
    """Returns the optimizers within one that have a learning rate each.

    Args:
        optimizer: `keras.optimizers.Optimizer`. One of several parts perhaps,
            or with a loss scale.

    Returns:
        list of `keras.optimizers.Optimizer`.

    Example:

    >>> adam = keras.optimizers.Adam()
    >>> parts_of(keras.optimizers.LossScaleOptimizer(adam)) == [adam]
    True
    """
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return parts_of(optimizer.inner_optimizer)
    if isinstance(optimizer, keras.optimizers.MultiOptimizer):
        return list(optimizer.optimizers)
    return [optimizer]
