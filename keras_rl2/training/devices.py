"""The devices of an agent: where it is placed, and which share its updates."""

import contextlib
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from keras_rl2.basics.direct_call import is_gpu
from keras_rl2.basics.direct_call import present_device
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.model_layers import all_layers

TrainStep = Callable[[Any], dict[str, Tensor]]


class Devices:
    """The devices of an agent: its `MirroredStrategy`, or None for one.

    What is not supported, by `docs/scaling.md`, is a `ValueError`.

    Attributes:
        strategy: `tf.distribute.Strategy` or None.
        placed: str or None. The device on which the agent was made; None for
            the only one, and with a strategy.
    """

    def __init__(self) -> None:
        self.placed: str | None = None
        self.strategy: tf.distribute.Strategy | None = None
        if tf.distribute.has_strategy():
            self.strategy = tf.distribute.get_strategy()
            if not isinstance(self.strategy, tf.distribute.MirroredStrategy):
                name = type(self.strategy).__name__
                raise _refused("the scope of a `MirroredStrategy`", name)
        else:
            self.placed = present_device()

    @property
    def has_gpu(self) -> bool:
        """Whether the agent is on a GPU."""
        return is_gpu(self.placed)

    def placement(self) -> Any:
        """Runs the operations within on the device of the agent."""
        if self.placed is None:
            return contextlib.nullcontext()
        return keras.device(self.placed)

    def elsewhere(
        self, variables: Iterable[keras.Variable]
    ) -> list[keras.Variable]:
        """Returns those of the variables that are on another device."""
        if self.placed is None:
            return []
        return [each for each in variables if each.value.device != self.placed]

    def adopt(self, optimizers: Iterable[keras.optimizers.Optimizer]) -> None:
        """Moves the variables of optimizers to the agent's device."""
        for optimizer in optimizers:
            for each in self.elsewhere(optimizer.variables):
                # Keras has no public way, and makes some with the optimizer.
                each._value = tf.Variable(
                    tf.identity(each.value), trainable=each.trainable
                )

    def scope(self) -> Any:
        """Creates the variables within on all devices."""
        if self.strategy is None:
            return self.placement()
        return self.strategy.scope()

    def unseen(self) -> Any:
        """Hides the strategy from a constructor that makes no variables.

        A `keras.Model` made under a strategy distributes the elements of
        datasets, which are whole rounds here. A graph has no strategy.
        """
        return tf.Graph().as_default()

    def on_each(self, train_step: TrainStep) -> TrainStep:
        """Returns an update that all devices make together."""
        strategy = self.strategy
        if strategy is None:
            return train_step

        def update(batch: Any) -> dict[str, Tensor]:
            logs = strategy.run(train_step, args=(batch,))
            local = strategy.experimental_local_results
            return {name: local(value)[0] for name, value in logs.items()}

        return update

    def refuse_keras_loop(self) -> None:
        """Raises an error if Keras' own loop would train several devices."""
        if self.strategy is not None:
            raise _refused(
                "`fit` on a dataset of `keras_rl2`, in whole rounds: without "
                "`run_eagerly`, and with `steps_per_execution='auto'`",
                "another way of executing",
            )

    def check(self, agent: Any) -> None:
        """Raises an error if the updates of a compiled agent are not shared."""
        optimizer, arguments = agent.optimizer, agent.compile_arguments
        for variable in (*agent.variables, *optimizer.variables):
            shared = isinstance(variable.value, tf.distribute.DistributedValues)
            if shared != (self.strategy is not None):
                raise _refused(
                    "networks, optimizers and the agent made within the same "
                    "`strategy.scope()`, or all of them without one",
                    f"{variable.path!r}, which was made elsewhere",
                )
        if self.strategy is None:
            return
        if arguments is not None and arguments.jit_compile is True:
            raise _refused("no `jit_compile`", "jit_compile=True")
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            raise _refused("no loss scale", optimizer.name)
        for layer in all_layers(agent):
            normalizes = isinstance(layer, keras.layers.BatchNormalization)
            if normalizes or getattr(layer, "activity_regularizer", None):
                raise _refused(
                    "no BatchNormalization and `activity_regularizer`, which "
                    "would see a part of the minibatch",
                    repr(layer.name),
                )


def _refused(expected: str, received: str) -> ValueError:
    """Makes the error for features that several devices do not support."""
    return ValueError(
        f"Expected, under a `tf.distribute.Strategy`, {expected}. "
        f"Received: {received}"
    )
