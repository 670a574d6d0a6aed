"""Noise of actions that is a function of the state.

Letters: B is the batch, F the number of features, A that of dimensions.
"""

from typing import Any

import keras
from keras import ops

from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import present
from keras_rl2.basics.shapes import Tensor


@keras.saving.register_keras_serializable(package="keras_rl2")
class StateDependentNoise(keras.layers.Layer):
    """Log standard deviations of generalized state-dependent exploration.

    The noise of an action is linear in the features φ(s) of the last hidden
    layer, with a random matrix Θ that is drawn for several steps. In the same
    state, the same noise is added, so that actions are smooth:

        a = μ(s) + Θᵀ φ(s),    Θ_fa ~ N(0, σ_fa²)
        log std_a(s) = ½ log(Σ_f φ_f(s)² σ_fa² + 1e-6)

    Given the state, an action is normally distributed about μ(s) with this
    standard deviation, which is the output of the layer. log σ is trained; no
    gradient of the standard deviation reaches the features.

    Args:
        units: int. Dimensions of an action, A.
        initial_log_std: float. Initial log σ. Defaults to `-3.0`.
        resample_every: int or None. Steps of a rollout after which Θ is drawn
            anew; None for once a rollout. Defaults to `None`.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> layer = StateDependentNoise(1, initial_log_std=0.0)
    >>> round(float(layer(ops.array([[3.0, 4.0]]))[0, 0]), 4)  # log 5
    1.6094

    Reference:
        - [Raffin et al., 2021](https://arxiv.org/abs/2005.05719).
    """

    def __init__(
        self,
        units: int,
        initial_log_std: float = -3.0,
        resample_every: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_in_range(initial_log_std=(initial_log_std, -20.0, 20.0))
        check_positive(**present(resample_every=resample_every))
        self.units, self.initial_log_std = units, initial_log_std
        self.resample_every = resample_every

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates log σ `[F, A]`."""
        self.log_std = self.add_weight(
            shape=(input_shape[-1], self.units),
            initializer=keras.initializers.Constant(self.initial_log_std),
            name="log_std",
        )

    def call(self, features: Tensor) -> Tensor:
        """Returns log standard deviations `[B, A]` for features `[B, F]`."""
        squares = ops.square(ops.stop_gradient(features))
        variance = ops.matmul(squares, ops.exp(2.0 * self.log_std))
        return 0.5 * ops.log(variance + 1e-6)

    def standardized(self, features: Tensor, noise: Tensor) -> Tensor:
        """Returns the noise of actions in units of its standard deviation.

        Args:
            features: `[B, F]` float32.
            noise: `[B, F * A]` float32. Standard normal; Θ / σ of each row.

        Returns:
            `[B, A]` float32, standard normal.
        """
        given = self.log_std, self(features)
        log_std, own = (ops.cast(each, "float32") for each in given)
        matrix = ops.reshape(noise, (-1, *log_std.shape)) * ops.exp(log_std)
        return ops.sum(features[..., None] * matrix, axis=1) * ops.exp(-own)
