"""The arguments of `Agent.compile`, and how they are saved."""

import dataclasses
from collections.abc import Iterable
from typing import Any
from typing import TypeAlias

import keras
from keras import ops

from keras_rl2.basics import arguments
from keras_rl2.updates import skipped_updates
from keras_rl2.updates.skipped_updates import DEFAULT_LIMIT
from keras_rl2.updates.skipped_updates import parts_of

GivenOptimizer: TypeAlias = keras.optimizers.Optimizer | str | dict[str, Any]
"""An optimizer, its name or `"auto"`, or its config."""

GivenCallbacks: TypeAlias = (
    keras.callbacks.Callback | Iterable[keras.callbacks.Callback] | None
)
"""Callbacks in the forms that Keras takes."""


@dataclasses.dataclass
class CompileArguments:
    """The arguments of `compile`, which describes them."""

    optimizer: GivenOptimizer = "auto"
    critic_optimizer: GivenOptimizer | None = None
    steps_per_execution: int | str = "auto"
    jit_compile: bool | str = "auto"
    max_skipped_updates: int | None = DEFAULT_LIMIT
    run_eagerly: bool = False
    auto_scale_loss: bool = True

    def __post_init__(self) -> None:
        if self.steps_per_execution != "auto":
            arguments.check_positive(
                steps_per_execution=self.steps_per_execution
            )
        arguments.check_positive(
            **arguments.present(max_skipped_updates=self.max_skipped_updates)
        )
        if self.jit_compile != "auto":
            arguments.check_flag(jit_compile=self.jit_compile)
        arguments.check_flag(
            run_eagerly=self.run_eagerly, auto_scale_loss=self.auto_scale_loss
        )
        arguments.check_known(
            lambda each: each == "auto" or keras.optimizers.get(each),
            "an optimizer of Keras, its name or its config, or 'auto'",
            optimizer=self.optimizer,
            **arguments.present(critic_optimizer=self.critic_optimizer),
        )

    @property
    def optimizers(self) -> list[keras.optimizers.Optimizer]:
        """The optimizers that `make_optimizer` has joined."""
        both = self.optimizer, self.critic_optimizer
        return [each for each in both if each is not None]

    def make_optimizer(self, agent: keras.Model) -> keras.optimizers.Optimizer:
        """Returns the single optimizer that is passed to Keras.

        Two optimizers become a `MultiOptimizer`, which Keras' learning-rate
        callbacks, its savers and TensorBoard understand. It chooses by the
        identity of a variable: paths change when a model is loaded.
        """
        if self.optimizer == "auto":
            self.optimizer = keras.optimizers.Adam(**agent.default_adam)
        actor = keras.optimizers.get(self.optimizer)
        _refuse_rate(actor)
        self.optimizer = actor
        if self.critic_optimizer is None:
            return actor
        agent.critic_variables()
        if self.critic_optimizer == "auto":
            config = {**actor.get_config(), "name": "critic"}
            self.critic_optimizer = type(actor).from_config(config)
        critic = keras.optimizers.get(self.critic_optimizer)
        _refuse_rate(critic)
        self.critic_optimizer = critic
        if critic is actor:
            raise ValueError(
                "Expected `critic_optimizer` to be an optimizer of its own. "
                "Received: the same object as `optimizer`"
            )

        def choose(variable: keras.Variable) -> keras.optimizers.Optimizer:
            # Called when the optimizer is built: before that, networks may have
            # no variables.
            owned = any(variable is v for v in agent.critic_variables())
            return critic if owned else actor

        return keras.optimizers.MultiOptimizer(choose)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments as plain data."""
        return {
            each.name: keras.saving.serialize_keras_object(
                getattr(self, each.name)
            )
            for each in dataclasses.fields(self)
        }

    @staticmethod
    def from_config(config: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments that `get_config` wrote down."""
        return {
            key: keras.saving.deserialize_keras_object(value)
            for key, value in config.items()
        }


def _refuse_rate(optimizer: keras.optimizers.Optimizer) -> None:
    """Raises if no update could be made with a learning rate."""
    for part in parts_of(optimizer):
        rate = float(ops.convert_to_numpy(part.learning_rate))
        if not skipped_updates.is_small(rate):
            raise ValueError(
                "Expected a finite learning rate, and none that lets weights "
                f"overflow. Received: learning_rate={rate} of {part.name!r}"
            )
