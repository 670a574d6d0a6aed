"""Execution of a round: the updates of one call of TensorFlow."""

import functools
import logging
import math
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
from typing import Any
from typing import cast

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.basics.direct_call import run_operation
from keras_rl2.basics.shapes import Tensor
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import minibatch
from keras_rl2.networks.model_layers import all_layers
from keras_rl2.networks.model_layers import drawing_layers
from keras_rl2.networks.model_layers import layers_within
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves
from keras_rl2.training import shared_programs
from keras_rl2.training.compile_arguments import CompileArguments
from keras_rl2.training.learner import Learner
from keras_rl2.training.learner import RoundSize
from keras_rl2.training.learner import TrajectoryLearner
from keras_rl2.training.shared_programs import Likeness
from keras_rl2.training.shared_programs import Program

logger = logging.getLogger(__name__)

# Weights of the largest layer x samples of a minibatch, up to which XLA is the
# faster on a CPU: beyond it, TensorFlow's own matrix products are.
_LARGEST_COMPILED_PRODUCT = 3 * 2**20
# Updates of a call that makes several rounds: Ctrl-C waits for its end.
_MOST_UPDATES = 256


def round_function(agent: Learner, size: RoundSize) -> Callable[[Any], Any]:
    """Returns a function that makes all updates of a round in one call.

    Keras' own loop over `steps_per_execution` takes each minibatch from the
    dataset; here a whole round is taken at once, so that XLA can compile the
    loop over its minibatches.

    Args:
        agent: `keras_rl2.Agent`. The agent with the `train_step`.
        size: `RoundSize`. Size of a round.

    Returns:
        A function from an iterator over rounds to the logs of the last update.
        A generator is taken for that of one minibatch, of `train_on_batch`.
    """
    update = agent.learners.on_each(agent.train_step)
    step = tf.function(update, autograph=False)
    compiled = functools.partial(tf.function, autograph=False, jit_compile=True)

    def run_minibatches(
        one_round: dict[str, Any], count: Tensor | int = size.updates
    ) -> dict[str, Tensor]:
        return _repeat(step, lambda index: minibatch(one_round, index), count)

    run_updates: Callable[..., dict[str, Tensor]] = run_minibatches
    if size.from_trajectory:
        run_updates = cast(TrajectoryLearner, agent).train_on_trajectory
    if size.compiled:
        run_updates = compiled(run_updates)

    # Written while the round is traced.
    described: dict[str, Any] = {}

    def all_logs(logs: dict[str, Tensor], dtype: str) -> list[Tensor]:
        # In the order of Keras' logs.
        described["logs"] = sorted(logs)
        values = [logs[name] for name in described["logs"]]
        values.append(agent.skipped.in_a_row)
        return [tf.cast(each, dtype) for each in values]

    def run_round(one_round: dict[str, Any]) -> Tensor:
        return tf.stack(all_logs(run_updates(one_round), "float32"))

    def make_and_run(
        inputs: dict[str, Any], carried: dict[str, Any]
    ) -> tuple[Tensor, dict[str, Any], Tensor]:
        assert size.rounds is not None
        make = functools.partial(
            size.rounds, from_trajectory=size.from_trajectory
        )
        # Steps of environments are many small operations.
        one_round, report, carried = (
            make if size.compiled else compiled(make)
        )(inputs, carried)
        # No update is made from numbers that are not finite.
        usable = one_round.pop("usable")
        count = tf.where(usable, size.updates, 0)
        if size.from_trajectory:
            one = tf.function(run_updates, autograph=False)
            logs = _repeat(one, lambda _: one_round, count)
        else:
            logs = run_minibatches(one_round, count)
        described["report"] = {
            name: tuple(each.shape) for name, each in report.items()
        }
        parts = [
            tf.reshape(tf.cast(each, "float64"), (-1,))
            for each in report.values()
        ]
        both: Tensor = tf.concat(
            [tf.stack(all_logs(logs, "float64")), *parts], axis=0
        )
        return both, carried, usable

    def run_rounds(several: dict[str, Any]) -> Tensor:
        return _one_after_another(make_and_run, agent.begin_round, **several)

    likeness = functools.partial(shared_programs.likeness, agent, size)
    call = RoundCall(run_round, size.compiled, likeness, described)
    graph_call = RoundCall(
        compiled(run_rounds) if size.compiled else run_rounds,
        size.compiled,
        likeness,
        described,
    )

    def run(iterator: Any) -> dict[str, Any]:
        if isinstance(iterator, Generator):
            logs: dict[str, Any] = step(next(iterator))
            agent.skipped.check()
            return logs
        one_round = next(iterator)
        # As one array: Keras converts each log to a number on every call.
        if size.rounds is None or "carried" not in one_round:
            *values, in_a_row = call(one_round).tolist()
        else:
            result = graph_call(one_round)
            count = len(described["logs"]) + 1
            size.rounds.receive(_parts(result[:, count:], described["report"]))
            in_a_row = result[:, count - 1].max()
            values = result[-1, : count - 1].tolist()
        agent.skipped.check(int(in_a_row))
        return dict(zip(described["logs"], values, strict=True))

    return run


def _repeat(
    step: Any, element: Callable[[Tensor | int], Any], count: Tensor | int
) -> dict[str, Tensor]:
    """Makes updates in a loop, in the graph.

    Args:
        step: `tf.function` from an element to the logs of its update.
        element: Callable. Returns the element of an update.
        count: scalar int. Number of updates.

    Returns:
        dict of scalars: the logs of the last update, 0 without any.
    """
    # The loop starts from values in the form of an update's logs. The first
    # update outside of the loop would provide them, but would double the graph
    # to be optimised and compiled.
    logs = step.get_concrete_function(element(0))
    first: dict[str, Tensor] = tf.nest.map_structure(
        lambda spec: tf.zeros(spec.shape, spec.dtype), logs.structured_outputs
    )
    _, last = tf.while_loop(
        lambda index, _: index < count,
        lambda index, _: (index + 1, step(element(index))),
        (tf.constant(0), first),
        parallel_iterations=1,
    )
    return last


def _one_after_another(
    make_and_run: Callable[..., tuple[Tensor, dict[str, Any], Tensor]],
    begin_round: Callable[[], None],
    inputs: dict[str, Any],
    carried: dict[str, Any],
) -> Tensor:
    """Makes rounds in a loop, in the graph, up to one with unusable numbers.

    Args:
        make_and_run: Callable from the inputs of a round and what rounds pass
            on to each other, to its vector, what it passes on, and whether its
            numbers are usable.
        begin_round: Callable. See `Agent.begin_round`; it has been called for
            the first round.
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
        begin_round()
        given = map_leaves(lambda each: each[index], inputs)
        vector, carried, usable = one(given, carried)
        return index + 1, carried, usable, vectors.write(index, vector)

    *_, vectors = tf.while_loop(
        lambda index, carried, usable, _: usable & (index < count),
        next_round,
        (tf.constant(0), carried, tf.constant(True), vectors),
        parallel_iterations=1,
    )
    stacked: Tensor = vectors.stack()
    return stacked


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
    agent: Learner, function: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Returns Keras' own train function with a check after each call.

    Args:
        agent: `keras_rl2.Agent`. The trained agent.
        function: Callable. Result of `keras.Model.make_train_function`.
    """

    def run(iterator: Any) -> Any:
        logs = function(iterator)
        agent.skipped.check()
        return logs

    return run


def prepare_rounds(
    agent: Learner, x: RoundDataset, rounds: int = 1, watched: bool = True
) -> RoundSize | None:
    """Decides how many updates one call of TensorFlow makes.

    It makes those of a round, or of several where the environments are in the
    graph and nothing is to happen between the rounds.

    Args:
        agent: `keras_rl2.Agent`. Must be compiled and bound.
        x: `RoundDataset`. The training data.
        rounds: int. Rounds of an epoch, of which the rounds of a call are a
            divisor. Defaults to `1`.
        watched: bool. Whether callbacks are to be called after each round.
            Defaults to `True`.

    Returns:
        Size of a round where one call makes all of its updates; None where it
        makes fewer.

    Raises:
        ValueError: If a call would make updates of two rounds, where a round
            is collected between two calls.
    """
    updates = x.updates_per_round
    asked = cast(CompileArguments, agent.compile_arguments)
    steps = asked.steps_per_execution
    steps = updates if steps == "auto" else int(steps)
    size = None
    whole = steps % updates == 0 and not agent.run_eagerly
    if whole and not agent.overridden.train_function:
        size = RoundSize(
            updates=updates,
            compiled=_is_compiled(agent, asked.jit_compile, x.batch_size),
            from_trajectory=(
                agent.learns_from_trajectories
                and updates == 1
                and agent.memory is None
                and agent.learners.strategy is None
                and not agent.overridden.by_own_step
            ),
            rounds=(
                x.graph_rounds() if agent.learners.strategy is None else None
            ),
        )
    of_call = rounds if size is not None and size.rounds is not None else 1
    if asked.steps_per_execution == "auto" and of_call > 1:
        steps *= 1 if watched else _rounds_of_call(of_call, updates)
    if updates % steps and (steps % updates or of_call % (steps // updates)):
        raise ValueError(
            "Expected `steps_per_execution` to divide the updates of a round, "
            f"{updates}, since a round is collected between two executions; or "
            "with environments in the graph, to be those of several rounds, a "
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
    most = max(_MOST_UPDATES // updates, 1)
    return max(n for n in range(1, most + 1) if rounds % n == 0)


def prepare_minibatches(agent: Learner) -> None:
    """Sets Keras' own loop for training on minibatches.

    Args:
        agent: `keras_rl2.Agent`. Must be compiled.
    """
    asked = cast(CompileArguments, agent.compile_arguments)
    agent.set_execution(asked.first_steps_per_execution, None)


def pays_to_compile(agent: Learner, batch_size: int) -> bool:
    """Decides whether XLA compiles a round, where `jit_compile` is `"auto"`.

    On a GPU it is 5 to 7 times as fast, whatever the size. On a CPU it halves
    the time of small networks, where calls of kernels dominate, and is slower
    than TensorFlow's own kernels for large ones.

    Args:
        agent: `keras_rl2.Agent`. Must be bound.
        batch_size: int. Number of samples in a minibatch.

    Returns:
        bool.
    """
    if not all(
        getattr(each, "supports_jit", True) for each in all_layers(agent)
    ):
        return False
    if tf.config.list_physical_devices("GPU"):
        return True
    largest = max(
        (math.prod(v.shape) for v in agent.trainable_variables), default=0
    )
    # A recurrent network has many matrix products, of single steps.
    recurrent = agent.memory is not None
    if not recurrent and largest * batch_size > _LARGEST_COMPILED_PRODUCT:
        return False
    # XLA draws random numbers slowly on a CPU. The number of sequences in the
    # minibatch of a recurrent network is unknown here.
    if drawing_layers(agent, None if recurrent else batch_size):
        return False
    return not _convolves(agent)


def _convolves(agent: Learner) -> bool:
    """Returns whether kernels, except attention's, have over two axes."""
    kernels = [v for v in agent.trainable_variables if len(v.shape) > 2]
    if not kernels:
        return False
    products = {
        id(variable)
        for layer in all_layers(agent)
        for each in layers_within(layer)
        if isinstance(each, keras.layers.EinsumDense)
        for variable in each.trainable_variables
    }
    return any(id(kernel) not in products for kernel in kernels)


def _is_compiled(agent: Learner, asked: bool | str, batch_size: int) -> bool:
    """Returns whether to compile a round, as `compile` was asked to."""
    if agent.learners.strategy is not None:
        return False
    if asked != "auto":
        return bool(asked)
    pays = pays_to_compile(agent, batch_size)
    logger.info(
        "The updates of a round of %r are compiled by XLA: %s, as "
        "`jit_compile='auto'` expects to be faster",
        agent.name,
        pays,
    )
    return pays


_Traced = Callable[[Sequence[Any]], tf.Tensor]


class RoundCall:
    """Calls a graph with the arrays of a round.

    A `tf.function` selects one of its traces by the types of its arguments.
    This takes as long as a small update, especially for an iterator. Here
    shapes and dtypes select the trace.

    Args:
        function: Callable from a round, a tree of tensors, to a tensor. It is
            traced once for rounds of each form.
        compiled: bool. Whether XLA compiles the function. Defaults to
            `False`.
        likeness: Callable or None. Returns what the graph depends on, for
            `SharedPrograms`; None where it is not shared. Defaults to `None`.
        described: dict or None. The function writes into it while it is
            traced; a shared graph brings what its own function wrote. Defaults
            to `None`.

    Example:

    >>> call = RoundCall(lambda one_round: one_round["reward"] * 2.0)
    >>> call({"reward": np.array([1.0, 2.0], "float32")}).tolist()
    [2.0, 4.0]
    """

    def __init__(
        self,
        function: Callable[[Any], Tensor],
        compiled: bool = False,
        likeness: Callable[[], Likeness | None] | None = None,
        described: dict[str, Any] | None = None,
    ) -> None:
        self._function = function
        self._likeness = likeness
        self._described = {} if described is None else described
        # Graphs that TensorFlow runs itself are to follow the options of
        # `tf.config`, and only TensorFlow knows where arrays are on a GPU.
        self._directly = compiled and not tf.config.list_logical_devices("GPU")
        self._traced: dict[tuple[Any, ...], _Traced] = {}

    def __call__(self, one_round: Any) -> np.ndarray:
        """Runs the graph.

        Args:
            one_round: Tree of arrays, or of tensors.

        Returns:
            np.ndarray.
        """
        named = list(named_leaves(one_round))
        form = tuple([(path, each.shape, each.dtype) for path, each in named])
        traced = self._traced.get(form)
        if traced is None:
            traced = self._traced[form] = self._find(one_round, form)
        result: np.ndarray = traced([each for _, each in named]).numpy()
        return result

    def _find(self, one_round: Any, form: tuple[Any, ...]) -> _Traced:
        """Returns the graph for rounds of this form, traced or shared."""
        shared = shared_programs.PRESENT.get()
        likeness = None
        if shared is not None and self._likeness is not None:
            likeness = self._likeness()
        if shared is None or likeness is None:
            return self._calling(self._trace(one_round))
        trace = functools.partial(self._trace, one_round)
        program = shared.find(likeness, form, trace)
        self._described.update(program.described)
        return self._calling(program)

    def _trace(self, one_round: Any) -> Program:
        """Traces the function for rounds of this form."""
        form = map_leaves(_spec, one_round)

        def flat(*tensors: Tensor) -> Tensor:
            return self._function(with_leaves(form, [*tensors]))

        traced = tf.function(
            flat,
            input_signature=leaves(form),
            autograph=False,
        ).get_concrete_function()
        return Program(traced, {**self._described})

    def _calling(self, program: Program) -> _Traced:
        """Returns a function that calls a program with arrays."""
        traced, captured = program.function, program.captured
        if captured is None and not self._directly:
            # Implicit conversion takes four times as long.
            return lambda arrays: traced(*map(_tensor, arrays))
        if captured is None:
            captured = traced.captured_inputs

        def call(arrays: Sequence[Any]) -> tf.Tensor:
            # TensorFlow's Python code before the operation takes a third of
            # the time of a small update.
            [result] = run_operation(traced, arrays, captured)
            return result

        if self._directly:
            return call
        around = tf.function(
            lambda *tensors: call(tensors),
            input_signature=traced.structured_input_signature[0],
            autograph=False,
        ).get_concrete_function()
        return lambda arrays: around(*map(_tensor, arrays))


def _tensor(array: Any) -> tf.Tensor:
    """Returns a tensor of an array that is not changed while it is used."""
    # `tf.constant` would copy the array, twice if it is not aligned.
    return tf.raw_ops.Identity(input=array)


def _spec(array: Any) -> tf.TensorSpec:
    """Returns the form of an array."""
    return tf.TensorSpec(array.shape, array.dtype)
