"""The steps of an update: all of them are made, or none."""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distribute import replicas
from keras_rl2.updates.optimizer_parts import parts_of
from keras_rl2.updates.skipped_updates import SkippedUpdates
from keras_rl2.updates.trained_variables import nothing_to_train
from keras_rl2.updates.updating import all_computed
from keras_rl2.updates.updating import apply_gradients


class Step(NamedTuple):
    """What has become of an update, in the graph.

    Attributes:
        norm: scalar. Global norm of the first optimizer's gradients, before
            they were clipped.
        skipped: scalar bool. Whether nothing was changed, since something was
            not finite.
        counted: scalar bool. Whether its numbers are to be among the means of
            the logs.
    """

    norm: Tensor
    skipped: Tensor
    counted: Tensor

    @classmethod
    def not_due(cls) -> "Step":
        """Returns what is said of an update that was not to be made."""
        return cls(tf.constant(0.0), tf.constant(False), tf.constant(True))


def _nothing() -> None:
    """Changes nothing."""


class GradientSteps:
    """Gradients of one update, gathered by the optimizers that take them.

    An update is all of its steps, or none of them: where a gradient or a
    learning rate is not finite, or so large that weights could overflow, no
    optimizer is asked. Weights, slots and iterations stay as they are, bit
    for bit; so do the weights that layers change in a forward pass.

    To be made before the forward pass.

    Args:
        skipped: `SkippedUpdates`. Is told, and knows what a forward pass
            changes.
        max_norm: float or None. Global norm that the gradients of each
            optimizer are clipped to.
    """

    def __init__(self, skipped: SkippedUpdates, max_norm: float | None) -> None:
        self._skipped = skipped
        self._max_norm = max_norm
        self._before = skipped.before_forward_pass()
        self._steps: dict[int, _Gradients] = {}

    def add(
        self,
        optimizer: keras.optimizers.Optimizer,
        gradients: Sequence[Tensor | None],
        variables: Sequence[keras.Variable],
        due: Tensor | None = None,
    ) -> None:
        """Takes gradients.

        Args:
            optimizer: `keras.optimizers.Optimizer`. Takes all that it is given
                in one step, clipped together, but for what is not always due.
            gradients: Sequence of tensors, of a loss that
                `optimizer.scale_loss` scaled.
            variables: Sequence of `keras.Variable`. What they are the
                gradients of.
            due: scalar bool or None. Whether it is their turn; None for
                always. Defaults to `None`.
        """
        key = id(optimizer) if due is None else -1 - len(self._steps)
        step = self._steps.setdefault(key, _Gradients(optimizer, due))
        step.gradients += replicas.mean(gradients)
        step.variables += variables

    def apply(self, then: Callable[[], None] | None = None) -> Step:
        """Makes the steps, if all is finite.

        Args:
            then: Callable. What else is to be changed by an update that is
                made, in the graph; None for nothing. Defaults to `None`.

        Returns:
            `Step`.
        """
        steps = [each for each in self._steps.values() if each.variables]
        if not steps:
            raise nothing_to_train()
        for step in steps:
            step.measure()
        finite = functools.reduce(
            tf.logical_and, [step.is_finite() for step in steps]
        )
        ready = all_computed([step.gradients for step in steps])
        for step, gradients in zip(steps, ready, strict=True):
            step.gradients = gradients

        def make() -> None:
            for step in steps:
                step.apply(self._max_norm)
            self._skipped.end_row()
            if then is not None:
                then()

        def skip() -> None:
            self._skipped.count(
                self._before, [step.optimizer for step in steps]
            )

        tf.cond(finite, make, skip)
        always = [step for step in steps if step.due is None]
        norm = (always or steps)[0].unscaled_norm
        return Step(norm, tf.logical_not(finite), finite)


@dataclasses.dataclass
class _Gradients:
    """Gradients for one step of an optimizer."""

    optimizer: keras.optimizers.Optimizer
    due: Tensor | None
    gradients: list[Tensor | None] = dataclasses.field(default_factory=list)
    variables: list[keras.Variable] = dataclasses.field(default_factory=list)

    def measure(self) -> None:
        """Reads what the gradients are to be judged by."""
        if not self.optimizer.built:
            # A branch of the graph could make no variables.
            self.optimizer.build(self.variables)
        # Under mixed precision gradients are scaled until they are applied.
        self.scale = self.optimizer.scale_loss(1.0)
        self.norm = tf.linalg.global_norm(self.gradients)
        self.unscaled_norm = self.norm / self.scale

    def is_finite(self) -> Tensor:
        """Says whether the step leaves weights and slots finite.

        Squares are what optimizers keep, and none goes further in a step than
        some times the rate, or the rate times the norm: while the square of
        either is finite, weights would overflow after more steps than anybody
        can make.
        """
        reach = 1.0 + self.unscaled_norm
        for part in parts_of(self.optimizer):
            reach = reach * (1.0 + tf.cast(part.learning_rate, reach.dtype))
        finite: Tensor = tf.math.is_finite(reach * reach)
        return finite

    def apply(self, max_norm: float | None) -> None:
        """Makes the step, if it is due."""
        if self.due is None:
            self._apply(max_norm)
        else:
            tf.cond(self.due, lambda: self._apply(max_norm), _nothing)

    def _apply(self, max_norm: float | None) -> None:
        """Clips and applies the gradients."""
        gradients = self.gradients
        if max_norm is not None:
            gradients, _ = tf.clip_by_global_norm(
                gradients, max_norm * self.scale, use_norm=self.norm
            )
        apply_gradients(self.optimizer, gradients, self.variables)
