"""Self-attention over the last steps, as an RNN cell."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import check_seed
from keras_rl2.basics.shapes import Tensor

# Added to the score of an empty slot of the window.
_NOT_THERE = -1e9


@keras.saving.register_keras_serializable(package="keras_rl2")
class WindowAttentionCell(keras.layers.Layer):
    """Attends to the last steps of the episode, the present one included.

    A transformer block with a window that moves with time as context, in the
    form of an RNN cell: its state is the window. It acts step by step, and is
    trained, saved and exported like an LSTM.

        e_t = W x_t
        y_t = e_t + W_o attention(e_t, e_{t-k+1} ... e_t)
        h_t = y_t + W_2 relu(W_1 norm(y_t))

    Args:
        units: int. Width of the output, a multiple of `heads`.
        window: int. Number of steps that are attended to, k. Defaults to `16`.
        heads: int. Attention heads. Defaults to `4`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        **kwargs: `name`, `dtype` and `trainable`; see
            [`keras.layers.Layer`](https://keras.io/api/layers/base_layer/).

    Raises:
        ValueError: If a number is below 1, or `units` no multiple of `heads`.

    Example:

    >>> import numpy as np
    >>> rnn = keras.layers.RNN(WindowAttentionCell(8, window=4, heads=2))
    >>> rnn(np.zeros((2, 5, 3))).shape
    TensorShape([2, 8])

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762).
        - [Parisotto et al., 2020](https://arxiv.org/abs/1910.06764), in
          reinforcement learning.
    """

    def __init__(
        self,
        units: int,
        window: int = 16,
        heads: int = 4,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_positive(units=units, window=window, heads=heads)
        check_seed(seed)
        super().__init__(**kwargs)
        if units % heads:
            raise ValueError(
                "Expected `units` to be a multiple of `heads`. "
                f"Received: units={units}, heads={heads}"
            )
        self.units = units
        self.window = window
        self.heads = heads
        self.seed = seed
        # The window, and which of its slots are filled.
        self.state_size = [window * units, window]
        self.output_size = units
        drawn = seeds.sequence(seed).generate_state(7).tolist()

        def dense(width: int, name: str, **options: Any) -> keras.layers.Dense:
            start = keras.initializers.GlorotUniform(drawn.pop())
            return keras.layers.Dense(
                width, kernel_initializer=start, name=name, **options
            )

        self.embed = dense(units, "embed")
        self.query = dense(units, "query")
        self.key = dense(units, "key")
        self.value = dense(units, "value")
        self.mix = dense(units, "mix")
        self.inner = dense(2 * units, "inner", activation="relu")
        self.outer = dense(units, "outer")
        self.norm = keras.layers.LayerNormalization(name="norm")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Makes the weights."""
        self.embed.build(input_shape)
        for layer in (self.query, self.key, self.value, self.mix, self.norm):
            layer.build((None, self.units))
        self.inner.build((None, self.units))
        self.outer.build((None, 2 * self.units))
        # Embedding of a step's age.
        self.position = self.add_weight(
            shape=(self.window, self.units),
            initializer=keras.initializers.RandomNormal(
                stddev=0.02, seed=self.seed
            ),
            name="position",
        )

    def get_initial_state(self, batch_size: int | None = None) -> list[Tensor]:
        """Returns an empty window."""
        return [
            ops.zeros((batch_size, size), dtype=self.compute_dtype)
            for size in self.state_size
        ]

    def call(
        self, inputs: Tensor, states: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Runs one step.

        Args:
            inputs: `[B, F]`. The present step.
            states: list of `[B, window * units]` and `[B, window]`.

        Returns:
            `[B, units]`, and the states after the step.
        """
        present = self.embed(inputs)
        # [B, window * units] -> [B, window, units], without the oldest
        window = ops.reshape(states[0], (-1, self.window, self.units))
        window = ops.concatenate([window[:, 1:], present[:, None]], axis=1)
        there = ops.concatenate(
            [states[1][:, 1:], ops.ones_like(states[1][:, :1])], axis=1
        )
        seen = present + self.mix(self._attended(present, window, there))
        output = seen + self.outer(self.inner(self.norm(seen)))
        flat = ops.reshape(window, (-1, self.window * self.units))
        return output, [flat, there]

    def _attended(
        self, present: Tensor, window: Tensor, there: Tensor
    ) -> Tensor:
        """Returns the attention output of the present step, `[B, U]`."""
        width = self.units // self.heads
        aged = window + ops.convert_to_tensor(self.position)

        def by_head(array: Tensor, steps: int) -> Tensor:
            # [B, steps, units] -> [B, heads, steps, width]
            array = ops.reshape(array, (-1, steps, self.heads, width))
            turned: Tensor = ops.transpose(array, (0, 2, 1, 3))
            return turned

        query = by_head(self.query(present)[:, None], 1)
        key = by_head(self.key(aged), self.window)
        value = by_head(self.value(aged), self.window)
        # [B, heads, 1, window]
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        scores = scores / math.sqrt(width)
        scores = scores + (1.0 - there)[:, None, None, :] * _NOT_THERE
        attended = ops.matmul(ops.softmax(scores, axis=-1), value)
        # [B, heads, 1, width] -> [B, units]
        return ops.reshape(attended, (-1, self.units))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            **super().get_config(),
            "units": self.units,
            "window": self.window,
            "heads": self.heads,
            "seed": self.seed,
        }
