"""The traced functions of rounds: all updates of one call of TensorFlow."""

import functools
import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.basics.direct_call import run_operation
from keras_rl2.basics.shapes import Tensor
from keras_rl2.data.round_dataset import Samples
from keras_rl2.data.round_dataset import minibatch
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves
from keras_rl2.training import shared_programs
from keras_rl2.training.shared_programs import Program

_Graph = Callable[[Sequence[Any]], list[tf.Tensor]]

compiled = functools.partial(tf.function, autograph=False, jit_compile=True)


class RoundFunction:
    """The train function of an agent: all updates of a round in one call.

    Keras' train function takes each minibatch from an iterator; here a whole
    round is taken at once, so that XLA can compile the loop over its
    minibatches. The graph is chosen by the names, shapes and dtypes of the
    round's arrays: a `tf.function`, which looks at the types of its arguments,
    takes as long for it as a small update does.

    Args:
        agent: `keras_rl2.Agent`.
        updates: int. Updates of a call.
        is_compiled: bool. Whether XLA compiles them.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, seed=0)
    >>> agent = rl.PPO.for_env(rollouts.env, seed=0)
    >>> history = agent.fit(rollouts, verbose=0)
    >>> samples = rollouts.prepare(rollouts.collect())
    >>> "policy_loss" in agent.train_function(iter([samples]))
    True
    """

    #: Whether a round is a rollout itself.
    takes_rollouts = False

    def __init__(
        self, agent: keras.Model, updates: int, is_compiled: bool
    ) -> None:
        self.agent = agent
        self.updates = updates
        self.compiled = is_compiled
        self._step = tf.function(
            agent.devices.on_each(agent.train_step), autograph=False
        )
        self._repeated: Any = self._step
        self._element: Callable[..., Any] = minibatch
        self._all_updates: Callable[..., Any] = functools.partial(
            self.repeat, count=updates
        )
        # Graphs that TensorFlow runs itself are to follow the options of
        # `tf.config`, and only TensorFlow knows where arrays are on a GPU.
        self._directly = is_compiled and not agent.devices.has_gpu
        self._graphs: dict[tuple[Any, ...], _Graph] = {}
        # Names of the logs and shapes of the report, written while tracing.
        self.described: dict[str, Any] = {}

    def __call__(self, iterator: Iterator[Samples]) -> dict[str, float]:
        """Makes the updates of the next round; returns the last one's logs."""
        result = self.run(self._updates_of, next(iterator))
        *values, in_a_row = result.tolist()
        self.agent.skipped.check(int(in_a_row))
        return dict(zip(self.described["logs"], values, strict=True))

    def update(self, data: Any) -> dict[str, Tensor]:
        """Makes one update from a minibatch, as Keras passes it.

        Args:
            data: Argument of `train_step`.

        Returns:
            dict of scalars, the logs.
        """
        with self.agent.devices.placement():
            logs: dict[str, Tensor] = self._step(data)
        self.agent.skipped.check()
        return logs

    def run(
        self,
        function: Callable[..., Tensor],
        arguments: Any,
        rounds: Any = None,
    ) -> np.ndarray:
        """Runs a function of arrays in the graph, traced once for a form.

        Args:
            function: Callable from the specs of the arguments, and their
                tensors one after the other, to one tensor.
            arguments: Tree of arrays.
            rounds: `RoundsInGraph` or None. Makes the rounds, where the
                function takes the steps of environments. Defaults to `None`.
        """
        form: tuple[Any, ...] = ()
        arrays = []
        for path, each in named_leaves(arguments):
            form += path, each.shape, each.dtype
            arrays.append(each)
        with self.agent.devices.placement():
            if form not in self._graphs:
                shared = shared_programs.PRESENT.get()
                kind = (type(self).__name__, self.updates, self.compiled)
                likeness = shared_programs.likeness(
                    self.agent, kind, rounds, of_library=shared is None
                )
                trace = functools.partial(self._trace, function, arguments)
                shared = shared or shared_programs.COMMON
                program = shared.find(likeness, form, trace)
                self.described.update(program.described)
                self._graphs[form] = self._calling(program)
            # One array: Keras would convert each log to a number.
            [tensor] = self._graphs[form](arrays)
            result: np.ndarray = tensor.numpy()
        return result

    def _trace(
        self, function: Callable[..., Tensor], arguments: Any
    ) -> Program:
        """Traces a function for arguments of this form."""
        specs = map_leaves(
            lambda each: tf.TensorSpec(each.shape, each.dtype), arguments
        )
        traced = tf.function(
            functools.partial(function, specs),
            input_signature=leaves(specs),
            autograph=False,
        ).get_concrete_function()
        return Program(traced, {**self.described})

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

    def _updates_of(self, specs: Any, *tensors: Tensor) -> Tensor:
        """Makes the updates of a round; returns the logs of the last one."""
        make: Any = self._all_updates
        if self.compiled:
            make = compiled(make)
        logs = make(with_leaves(specs, [*tensors]))
        return tf.stack(self.values(logs, "float32"))

    def repeat(
        self, one_round: dict[str, Any], count: Tensor | int
    ) -> dict[str, Tensor]:
        """Makes the first updates of a round, in a loop.

        Args:
            one_round: dict; see `round_dataset.minibatch`.
            count: scalar int. Number of updates.
        """
        step, element = self._repeated, self._element
        # The loop starts from values in the form of an update's logs. The first
        # update outside of the loop would provide them, but would double the
        # graph to be optimised and compiled.
        logs = step.get_concrete_function(element(one_round, 0))
        first: dict[str, Tensor] = tf.nest.map_structure(
            lambda spec: tf.zeros(spec.shape, spec.dtype),
            logs.structured_outputs,
        )
        _, last = tf.while_loop(
            lambda index, _: index < count,
            lambda index, _: (index + 1, step(element(one_round, index))),
            (tf.constant(0), first),
            parallel_iterations=1,
        )
        return last

    def values(self, logs: dict[str, Tensor], dtype: str) -> list[Tensor]:
        """Returns the logs in the order of Keras, and the skipped updates."""
        self.described["logs"] = sorted(logs)
        values = [logs[name] for name in self.described["logs"]]
        values.append(self.agent.skipped.in_a_row)
        return [tf.cast(each, dtype) for each in values]


class TrajectoryFunction(RoundFunction):
    """The train function of agents that make one update from a whole rollout.

    Its rounds are the packed arrays of a rollout, see `RolloutDataset.pack`.
    """

    takes_rollouts = True

    def __init__(
        self, agent: keras.Model, updates: int, is_compiled: bool
    ) -> None:
        super().__init__(agent, updates, is_compiled)
        self._all_updates = agent.train_on_trajectory
        self._repeated = tf.function(agent.train_on_trajectory, autograph=False)
        self._element = lambda rollout, _: rollout


class GraphFunction:
    """The train function of rounds that take their steps in the graph, too.

    Rounds of another origin are given to it as to a `RoundFunction`.

    Args:
        function: `RoundFunction`. Makes the updates of a round.
        rounds: `RoundsInGraph`. Makes the rounds.
    """

    def __init__(self, function: RoundFunction, rounds: Any) -> None:
        self._function = function
        self._rounds = rounds
        self.update = function.update

    def __call__(self, iterator: Iterator[Samples]) -> dict[str, float]:
        """Makes the updates of the next round; returns the last one's logs."""
        return self._function(iterator)

    def make_rounds(self, rounds: int) -> dict[str, float]:
        """Takes the steps and makes the updates of the next rounds.

        Args:
            rounds: int. Number of rounds, K.

        Returns:
            dict: logs of the last update.
        """
        function = self._function
        arguments = self._rounds.begin(rounds)
        result = function.run(self._several, arguments, self._rounds)
        names = function.described["logs"]
        report = result[:, len(names) + 1 :]
        self._rounds.receive(_parts(report, function.described["report"]))
        function.agent.skipped.check(int(result[:, len(names)].max()))
        return dict(zip(names, result[-1].tolist(), strict=False))

    def _several(self, specs: Any, *tensors: Tensor) -> Tensor:
        """Makes several rounds; returns the vectors of `_one`.

        Returns:
            `[K, R]`: the vectors of the rounds; 0 for those not made, after
            one with unusable numbers.
        """
        run: Any = functools.partial(
            _one_after_another, self._one, self._function.agent
        )
        if self._function.compiled:
            run = compiled(run)
        vectors: Tensor = run(**with_leaves(specs, [*tensors]))
        return vectors

    def _one(
        self, inputs: dict[str, Any], carried: dict[str, Any]
    ) -> tuple[Tensor, dict[str, Any], Tensor]:
        """Makes a round.

        Returns:
            `[R]`: the logs of the last update and the report of the round;
            what is passed on; whether the numbers of the round are usable.
        """
        function = self._function
        make: Any = functools.partial(
            self._rounds, from_trajectory=function.takes_rollouts
        )
        if not function.compiled:
            # Steps of environments are many small operations.
            make = compiled(make)
        one_round, report, carried = make(inputs, carried)
        # No update is made from numbers that are not finite.
        usable = one_round.pop("usable")
        count = tf.where(usable, function.updates, 0)
        logs = function.repeat(one_round, count)
        function.described["report"] = {
            name: tuple(each.shape) for name, each in report.items()
        }
        values = tf.stack(function.values(logs, "float64"))
        parts = [
            tf.reshape(tf.cast(each, "float64"), (-1,))
            for each in report.values()
        ]
        return tf.concat([values, *parts], axis=0), carried, usable


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
        of_round = map_leaves(lambda each: each[index], inputs)
        vector, carried, usable = one(of_round, carried)
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


def _tensor(array: Any) -> tf.Tensor:
    """Returns a tensor of an array that is not changed while it is used."""
    # `tf.constant` would copy the array, twice if it is not aligned.
    return tf.raw_ops.Identity(input=array)
