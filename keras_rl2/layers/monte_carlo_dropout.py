"""Dropout that is active in all passes."""

import keras

from keras_rl2.basics.shapes import Tensor


@keras.saving.register_keras_serializable(package="keras_rl2")
class MonteCarloDropout(keras.layers.Dropout):
    """Dropout that is active in all passes, whatever `training` says.

    So are the critics of DroQ sampled: in their loss, in targets, and in the
    loss of the actor.

    Args:
        **kwargs: Arguments of `keras.layers.Dropout`.

    Example:

    >>> layer = MonteCarloDropout(0.5, seed=0)
    >>> outputs = layer(keras.ops.ones((100,)), training=False).numpy()
    >>> sorted({*outputs.tolist()})
    [0.0, 2.0]

    Reference:
        - [Gal and Ghahramani, 2016](https://arxiv.org/abs/1506.02142).
        - [Hiraoka et al., 2022](https://arxiv.org/abs/2110.02034), DroQ.
    """

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Drops numbers out of `[B, ...]`, and scales the others."""
        return super().call(inputs, training=True)
