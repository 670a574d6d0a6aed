"""Rounds of `fit`: steps of environments, and the updates that follow."""

import abc
import logging
import math
import operator
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from keras_rl2.basics.direct_call import on_device
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import Samples
from keras_rl2.data.round_dataset import largest_divisor
from keras_rl2.data.round_dataset import minibatches
from keras_rl2.networks.model_layers import all_layers
from keras_rl2.networks.model_layers import drawing_layers
from keras_rl2.networks.model_layers import layers_within
from keras_rl2.networks.model_layers import mode_layers
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.training.round_function import GraphFunction
from keras_rl2.training.round_function import RoundFunction
from keras_rl2.training.round_function import TrajectoryFunction

logger = logging.getLogger(__name__)

# A call that makes several rounds has at most so many updates.
_MOST_UPDATES = 256

# On a CPU: compiling takes as long as 5,000 updates gain by it.
_PAYING_UPDATES = 5000

Logs = dict[str, Any]


class Round(abc.ABC):
    """A way of making rounds, one call of TensorFlow after the other.

    Args:
        agent: `keras_rl2.Agent`.
        dataset: `RoundDataset` or None. Bound to the agent; None where Keras
            runs the loop.
        updates: int. Updates of a call.

    Attributes:
        updates_done: int. Updates of the last call.
    """

    #: Whether XLA compiles the updates of a call.
    compiled = False

    def __init__(
        self, agent: Any, dataset: RoundDataset | None, updates: int
    ) -> None:
        self.agent = agent
        self.dataset: Any = dataset
        self.updates = self.updates_done = updates
        # The argument of the train function.
        self._elements: Iterator[Any] = iter(())
        # Updates that the present round still has.
        self._left = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal where an agent needs no other train function."""
        return type(self), self.updates, self.compiled

    @abc.abstractmethod
    def make_function(self) -> Any:
        """Makes the train function of the agent."""

    @abc.abstractmethod
    def update(self, data: Any) -> Logs:
        """Makes one update from a minibatch, as Keras passes it."""

    def run(self) -> Logs:
        """Makes the next call, and before that takes the steps of a round.

        Returns:
            dict of scalars: the logs of the last update.
        """
        dataset = self.dataset
        if not self._left:
            dataset.ready = self._prepared(dataset.collect())
            self._left = dataset.updates_per_round
        self._left -= self.updates
        logs: Logs = self.agent.train_function(self._elements)
        return logs

    def _prepared(self, trajectory: Trajectory | None) -> Samples:
        """Returns the samples of a round."""
        samples: Samples = self.dataset.prepare(trajectory)
        return samples


class KerasRound(Round):
    """Rounds whose minibatches Keras' own train function takes."""

    def __init__(
        self, agent: Any, dataset: RoundDataset | None = None, updates: int = 1
    ) -> None:
        super().__init__(agent, dataset, updates)
        if dataset is not None:
            agent.devices.refuse_keras_loop()
            # `tf.data` would trace a graph for what is to run without one. A
            # new iterator would take longer than the updates of a round.
            self._elements = (
                _each_minibatch(dataset)
                if agent.run_eagerly
                else iter(dataset.as_dataset(agent))
            )

    def make_function(self) -> Any:
        """Makes the train function of the agent."""
        agent = self.agent
        agent.devices.refuse_keras_loop()
        # It sets `train_function`, and returns nothing.
        keras.Model.make_train_function(agent, force=True)
        of_keras = on_device(agent.devices.placed, agent.train_function)

        def train(iterator: Any) -> Any:
            logs = of_keras(iterator)
            agent.skipped.check()
            return logs

        return train

    def update(self, data: Any) -> Logs:
        """Makes one update from a minibatch, as Keras passes it."""
        logs: Logs = self.agent.train_function(iter((data,)))
        return logs


class HostRound(Round):
    """Rounds whose updates are one call of TensorFlow, or a few."""

    _function: type[RoundFunction] = RoundFunction

    def __init__(
        self, agent: Any, dataset: RoundDataset, updates: int, is_compiled: bool
    ) -> None:
        super().__init__(agent, dataset, updates)
        self.compiled = is_compiled
        self._elements = iter(dataset.hand_over, None)

    def make_function(self) -> Any:
        """Makes the train function of the agent."""
        return self._function(self.agent, self.updates, self.compiled)

    def update(self, data: Any) -> Logs:
        """Makes one update from a minibatch, as Keras passes it."""
        logs: Logs = self.agent.train_function.update(data)
        return logs


class TrajectoryRound(HostRound):
    """Rounds of a single update, which is made from the rollout itself."""

    _function = TrajectoryFunction

    def _prepared(self, trajectory: Trajectory | None) -> Samples:
        """Returns the rollout itself, as packed arrays."""
        samples: Samples = self.dataset.pack(trajectory)
        return samples


class GraphRound(Round):
    """Rounds that are made in the graph, steps of environments and all.

    Args:
        host: `HostRound`. Makes a round while the graph is not ready.
        in_graph: `RoundsInGraph`. Makes the rounds.
        rounds: int. Rounds of a call.
    """

    def __init__(self, host: HostRound, in_graph: Any, rounds: int) -> None:
        super().__init__(host.agent, host.dataset, host.updates * rounds)
        self.compiled = host.compiled
        self._host = host
        self._in_graph = in_graph
        self._rounds = rounds

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal where an agent needs no other train function."""
        return type(self), *self._host.key, self._rounds, self._in_graph

    def make_function(self) -> Any:
        """Makes the train function of the agent."""
        return GraphFunction(self._host.make_function(), self._in_graph)

    def update(self, data: Any) -> Logs:
        """Makes one update from a minibatch, as Keras passes it."""
        return self._host.update(data)

    def run(self) -> Logs:
        """Makes the next rounds; see `Round`."""
        if not self._in_graph.is_ready:
            self.updates_done = self._host.updates
            return self._host.run()
        self.updates_done = self.updates
        logs: Logs = self.agent.train_function.make_rounds(self._rounds)
        return logs


class TeamRound(Round):
    """Rounds of a team, in which the rounds of its members are made.

    Args:
        members: dict of `Round`, by the names of the members that learn.
    """

    def __init__(
        self, agent: Any, dataset: RoundDataset, members: dict[str, Round]
    ) -> None:
        super().__init__(agent, dataset, updates=1)
        self.members = members

    def make_function(self) -> None:
        """Makes the train functions of all members."""
        for name, rounds in self.members.items():
            self.agent.members[name].use_rounds(rounds)
            self.agent.members[name].make_train_function()

    def update(self, data: Any) -> Logs:
        """Raises an error: a minibatch is that of one member."""
        raise NotImplementedError(
            "Expected `train_on_batch` of one member. Received: of a team"
        )

    def run(self) -> Logs:
        """Makes the rounds of all members; see `Round`."""
        logs: Logs = {}
        for name in self.dataset.play():
            rounds = self.members[name]
            calls = rounds.dataset.updates_per_round // rounds.updates
            with rounds.agent.devices.placement():
                for _ in range(calls):
                    of_member = rounds.run()
            logs |= {f"{name}/{key}": value for key, value in of_member.items()}
        return logs


def _each_minibatch(dataset: RoundDataset) -> Iterator[Any]:
    """Yields the minibatches of rounds, as tensors."""
    while True:
        arrays = minibatches(dataset.hand_over())
        stacked = map_leaves(tf.convert_to_tensor, arrays)
        for index in range(len(leaves(stacked)[0])):
            yield map_leaves(operator.itemgetter(index), stacked)


def choose_rounds(
    agent: Any,
    dataset: RoundDataset,
    rounds: int = 1,
    watched: bool = True,
    all_updates: float = math.inf,
) -> Round:
    """Chooses the way of making rounds that is fastest.

    A call makes the updates of a round, or of several where the environments
    are in the graph and nothing is to happen between the rounds. XLA compiles
    them if that pays.

    Args:
        agent: `keras_rl2.Agent`. Compiled.
        dataset: `RoundDataset`. Bound to the agent.
        rounds: int. Rounds of an epoch. Defaults to `1`.
        watched: bool. Whether something happens after each round. Defaults to
            `True`.
        all_updates: int. Updates so far and to come. Defaults to `math.inf`.

    Raises:
        ValueError: If the `steps_per_execution` of `compile` do not divide the
            updates of a round.
    """
    arguments = agent.compile_arguments
    in_graph = dataset.graph_rounds() if not agent.devices.strategy else None
    of_round = dataset.updates_per_call
    if in_graph is not None:
        all_updates = math.inf
    steps: Any = arguments.steps_per_execution
    is_auto = steps == "auto"
    if is_auto or steps == dataset.updates_per_round:
        steps = of_round
    in_rounds = (
        steps % of_round == 0
        and not agent.run_eagerly
        and not agent.overridden.train_function
    )
    if not in_rounds or in_graph is None:
        rounds = 1
    elif is_auto and not watched:
        # Ctrl-C waits for the end of a call, which makes few updates.
        steps *= largest_divisor(rounds, _MOST_UPDATES // of_round)
    if of_round % steps and (steps % of_round or rounds % (steps // of_round)):
        raise ValueError(
            "Expected `steps_per_execution` to divide the updates of a round, "
            f"{of_round} (of a part of it where minibatches take over 32 MiB), "
            "since a round is collected between two executions; or with "
            "environments in the graph, to be those of several rounds, a "
            f"divisor of the {rounds} of an epoch. "
            f"Received: steps_per_execution={steps}"
        )
    if not in_rounds:
        return KerasRound(agent, dataset, steps)
    kind = HostRound
    if _learns_from_rollout(agent, of_round):
        kind = TrajectoryRound
    is_compiled = _is_compiled(agent, arguments.jit_compile, all_updates)
    host = kind(agent, dataset, of_round, is_compiled)
    if in_graph is None:
        return host
    return GraphRound(host, in_graph, steps // of_round)


def _learns_from_rollout(agent: Any, updates: int) -> bool:
    """Returns whether the only update of a round skips its preparation."""
    return (
        agent.learns_from_trajectories
        and updates == 1
        and agent.policy.memory is None
        and agent.devices.strategy is None
        and not agent.overridden.by_own_step
        # The pass for values has rows that are not learned from.
        and not mode_layers(agent)
    )


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


def _is_compiled(
    agent: keras.Model, jit_compile: bool | str, updates: float
) -> bool:
    """Returns whether to compile a round, as `compile` was asked to."""
    if agent.devices.strategy is not None:
        return False
    if jit_compile != "auto":
        return bool(jit_compile)
    is_long = updates >= _PAYING_UPDATES or agent.devices.has_gpu
    pays = is_long and pays_to_compile(agent)
    logger.info(
        "The updates of a round of %r are compiled by XLA: %s, as "
        "`jit_compile='auto'` expects to be faster",
        agent.name,
        pays,
    )
    return pays
