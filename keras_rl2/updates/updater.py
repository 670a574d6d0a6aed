"""Updates: all steps along the objectives, or none."""

import dataclasses
import functools
import types
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import cast

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.basics import replicas
from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.mean_of_each import named
from keras_rl2.updates.skipped_updates import parts_of

Batch = dict[str, Tensor]
Terms = dict[str, Tensor]


class Objective(NamedTuple):
    """A loss, and the variables that follow its gradient.

    Attributes:
        terms: Callable from a minibatch to a dict of tensors: `loss`, the
            scalar to minimise; optionally `td_error` `[B]`, the prediction
            error of each transition; `wanted`, a scalar bool: whether the
            update is made; `counted`, a scalar bool: whether the means of the
            logs include it; other scalars, for the logs.
        networks: Sequence of `keras.Model`. Networks trained by it. The losses
            that they add (`kernel_regularizer`, `add_loss`) are added to it.
        variables: Sequence of `keras.Variable`. Further trained variables.
            Defaults to none.
        optimizer: `keras.optimizers.Optimizer`, or None for the agent's.
            Objectives with the same one make a single step, clipped together.
            Defaults to `None`.
        every: int. Updates from one step to the next. Defaults to `1`.
        last: Mapping of scalar variables by name of a term. They keep `loss`
            and other terms of the last step, which updates without a step
            report. Needed where `every` is not 1. Defaults to none.

    Example:

    >>> network = keras.Sequential([keras.layers.Dense(1)])
    >>> terms = lambda batch: {"loss": ops.mean(network(batch["observation"]))}
    >>> Objective(terms, [network]).every
    1
    """

    terms: Callable[[Batch], Terms]
    networks: Sequence[keras.Model]
    variables: Sequence[keras.Variable] = ()
    optimizer: keras.optimizers.Optimizer | None = None
    every: int = 1
    last: Mapping[str, keras.Variable] = types.MappingProxyType({})

    @property
    def trained(self) -> list[keras.Variable]:
        """All variables that follow the gradient, each once."""
        named = set(map(id, self.variables))
        found = [
            each for net in self.networks for each in net.trainable_variables
        ]
        return [
            *(each for each in found if id(each) not in named),
            *(each for each in self.variables if each.trainable),
        ]


class Updater:
    """Makes the updates of an agent: gradients, clipping, optimizers.

    An update makes all steps along its objectives, or none: where a gradient
    or a learning rate is not finite, or so large that weights could overflow,
    no optimizer is called. Weights, slots and iterations stay as they are, bit
    for bit; so do the weights that layers change in a forward pass. All
    gradients are computed with the weights before the update.
    """

    def __init__(self, agent: keras.Model) -> None:
        self._agent = agent

    def update(
        self, objectives: Mapping[str, Objective], batch: Batch
    ) -> Terms:
        """Makes one step along each objective, if all gradients are finite.

        Returns:
            dict: the terms of all objectives; `<name>_loss` of each, and their
            sum as `loss`; `gradient_norm`, of the first optimizer's gradients
            before they are clipped; `skipped_updates`, a bool: whether nothing
            was changed, since a value was not finite; `counted`, a bool:
            whether the means of the logs include the update.
        """
        agent = self._agent
        if not agent.optimizer.built:
            agent.optimizer.build(agent.trainable_variables)
        # Before the forward pass, which may change weights of layers.
        before = agent.skipped.before_forward_pass()
        losses, terms, steps = self._differentiate(objectives, batch)
        if not steps:
            raise nothing_to_train(agent.name)
        for name in objectives:
            terms.setdefault(f"{name}_loss", losses[name])
        terms["loss"] = cast(Tensor, sum(losses.values()))
        kept = [
            (variable, losses[name] if term == "loss" else terms[term])
            for name, each in objectives.items()
            for term, variable in each.last.items()
        ]
        wanted = terms.get("wanted", tf.constant(True))

        def change() -> None:
            for step in steps:
                step.apply(agent.max_gradient_norm)
            agent.skipped.in_a_row.assign(tf.zeros((), "int64"))
            if all(each.optimizer for each in objectives.values()):
                # Counts updates; each of its parts counts its own.
                agent.optimizer.iterations.assign_add(1)
            for variable, value in kept:
                variable.assign(value)
            agent.after_update(batch, terms)

        norm, finite = replicas.once(
            lambda: self._change_if_finite(steps, before, wanted, change)
        )
        skipped = tf.logical_and(wanted, tf.logical_not(finite))
        counted = terms.get("counted", True)
        return {
            **terms,
            "gradient_norm": norm,
            "skipped_updates": skipped,
            "counted": tf.logical_and(tf.logical_not(skipped), counted),
        }

    def _differentiate(
        self, objectives: Mapping[str, Objective], batch: Batch
    ) -> "tuple[Terms, Terms, list[_Step]]":
        """Returns losses, other terms, and steps that have gradients."""
        losses: Terms = {}
        terms: Terms = {}
        steps: dict[int, _Step] = {}
        for name, objective in objectives.items():
            due = None
            if objective.every == 1:
                found, gradients = self._gradients(objective, batch)
            else:
                made = ops.convert_to_tensor(self._agent.updates_made)
                due = (made + 1) % objective.every == 0
                found, gradients = self._if_due(objective, batch, due)
            losses[name] = found.pop("loss")
            terms |= found
            optimizer = objective.optimizer or self._agent.optimizer
            # Steps that are not always due are clipped by themselves.
            key = id(optimizer) if due is None else -1 - len(steps)
            step = steps.setdefault(key, _Step(optimizer, due))
            step.gradients += replicas.mean(gradients)
            step.variables += objective.trained
        return (
            losses,
            terms,
            [step for step in steps.values() if step.variables],
        )

    def _gradients(
        self, objective: Objective, batch: Batch
    ) -> tuple[Terms, list[Tensor]]:
        """Returns the terms of an objective and its scaled gradients."""
        optimizer = objective.optimizer or self._agent.optimizer
        with tf.GradientTape() as tape:
            terms = dict(objective.terms(batch))
            for network in objective.networks:
                # Of its regularizers, and of `add_loss` in its call above.
                added = [
                    ops.cast(ops.sum(x), "float32") for x in network.losses
                ]
                terms["loss"] += sum(added)
            scaled = optimizer.scale_loss(terms["loss"])
        gradients = tape.gradient(
            scaled,
            # TensorFlow knows no zeros like a variable of Keras.
            [each.value for each in objective.trained],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return terms, gradients

    def _if_due(
        self, objective: Objective, batch: Batch, due: Tensor
    ) -> tuple[Terms, list[Tensor]]:
        """Returns terms and gradients if due; else the last ones, and zeros."""
        last = {k: ops.convert_to_tensor(v) for k, v in objective.last.items()}

        def now() -> tuple[Terms, list[Tensor]]:
            terms, gradients = self._gradients(objective, batch)
            # Gradients of an embedding have another form.
            return named(terms, last), [*map(tf.convert_to_tensor, gradients)]

        def not_now() -> tuple[Terms, list[Tensor]]:
            zeros = [tf.zeros_like(each.value) for each in objective.trained]
            return last, zeros

        if not replicas.within_one():
            return tf.cond(due, now, not_now)
        # Within a branch it could not get the other replicas' rows.
        return tf.nest.map_structure(
            lambda one, other: tf.where(due, one, other), now(), not_now()
        )

    def _change_if_finite(
        self,
        steps: "Sequence[_Step]",
        before: Any,
        wanted: Tensor,
        change: Callable[[], None],
    ) -> tuple[Tensor, Tensor]:
        """Changes all if all is finite; returns norm, and whether finite."""
        skipped = self._agent.skipped
        finite = skipped.left_finite(before)
        for step in steps:
            finite = tf.logical_and(finite, step.measure())
        ready = all_computed([step.gradients for step in steps])
        for step, gradients in zip(steps, ready, strict=True):
            step.gradients = gradients
        optimizers = [step.optimizer for step in steps]

        def restore() -> None:
            for variable, value in before:
                variable.assign(value)
            count = functools.partial(skipped.count, optimizers)
            tf.cond(wanted, count, lambda: None)

        # A cond, not a mask: a zero gradient would still move Adam.
        tf.cond(tf.logical_and(wanted, finite), change, restore)
        # That of a step that is always due, if there is one.
        always = [step for step in steps if step.due is None]
        return (always or steps)[0].unscaled_norm, finite


@dataclasses.dataclass
class _Step:
    """Gradients for one step of an optimizer."""

    optimizer: keras.optimizers.Optimizer
    due: Tensor | None
    gradients: list[Tensor | None] = dataclasses.field(default_factory=list)
    variables: list[keras.Variable] = dataclasses.field(default_factory=list)

    def measure(self) -> Tensor:
        """Returns whether the step leaves weights and slots finite.

        Optimizers keep squares, and none moves further in a step than a few
        times the rate, or the rate times the norm.
        """
        if not self.optimizer.built:
            # A branch of the graph could make no variables.
            self.optimizer.build(self.variables)
        # Under mixed precision gradients are scaled until they are applied.
        self.scale = self.optimizer.scale_loss(1.0)
        self.norm = tf.linalg.global_norm(self.gradients)
        self.unscaled_norm = self.norm / self.scale
        reach = 1.0 + self.unscaled_norm
        for part in parts_of(self.optimizer):
            reach = reach * (1.0 + tf.cast(part.learning_rate, reach.dtype))
        return tf.math.is_finite(reach * reach)

    def apply(self, max_norm: float | None) -> None:
        """Clips and applies the gradients if the step is due."""

        def apply() -> None:
            gradients = self.gradients
            if max_norm is not None:
                gradients, _ = tf.clip_by_global_norm(
                    gradients, max_norm * self.scale, use_norm=self.norm
                )
            apply_gradients(self.optimizer, gradients, self.variables)

        if self.due is None:
            apply()
        else:
            tf.cond(self.due, apply, lambda: None)


def minibatch_of(data: Any) -> dict[str, Tensor]:
    """Returns the data of `train_step` as a dict with a `weight`.

    Args:
        data: dict of `[B, ...]`, which may be in a tuple, as Keras passes it.
            Without a `weight`, each row counts 1; a `sample_weight` beside it
            is a factor of that. Arrays of float64, NumPy's default, become
            float32.

    Returns:
        dict of `[B, ...]`.
    """
    given: dict[str, Tensor]
    given, targets, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    if targets is not None or not isinstance(given, Mapping):
        raise ValueError(
            "Expected a minibatch to be a dict, with all training data among "
            "its entries, and optionally a `weight` of its rows. Received: "
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
    weight, factor = batch["weight"], ops.cast(sample_weight, "float32")
    if factor.shape != weight.shape:
        raise ValueError(
            "Expected `sample_weight` to have the shape of the minibatch's "
            f"`weight`, {tuple(weight.shape)}. "
            f"Received: {tuple(factor.shape)}"
        )
    return {**batch, "weight": ops.cast(weight, "float32") * factor}


def all_computed(gradients: Any) -> Any:
    """Returns gradients that no optimizer receives before all are computed.

    It is called before anything is applied, once for a whole update. A
    variable that one loss changes may be read by another: the policy in the
    critics' targets, the critics in the policy's loss. `tf.function` has such
    reads come first, but TensorFlow 2.21's graph optimizer drops that order
    where a path seems to lead from the read to the change through the
    `IdentityN` in which Keras' optimizers gather all gradients; it then takes
    the `IdentityN` apart, and with it the path. Values before and after the
    change were mixed at random.
    """
    if tf.executing_eagerly():
        return gradients
    with tf.control_dependencies(tf.nest.flatten(gradients)):
        # No `tf.identity`, which the graph optimizer removes.
        return tf.nest.map_structure(
            lambda each: tf.raw_ops.EnsureShape(input=each, shape=each.shape),
            gradients,
            expand_composites=True,
        )


def apply_gradients(
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[Tensor | None],
    variables: Sequence[keras.Variable],
) -> None:
    """Makes one step of a built optimizer, between replicas or without any.

    Within a replica, Keras' optimizers sum gradients over all of them, which
    have them in full here; and of that sum TensorFlow keeps the graph.
    """
    strategy = tf.distribute.get_strategy()

    def apply_parts() -> None:
        number = strategy.num_replicas_in_sync
        parts = [None if each is None else each / number for each in gradients]
        optimizer.apply(parts, variables)

    if tf.distribute.in_cross_replica_context():
        strategy.run(apply_parts)
    elif isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        # It cannot be called there.
        optimizer.apply(gradients, variables)
    else:
        context = tf.distribute.get_replica_context()
        context.merge_call(lambda _: optimizer.apply(gradients, variables))


def nothing_to_train(name: str) -> ValueError:
    """Returns the error for an agent without trainable variables."""
    return ValueError(
        "Expected something to train: set `trainable = True` of the agent, or "
        "of a network or layer of it, and compile it again. Received: "
        f"{name!r}, of which all variables are frozen"
    )
