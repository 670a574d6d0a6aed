"""Execution of a round: the updates of one call of TensorFlow."""

import logging
import math
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import cast

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.basics.shapes import Tensor
from keras_rl2.data.round_dataset import Round
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import minibatch
from keras_rl2.networks.model_layers import all_layers
from keras_rl2.networks.model_layers import drawing_layers
from keras_rl2.networks.model_layers import layers_within
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves
from keras_rl2.training.compile_arguments import CompileArguments
from keras_rl2.training.learner import Learner
from keras_rl2.training.learner import RoundSize
from keras_rl2.training.learner import TrajectoryLearner

logger = logging.getLogger(__name__)

# Weights of the largest layer x samples of a minibatch, up to which XLA is the
# faster on a CPU: beyond it, TensorFlow's own matrix products are.
_LARGEST_COMPILED_PRODUCT = 3 * 2**20


class RoundIterator(Iterator[Round]):
    """Returns the rounds of a dataset, each as soon as it is collected.

    Args:
        dataset: `RoundDataset`. Refreshed before each round.
    """

    def __init__(self, dataset: RoundDataset) -> None:
        self._dataset = dataset

    def __next__(self) -> Round:
        return self._dataset.hand_over()


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
        It also takes a generator of one minibatch, from `train_on_batch`.
    """
    update = agent.learners.on_each(agent.train_step)
    step = tf.function(update, autograph=False)

    def run_minibatches(one_round: dict[str, Any]) -> dict[str, Tensor]:
        # The loop starts from values in the form of an update's logs. The
        # first update outside of the loop would provide them, but would
        # double the graph to be optimised and compiled.
        logs = step.get_concrete_function(minibatch(one_round, 0))
        first: dict[str, Tensor] = tf.nest.map_structure(
            lambda spec: tf.zeros(spec.shape, spec.dtype),
            logs.structured_outputs,
        )
        return tf.while_loop(
            lambda index, _: index < size.updates,
            lambda index, _: (index + 1, step(minibatch(one_round, index))),
            (tf.constant(0), first),
            parallel_iterations=1,
        )[1]

    run_updates: Callable[[dict[str, Tensor]], dict[str, Tensor]]
    run_updates = run_minibatches
    if size.from_trajectory:
        run_updates = cast(TrajectoryLearner, agent).train_on_trajectory
    if size.compiled:
        run_updates = tf.function(
            run_updates, autograph=False, jit_compile=True
        )

    names: list[str] = []

    def run_round(one_round: dict[str, Any]) -> Tensor:
        logs = run_updates(one_round)
        # In the order of Keras' logs.
        names[:] = sorted(logs)
        values = [*(logs[name] for name in names), agent.skipped.in_a_row]
        return tf.stack([tf.cast(each, "float32") for each in values])

    call = RoundCall(run_round, compiled=size.compiled)

    def run(iterator: Any) -> dict[str, Any]:
        if not isinstance(iterator, tf.data.Iterator | RoundIterator):
            logs: dict[str, Any] = step(next(iterator))
            agent.skipped.check()
            return logs
        # As one array: Keras converts each log to a number on every call.
        *values, in_a_row = call(next(iterator)).tolist()
        agent.skipped.check(int(in_a_row))
        return dict(zip(names, values, strict=True))

    return run


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


def prepare_rounds(agent: Learner, x: RoundDataset) -> RoundSize | None:
    """Decides how many updates of a round one call of TensorFlow makes.

    Args:
        agent: `keras_rl2.Agent`. Must be compiled and bound.
        x: `RoundDataset`. The training data.

    Returns:
        Size of a round where one call makes all of its updates; None where it
        makes fewer.

    Raises:
        ValueError: If a call would make updates of two rounds.
    """
    updates = x.updates_per_round
    asked = cast(CompileArguments, agent.compile_arguments)
    steps = asked.steps_per_execution
    steps = updates if steps == "auto" else int(steps)
    if updates % steps:
        raise ValueError(
            "Expected `steps_per_execution` to divide the updates of a round, "
            f"{updates}, since a round is collected between two executions. "
            f"Received: steps_per_execution={steps}"
        )
    size = None
    whole = steps == updates and not agent.run_eagerly
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
        )
    agent.set_execution(steps, size)
    return size


def prepare_minibatches(agent: Learner) -> None:
    """Sets Keras' own loop for training on minibatches.

    Args:
        agent: `keras_rl2.Agent`. Must be compiled.
    """
    asked = cast(CompileArguments, agent.compile_arguments)
    agent.set_execution(asked.first_steps_per_execution, None)


def pays_to_compile(agent: Learner, batch_size: int) -> bool:
    """Decides whether XLA compiles a round, where `jit_compile` is `"auto"`.

    On a CPU it halves the time of small networks, where calls of kernels
    dominate, and is slower than TensorFlow's own kernels for large ones.

    Args:
        agent: `keras_rl2.Agent`. Must be bound.
        batch_size: int. Number of samples in a minibatch.

    Returns:
        bool.
    """
    largest = max(
        (math.prod(v.shape) for v in agent.trainable_variables), default=0
    )
    # A recurrent network has many matrix products, of single steps.
    recurrent = agent.memory is not None
    if not recurrent and largest * batch_size > _LARGEST_COMPILED_PRODUCT:
        return False
    if not all(
        getattr(each, "supports_jit", True) for each in all_layers(agent)
    ):
        return False
    # XLA draws random numbers slowly on a CPU. The number of sequences in the
    # minibatch of a recurrent network is unknown here.
    rows = None if recurrent else batch_size
    on_cpu = not tf.config.list_physical_devices("GPU")
    if on_cpu and drawing_layers(agent, rows):
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


_Traced = Callable[[list[Any]], tf.Tensor]


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

    Example:

    >>> call = RoundCall(lambda one_round: one_round["reward"] * 2.0)
    >>> call({"reward": np.array([1.0, 2.0], "float32")}).tolist()
    [2.0, 4.0]
    """

    def __init__(
        self, function: Callable[[Any], Tensor], compiled: bool = False
    ) -> None:
        self._function = function
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
            traced = self._traced[form] = self._trace(one_round)
        result: np.ndarray = traced([each for _, each in named]).numpy()
        return result

    def _trace(self, one_round: Any) -> _Traced:
        """Traces the function for rounds of this form."""
        form = map_leaves(_spec, one_round)

        def flat(*tensors: Tensor) -> Tensor:
            return self._function(with_leaves(form, [*tensors]))

        traced = tf.function(
            flat,
            input_signature=leaves(form),
            autograph=False,
        ).get_concrete_function()
        if not self._directly:
            # Implicit conversion takes four times as long.
            return lambda arrays: traced(*map(tf.constant, arrays))
        captured = traced.captured_inputs
        dtype = traced.structured_outputs.dtype

        def call(arrays: list[Any]) -> tf.Tensor:
            # The operation that a call of the function runs: TensorFlow's
            # Python code before it takes a third of the time of a small update.
            result: tf.Tensor
            [result] = tf.raw_ops.StatefulPartitionedCall(
                args=[*arrays, *captured], Tout=[dtype], f=traced
            )
            return result

        return call


def _spec(array: Any) -> tf.TensorSpec:
    """Returns the form of an array."""
    return tf.TensorSpec(array.shape, array.dtype)
