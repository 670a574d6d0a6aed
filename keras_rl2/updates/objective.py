"""What an update of an off-policy agent makes a step along."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import keras

from keras_rl2.basics.shapes import Tensor

Batch = dict[str, Tensor]
Terms = dict[str, Tensor]


class Objective(NamedTuple):
    """A loss, and what is to follow its gradient.

    Attributes:
        terms: Callable from a minibatch to a dict of tensors: `loss`, the
            scalar that is minimised; perhaps `td_error` `[B]`, how surprising
            each transition was; other scalars, for the logs.
        networks: Sequence of `keras.Model`. Are trained by it, and what they
            add to a loss (`kernel_regularizer`, `add_loss`) is added to it.
        variables: Sequence of `keras.Variable`. Trained beside those of the
            networks. Defaults to none.
        optimizer: `keras.optimizers.Optimizer`, or None for the agent's.
            Objectives with the same one make a single step, clipped together.
            Defaults to `None`.
        every: int. Updates from one step to the next. Defaults to `1`.
        last_loss: Scalar variable that keeps the loss, to be reported by
            updates without a step; or None. Defaults to `None`.
    """

    terms: Callable[[Batch], Terms]
    networks: Sequence[keras.Model]
    variables: Sequence[keras.Variable] = ()
    optimizer: keras.optimizers.Optimizer | None = None
    every: int = 1
    last_loss: keras.Variable | None = None

    @property
    def trained(self) -> list[keras.Variable]:
        """All variables that follow the gradient."""
        return [
            *(v for each in self.networks for v in each.trainable_variables),
            *(each for each in self.variables if each.trainable),
        ]
