"""Dense layers with learned noise.

Letters: B is the batch, P the inputs, Q the units.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import keras
from keras import ops

from keras_rl2.basics.shapes import Tensor

__all__ = ["NoisyDense", "noise_given"]

# The noise that is left for the layers called next.
_LEFT: ContextVar[list[Tensor]] = ContextVar("left")


@keras.saving.register_keras_serializable(package="keras_rl2")
class NoisyDense(keras.layers.Dense):
    """Dense layer whose weights have learned deviations, for exploration.

    With factorised Gaussian noise ε of P inputs and Q units,

        y = (μ_w + σ_w f(ε_p) f(ε_q)ᵀ)ᵀ x + μ_b + σ_b f(ε_q)
        f(ε) = sign(ε) sqrt(|ε|)

    where μ and σ are learned; σ is 0.5 / sqrt(P) at first. An agent with
    `noisy=True` draws the noise, and gives it by `noise_given`. Without noise,
    as in greedy actions, the layer is a `keras.layers.Dense` of the means μ.

    Args:
        **kwargs: Arguments of `keras.layers.Dense`.

    Example:

    >>> layer = NoisyDense(2, kernel_initializer="zeros")
    >>> layer(ops.ones((1, 4))).numpy().tolist()
    [[0.0, 0.0]]
    >>> noise = ops.convert_to_tensor([[1.0, 1.0, 1.0, 1.0, 4.0, -4.0]])
    >>> with noise_given(noise):
    ...     layer(ops.ones((1, 4))).numpy().tolist()
    [[2.5, -2.5]]

    Reference:
        - [Fortunato et al., 2018](https://arxiv.org/abs/1706.10295).
    """

    # `Dense` would save its kernel and bias alone.
    save_own_variables = keras.layers.Layer.save_own_variables
    load_own_variables = keras.layers.Layer.load_own_variables

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates means and deviations."""
        super().build(input_shape)
        inputs = int(input_shape[-1] or 1)
        self.noise_size = inputs + self.units
        start = keras.initializers.Constant(0.5 / inputs**0.5)
        shape = (inputs, self.units)
        self.kernel_deviation = self.add_weight(
            shape, start, name="kernel_deviation"
        )
        self.bias_deviation = self.add_weight(
            shape[1:], start, name="bias_deviation"
        )

    def call(self, inputs: Tensor) -> Tensor:
        """Runs the layer on `[B, P]`, and returns `[B, Q]`."""
        left = _LEFT.get([])
        if not left:
            return super().call(inputs)
        noise, left[0] = ops.split(left[0], [self.noise_size], axis=-1)
        noise = ops.cast(noise, self.compute_dtype)
        scaled = ops.sign(noise) * ops.sqrt(ops.abs(noise))
        of_inputs, of_units = ops.split(scaled, [inputs.shape[-1]], axis=-1)
        deviation = ops.matmul(inputs * of_inputs, self.kernel_deviation)
        deviation = of_units * (deviation + self.bias_deviation)
        bias = self.bias if self.use_bias else 0.0
        outputs = ops.matmul(inputs, self.kernel) + bias + deviation
        return self.activation(outputs)


@contextlib.contextmanager
def noise_given(noise: Tensor | None) -> Iterator[None]:
    """Gives noise to the `NoisyDense` layers that are called within, in turn.

    Args:
        noise: `[B, N]` or `[1, N]`, standard normal, where N is the sum of
            P + Q over the calls; None for no noise.

    Yields:
        None.

    Example:

    >>> network = keras.Sequential([NoisyDense(3, "relu"), NoisyDense(2)])
    >>> with noise_given(keras.random.normal((1, 4 + 3 + 3 + 2))):
    ...     noisy = network(ops.ones((5, 4)))
    """
    before = _LEFT.set([] if noise is None else [noise])
    try:
        yield
    finally:
        _LEFT.reset(before)
