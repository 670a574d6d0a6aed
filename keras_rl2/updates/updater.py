"""What an update of an off-policy agent makes a step along."""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import TypeVar

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distribute import replicas
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.skipped_updates import SkippedUpdates
from keras_rl2.updates.skipped_updates import parts_of
from keras_rl2.updates.trained_variables import nothing_to_train

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


Gradients = TypeVar("Gradients")


def minibatch_of(data: Any) -> dict[str, Tensor]:
    """Returns what `train_step` was given as a dict with a `weight`.

    Args:
        data: dict of `[B, ...]`, in a tuple perhaps, as Keras hands it over.
            Without a `weight`, each row counts 1; a `sample_weight` beside it
            is a factor of that. What is float64, as NumPy makes it of its own
            accord, becomes float32.

    Returns:
        dict of `[B, ...]`.

    Raises:
        ValueError: If it is no dict, or there are targets beside it.
    """
    given: dict[str, Tensor]
    given, targets, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    if targets is not None or not isinstance(given, Mapping):
        raise ValueError(
            "Expected a minibatch to be a dict, with all that is learned from "
            "among its entries, and a `weight` of its rows perhaps. Received: "
            + ("targets `y` beside it" if targets is not None else repr(given))
        )
    batch: dict[str, Tensor] = map_leaves(
        lambda each: (
            ops.cast(each, "float32") if each.dtype == "float64" else each
        ),
        given,
    )
    if "weight" not in batch:
        ones = ops.ones(ops.shape(batch["action"])[:1], "float32")
        batch = {**batch, "weight": ones}
    if sample_weight is None:
        return batch
    return {**batch, "weight": _weighted(batch["weight"], sample_weight)}


def _weighted(weight: Tensor, factor: Any) -> Tensor:
    """Multiplies the weights of rows by those that came beside them."""
    factor = ops.cast(factor, "float32")
    if factor.shape != weight.shape:
        raise ValueError(
            "Expected `sample_weight` to have the shape of the minibatch's "
            f"`weight`, {tuple(weight.shape)}. "
            f"Received: {tuple(factor.shape)}"
        )
    product: Tensor = ops.cast(weight, "float32") * factor
    return product


def _ensured(tensor: Tensor) -> Tensor:
    """Returns a tensor through an operation that changes nothing."""
    # No `tf.identity`, which the graph optimizer takes away.
    return tf.raw_ops.EnsureShape(input=tensor, shape=tensor.shape)


def all_computed(gradients: Gradients) -> Gradients:
    """Returns gradients that no optimizer gets before all are there.

    To be called before anything is applied, once for all of an update.

    Args:
        gradients: Nested lists of tensors.

    Returns:
        The same.

    A variable that one loss changes may be read by another: the policy in
    the critics' targets, the critics in the policy's loss. `tf.function` has
    such reads come first, but TensorFlow 2.21's graph optimizer drops that
    order where a path seems to lead from the read to the change through the
    `IdentityN` in which Keras' optimizers gather all gradients; it then takes
    the `IdentityN` apart, and with it the path. Values before and after the
    change were mixed at random.
    """
    if tf.executing_eagerly():
        return gradients
    with tf.control_dependencies(tf.nest.flatten(gradients)):
        ensured: Gradients = tf.nest.map_structure(
            _ensured,
            gradients,
            expand_composites=True,
        )
    return ensured


def apply_gradients(
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[Tensor | None],
    variables: Sequence[keras.Variable],
) -> None:
    """Makes one step of an optimizer.

    What Keras' optimizers do on each replica before they change anything is
    to sum gradients over all of them. TensorFlow registers a gradient of that
    sum, for as long as the process lives, and with it the graph of the update:
    some megabytes for each agent that was trained. What is called from between
    replicas makes no such sum; nor is there anything to be summed, with one
    replica, or of gradients that are those of all. One that scales losses
    refuses to be called from there, and sums as Keras does.

    Args:
        optimizer: `keras.optimizers.Optimizer`. One that is built.
        gradients: Sequence of tensors.
        variables: Sequence of `keras.Variable`. What they are the gradients
            of.
    """
    if tf.distribute.in_cross_replica_context():
        _apply_once(optimizer, gradients, variables)
        return
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        optimizer.apply(gradients, variables)
        return

    def apply(_: tf.distribute.Strategy) -> None:
        optimizer.apply(gradients, variables)

    tf.distribute.get_replica_context().merge_call(apply)


def _apply_part(
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[Tensor | None],
    variables: Sequence[keras.Variable],
) -> None:
    """Makes a step within a replica, where Keras sums over all of them."""
    number = tf.distribute.get_strategy().num_replicas_in_sync
    parts = [None if each is None else each / number for each in gradients]
    optimizer.apply(parts, variables)


def _apply_once(
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[Tensor | None],
    variables: Sequence[keras.Variable],
) -> None:
    """Makes a step between replicas, of gradients that all of them have."""
    strategy = tf.distribute.get_strategy()
    if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        strategy.run(_apply_part, args=(optimizer, gradients, variables))
        return
    # What it does itself with gradients that are finite, as they are here.
    scale = tf.convert_to_tensor(optimizer.dynamic_scale.value)
    unscaled = [None if each is None else each / scale for each in gradients]
    _apply_once(optimizer.inner_optimizer, unscaled, variables)
    made = tf.convert_to_tensor(optimizer.step_counter.value) + 1
    grows = made >= optimizer.dynamic_growth_steps
    optimizer.step_counter.assign(tf.where(grows, tf.zeros_like(made), made))
    optimizer.dynamic_scale.assign(tf.where(grows, 2.0 * scale, scale))
