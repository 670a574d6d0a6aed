"""Execution of a round: the updates of one call of TensorFlow."""

import functools
import logging
import math
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.basics.direct_call import run_operation
from keras_rl2.basics.shapes import Tensor
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import largest_divisor
from keras_rl2.data.round_dataset import minibatch
from keras_rl2.networks.model_layers import all_layers
from keras_rl2.networks.model_layers import drawing_layers
from keras_rl2.networks.model_layers import layers_within
from keras_rl2.networks.model_layers import mode_layers
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves
from keras_rl2.training import shared_programs
from keras_rl2.training.shared_programs import Program
from keras_rl2.training.shared_programs import RoundSize

logger = logging.getLogger(__name__)

# Updates of a call that makes several rounds: Ctrl-C waits for its end.
_MOST_UPDATES = 256

# On a CPU: compiling takes as long as 5,000 updates gain by it.
_PAYING_UPDATES = 5000

_Graph = Callable[[Sequence[Any]], list[tf.Tensor]]

_compiled = functools.partial(tf.function, autograph=False, jit_compile=True)


class RoundFunction:
    """The train function of an agent: all updates of a round in one call.

    Keras' train function takes each minibatch from an iterator; here a whole
    round is taken at once, so that XLA can compile the loop over its
    minibatches. The graph is chosen by the names, shapes and dtypes of the
    round's arrays: a `tf.function`, which looks at the types of its arguments,
    takes as long for it as a small update does.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, seed=0)
    >>> agent = rl.PPO.for_env(rollouts.env, seed=0)
    >>> history = agent.fit(rollouts, verbose=0)
    >>> samples = rollouts.prepare(rollouts.collect())
    >>> "policy_loss" in agent.train_function(iter([samples]))
    True
    """

    def __init__(self, agent: keras.Model, size: RoundSize) -> None:
        self._agent = agent
        self._size = size
        self._step = tf.function(
            agent.devices.on_each(agent.train_step), autograph=False
        )
        # Graphs that TensorFlow runs itself are to follow the options of
        # `tf.config`, and only TensorFlow knows where arrays are on a GPU.
        self._directly = size.compiled and not agent.devices.has_gpu
        self._graphs: dict[tuple[Any, ...], _Graph] = {}
        # Names of the logs and shapes of the report, written while tracing.
        self._described: dict[str, Any] = {}

    def __call__(self, iterator: Any) -> dict[str, Any]:
        """Makes the updates of the next round; returns the last one's logs.

        An iterator that is a generator has one minibatch, of `train_on_batch`.
        """
        if isinstance(iterator, Generator):
            logs: dict[str, Any] = self._step(next(iterator))
            self._agent.skipped.check()
            return logs
        one_round = next(iterator)
        form: tuple[Any, ...] = ()
        arrays = []
        for path, each in named_leaves(one_round):
            form += path, each.shape, each.dtype
            arrays.append(each)
        if form not in self._graphs:
            trace = functools.partial(self._trace, one_round)
            shared = shared_programs.PRESENT.get()
            likeness = shared_programs.likeness(
                self._agent, self._size, of_library=shared is None
            )
            shared = shared or shared_programs.COMMON
            program = shared.find(likeness, form, trace)
            self._described.update(program.described)
            self._graphs[form] = self._calling(program)
        # One array: Keras would convert each log to a number.
        [tensor] = self._graphs[form](arrays)
        result: np.ndarray = tensor.numpy()
        names = self._described["logs"]
        if "carried" in one_round:
            assert self._size.rounds is not None
            report = result[:, len(names) + 1 :]
            self._size.rounds.receive(_parts(report, self._described["report"]))
            in_a_row, values = result[:, len(names)].max(), result[-1].tolist()
        else:
            *values, in_a_row = result.tolist()
        self._agent.skipped.check(int(in_a_row))
        return dict(zip(names, values, strict=False))

    def _trace(self, one_round: Any) -> Program:
        """Traces the graph for rounds of this form."""
        specs = map_leaves(
            lambda each: tf.TensorSpec(each.shape, each.dtype), one_round
        )
        function = self._rounds if "carried" in one_round else self._round
        traced = tf.function(
            functools.partial(function, specs),
            input_signature=leaves(specs),
            autograph=False,
        ).get_concrete_function()
        return Program(traced, {**self._described})

    def _calling(self, program: Program) -> _Graph:
        """Returns a function that calls a program with arrays."""
        traced, captured = program.function, program.captured
        if captured is None and not self._directly:
            # Implicit conversion takes four times as long.
            return lambda arrays: [traced(*map(_tensor, arrays))]
        if captured is None:
            captured = traced.captured_inputs
        # TensorFlow's Python code before the operation takes a third of the
        # time of a small update.
        call = functools.partial(run_operation, traced, captured)
        if self._directly:
            return call
        around = tf.function(
            lambda *tensors: call(tensors),
            input_signature=traced.structured_input_signature[0],
            autograph=False,
        ).get_concrete_function()
        return lambda arrays: around(*map(_tensor, arrays))

    # In the graph.

    def _round(self, specs: Any, *tensors: Tensor) -> Tensor:
        """Makes the updates of a round; returns the logs of the last one."""
        updates: Any = functools.partial(
            _repeat, self._step, minibatch, count=self._size.updates
        )
        if self._size.from_trajectory:
            updates = self._agent.train_on_trajectory
        if self._size.compiled:
            updates = _compiled(updates)
        logs = updates(with_leaves(specs, [*tensors]))
        return tf.stack(self._values(logs, "float32"))

    def _values(self, logs: dict[str, Tensor], dtype: str) -> list[Tensor]:
        """Returns the logs in the order of Keras, and the skipped updates."""
        self._described["logs"] = sorted(logs)
        values = [logs[name] for name in self._described["logs"]]
        values.append(self._agent.skipped.in_a_row)
        return [tf.cast(each, dtype) for each in values]

    def _rounds(self, specs: Any, *tensors: Tensor) -> Tensor:
        """Makes several rounds; returns the vectors of `_collect_and_update`.

        Returns:
            `[K, R]`: the vectors of the rounds; 0 for those not made, after
            one with unusable numbers.
        """
        several = with_leaves(specs, [*tensors])
        run = functools.partial(
            _one_after_another, self._collect_and_update, self._agent
        )
        if self._size.compiled:
            run = _compiled(run)
        return run(**several)

    def _collect_and_update(
        self, inputs: dict[str, Any], carried: dict[str, Any]
    ) -> tuple[Tensor, dict[str, Any], Tensor]:
        """Makes a round with its steps of environments.

        Returns:
            `[R]`: the logs of the last update and the report of the round;
            what is passed on; whether the numbers of the round are usable.
        """
        assert self._size.rounds is not None
        make = functools.partial(
            self._size.rounds, from_trajectory=self._size.from_trajectory
        )
        if not self._size.compiled:
            # Steps of environments are many small operations.
            make = _compiled(make)
        one_round, report, carried = make(inputs, carried)
        # No update is made from numbers that are not finite.
        usable = one_round.pop("usable")
        count = tf.where(usable, self._size.updates, 0)
        step: Any = self._step
        element: Callable[..., Any] = minibatch
        if self._size.from_trajectory:
            step = tf.function(self._agent.train_on_trajectory, autograph=False)
            element = _whole
        logs = _repeat(step, element, one_round, count)
        self._described["report"] = {
            name: tuple(each.shape) for name, each in report.items()
        }
        values = tf.stack(self._values(logs, "float64"))
        parts = [
            tf.reshape(tf.cast(each, "float64"), (-1,))
            for each in report.values()
        ]
        return tf.concat([values, *parts], axis=0), carried, usable


def _whole(one_round: dict[str, Any], index: Tensor | int) -> dict[str, Any]:
    """Returns all of a round, for the only update of it."""
    del index
    return one_round


def _repeat(
    step: Any,
    element: Callable[[dict[str, Any], Tensor | int], Any],
    one_round: dict[str, Any],
    count: Tensor | int,
) -> dict[str, Tensor]:
    """Makes updates in a loop, in the graph."""
    # The loop starts from values in the form of an update's logs. The first
    # update outside of the loop would provide them, but would double the graph
    # to be optimised and compiled.
    logs = step.get_concrete_function(element(one_round, 0))
    first: dict[str, Tensor] = tf.nest.map_structure(
        lambda spec: tf.zeros(spec.shape, spec.dtype), logs.structured_outputs
    )
    _, last = tf.while_loop(
        lambda index, _: index < count,
        lambda index, _: (index + 1, step(element(one_round, index))),
        (tf.constant(0), first),
        parallel_iterations=1,
    )
    return last


def _one_after_another(
    make_and_run: Callable[..., tuple[Tensor, dict[str, Any], Tensor]],
    agent: keras.Model,
    inputs: dict[str, Any],
    carried: dict[str, Any],
) -> Tensor:
    """Makes rounds in a loop, in the graph, up to one with unusable numbers.

    Args:
        make_and_run: Callable from the inputs of a round and what rounds pass
            on to each other, to its vector, what it passes on, and whether its
            numbers are usable.
        agent: `keras_rl2.Agent`. Its `begin_round` has been called for the
            first round.
        inputs: dict of `[K, ...]`. Inputs of K rounds.
        carried: dict. Passed to the first round.

    Returns:
        `[K, R]`: the vectors of the rounds; 0 for those not made.
    """
    first = map_leaves(lambda each: each[0], inputs)
    count = leaves(inputs)[0].shape[0]
    if count == 1:
        return make_and_run(first, carried)[0][None]
    # Traced once, as the vector's shape is not known before.
    one = tf.function(make_and_run, autograph=False)
    vector, *_ = one.get_concrete_function(first, carried).structured_outputs
    vectors = tf.TensorArray(vector.dtype, count, element_shape=vector.shape)

    def next_round(
        index: Tensor, carried: Any, usable: Tensor, vectors: tf.TensorArray
    ) -> tuple[Tensor, Any, Tensor, tf.TensorArray]:
        agent.begin_round()
        given = map_leaves(lambda each: each[index], inputs)
        vector, carried, usable = one(given, carried)
        return index + 1, carried, usable, vectors.write(index, vector)

    *_, vectors = tf.while_loop(
        lambda index, carried, usable, _: usable & (index < count),
        next_round,
        (tf.constant(0), carried, tf.constant(True), vectors),
        parallel_iterations=1,
    )
    return vectors.stack()


def _parts(
    vectors: np.ndarray, shapes: dict[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
    """Returns the arrays `[K, ...]` that were made vectors `[K, R]`."""
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    parts = np.split(vectors, ends[:-1], axis=1)
    return {
        name: part.reshape(len(vectors), *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def checked(
    agent: keras.Model, function: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Returns Keras' own train function with a check after each call."""

    def run(iterator: Any) -> Any:
        logs = function(iterator)
        agent.skipped.check()
        return logs

    return run


def prepare_rounds(
    agent: keras.Model,
    x: RoundDataset,
    rounds: int = 1,
    watched: bool = True,
    all_updates: float = math.inf,
) -> RoundSize | None:
    """Decides what one call of TensorFlow does, and sets agent and dataset so.

    It makes the updates of a round, or of several where the environments are
    in the graph and nothing is to happen between the rounds. XLA compiles them
    if that pays for all updates so far and to come.
    """
    updates = x.updates_per_call
    asked = agent.compile_arguments
    steps: Any = asked.steps_per_execution
    if steps in ("auto", x.updates_per_round):
        steps = updates
    size = None
    whole = steps % updates == 0 and not agent.run_eagerly
    if whole and not agent.overridden.train_function:
        size = RoundSize(
            updates=updates,
            compiled=_is_compiled(
                agent,
                asked.jit_compile,
                all_updates if x.graph_rounds() is None else math.inf,
            ),
            from_trajectory=(
                agent.learns_from_trajectories
                and updates == 1
                and agent.policy.memory is None
                and agent.devices.strategy is None
                and not agent.overridden.by_own_step
                # The pass for values has rows that are not learned from.
                and not mode_layers(agent)
            ),
            rounds=(
                x.graph_rounds() if agent.devices.strategy is None else None
            ),
        )
    of_call = rounds if size is not None and size.rounds is not None else 1
    if asked.steps_per_execution == "auto" and of_call > 1:
        steps *= 1 if watched else _rounds_of_call(of_call, updates)
    if updates % steps and (steps % updates or of_call % (steps // updates)):
        raise ValueError(
            "Expected `steps_per_execution` to divide the updates of a round, "
            f"{updates} (of a part of it where minibatches take over 32 MiB), "
            "since a round is collected between two executions; or with "
            "environments in the graph, to be those of several rounds, a "
            f"divisor of the {of_call} of an epoch. "
            f"Received: steps_per_execution={steps}"
        )
    agent.set_execution(steps, size)
    x.give_trajectories(
        size is not None and size.from_trajectory,
        size is not None and size.rounds is not None,
        max(steps // updates, 1),
    )
    return size


def _rounds_of_call(rounds: int, updates: int) -> int:
    """Returns the largest divisor of rounds with few updates in a call."""
    return largest_divisor(rounds, _MOST_UPDATES // updates)


def prepare_minibatches(agent: keras.Model, steps: int = 1) -> None:
    """Sets Keras' own loop for training on minibatches."""
    asked = agent.compile_arguments.steps_per_execution
    agent.set_execution(steps if asked == "auto" else int(asked), None)


def pays_to_compile(agent: keras.Model) -> bool:
    """Decides whether XLA compiles a round, where `jit_compile` is `"auto"`.

    On a GPU it is 5 to 7 times as fast. On a CPU it is about twice as fast for
    small networks, but slower for convolutions, for bfloat16, and for layers
    that draw random numbers.
    """
    slow = False
    # Those with more than two axes, except attention's, are convolutions.
    kernels = set()
    for variable in agent.trainable_variables:
        if len(variable.shape) > 2:
            kernels.add(id(variable))
    for layer in all_layers(agent):
        if not getattr(layer, "supports_jit", True):
            return False
        slow = slow or layer.compute_dtype == "bfloat16"
        for each in layers_within(layer) if kernels else ():
            if isinstance(each, keras.layers.EinsumDense):
                kernels.difference_update(map(id, each.trainable_variables))
    # A program of XLA reads no variables of other devices.
    if agent.devices.elsewhere(agent.variables):
        return False
    if agent.devices.has_gpu:
        return True
    return not (slow or kernels or drawing_layers(agent))


def _is_compiled(agent: keras.Model, asked: bool | str, updates: float) -> bool:
    """Returns whether to compile a round, as `compile` was asked to."""
    if agent.devices.strategy is not None:
        return False
    if asked != "auto":
        return bool(asked)
    is_long = updates >= _PAYING_UPDATES or agent.devices.has_gpu
    pays = is_long and pays_to_compile(agent)
    logger.info(
        "The updates of a round of %r are compiled by XLA: %s, as "
        "`jit_compile='auto'` expects to be faster",
        agent.name,
        pays,
    )
    return pays


def _tensor(array: Any) -> tf.Tensor:
    """Returns a tensor of an array that is not changed while it is used."""
    # `tf.constant` would copy the array, twice if it is not aligned.
    return tf.raw_ops.Identity(input=array)
