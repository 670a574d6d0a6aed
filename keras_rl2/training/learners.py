"""The devices and processes that share an agent's updates."""

import contextlib
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import keras
import tensorflow as tf

from keras_rl2.basics.shapes import Tensor
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.distribute import replicas
from keras_rl2.layers import ObservationNormalization
from keras_rl2.networks.model_layers import all_layers
from keras_rl2.training.compile_arguments import CompileArguments

TrainStep = Callable[[Any], dict[str, Tensor]]

_STRATEGIES = (
    tf.distribute.MirroredStrategy,
    tf.distribute.MultiWorkerMirroredStrategy,
)


class Shared(Protocol):
    """An agent with shared updates; see `keras_rl2.Agent`."""

    @property
    def layers(self) -> Sequence[keras.layers.Layer]:
        """The agent's networks."""

    @property
    def variables(self) -> list[keras.Variable]:
        """All variables of the agent's networks."""

    @property
    def optimizer(self) -> keras.optimizers.Optimizer:
        """The optimizer."""

    @property
    def compile_arguments(self) -> CompileArguments | None:
        """The arguments of `compile`; None before it."""

    @property
    def seed(self) -> int | None:
        """Seeds updates and `act`."""

    @property
    def whole_episodes(self) -> bool:
        """Whether a round is one episode of each environment."""


class Learners:
    """The devices that make an agent's updates: its `tf.distribute` strategy.

    `docs/scaling.md` describes what is shared, and the limitations.

    Attributes:
        strategy: `tf.distribute.Strategy` or None, for one device.

    Raises:
        ValueError: If there is a strategy of another kind.
    """

    def __init__(self) -> None:
        self.strategy: tf.distribute.Strategy | None = None
        if not tf.distribute.has_strategy():
            return
        strategy = tf.distribute.get_strategy()
        if not isinstance(strategy, _STRATEGIES):
            raise ValueError(
                "Expected an agent made on one device, or in the scope of a "
                "`MirroredStrategy` or a `MultiWorkerMirroredStrategy`. "
                f"Received: {type(strategy).__name__}"
            )
        self.strategy = strategy

    @property
    def number(self) -> int:
        """Number of devices that make an update together, in all processes."""
        if self.strategy is None:
            return 1
        return int(self.strategy.num_replicas_in_sync)

    @property
    def workers(self) -> int:
        """Number of processes that make an update together."""
        if self.strategy is None:
            return 1
        return self.number // len(self.strategy.extended.worker_devices)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Creates the variables within on all devices."""
        if self.strategy is None:
            yield
            return
        with self.strategy.scope():
            yield

    @staticmethod
    @contextlib.contextmanager
    def unseen() -> Iterator[None]:
        """Hides the strategy from a constructor that makes no variables.

        A `keras.Model` made under a strategy distributes the elements of
        datasets, which are whole rounds here, and is built from one of them;
        it cannot reduce the logs of several workers.
        """
        # A graph has strategies of its own: none.
        with tf.Graph().as_default():
            yield

    def on_each(self, train_step: TrainStep) -> TrainStep:
        """Returns an update that all devices make together.

        Args:
            train_step: Callable. The update of a single device.

        Returns:
            Callable from this process' minibatch to the logs.
        """
        strategy = self.strategy
        if strategy is None:
            return train_step

        def replica_step(batch: Any) -> dict[str, Tensor]:
            return train_step(replicas.of_all_workers(batch))

        def update(batch: Any) -> dict[str, Tensor]:
            logs: dict[str, Tensor] = {
                name: strategy.experimental_local_results(value)[0]
                for name, value in strategy.run(
                    replica_step, args=(batch,)
                ).items()
            }
            return logs

        return update

    # Limitations.

    def refuse_keras_loop(self) -> None:
        """Raises if Keras' own training loop would be used.

        Raises:
            ValueError: If there is a strategy.
        """
        if self.strategy is not None:
            raise ValueError(
                "Expected an agent of a `tf.distribute.Strategy` to be trained "
                "by `fit`, on a dataset of `keras_rl2`, in whole rounds: "
                "without `run_eagerly`, and with `steps_per_execution='auto'`. "
                "Received: another way of executing"
            )

    def check(
        self, agent: Shared, x: RoundDataset, total_steps: int | None
    ) -> None:
        """Raises if the updates of an agent cannot be shared.

        Args:
            agent: `Shared`. Must be bound and compiled.
            x: `RoundDataset`. The training data.
            total_steps: int or None. Requested number of steps.

        Raises:
            ValueError: If variables were made elsewhere, or something is
                meant for one device or one process only.
        """
        for variable in (*agent.variables, *agent.optimizer.variables):
            shared = isinstance(variable.value, tf.distribute.DistributedValues)
            if shared != (self.strategy is not None):
                made = "within" if shared else "outside of"
                raise ValueError(
                    "Expected networks, optimizers and the agent to be made "
                    "within the same `strategy.scope()`, or all of them "
                    f"without one. Received: {variable.path!r}, which was made "
                    f"{made} a scope, unlike the agent"
                )
        if self.strategy is None:
            return
        arguments = agent.compile_arguments
        if arguments is not None and arguments.jit_compile is True:
            raise ValueError(
                "Expected `jit_compile` to be False or 'auto' for an agent of "
                "a `tf.distribute.Strategy`: XLA compiles no update that "
                "several devices make. Received: jit_compile=True"
            )
        for layer in all_layers(agent):
            if isinstance(layer, keras.layers.BatchNormalization) or (
                getattr(layer, "activity_regularizer", None) is not None
            ):
                raise ValueError(
                    "Expected networks without BatchNormalization and "
                    "`activity_regularizer` under a `tf.distribute.Strategy`: "
                    "each device runs a part of the minibatch. "
                    f"Received: {layer.name!r}"
                )
        if self.workers > 1:
            self._check_alone(agent, x, total_steps)

    def check_rows(self, element_spec: dict[str, Any]) -> None:
        """Raises if the rows of minibatches cannot be shared evenly.

        Args:
            element_spec: dict. Spec of a round, see `RoundDataset.as_rounds`.

        Raises:
            ValueError: If rows would be left over.
        """
        if self.strategy is None:
            return
        of_one = element_spec.get("rows")
        if of_one is None:
            of_one = element_spec["batches"]["action"]
        rows, parts = of_one.shape[1], self.number // self.workers
        if rows % parts:
            raise ValueError(
                "Expected minibatches whose samples (or sequences) can be "
                f"shared out evenly to {parts} devices: change `batch_size`. "
                f"Received: {rows} of them"
            )

    def _check_alone(
        self, agent: Shared, x: RoundDataset, total_steps: int | None
    ) -> None:
        """Raises for settings that several processes do not support."""
        received = None
        if any(
            isinstance(layer, ObservationNormalization)
            for layer in all_layers(agent)
        ):
            received = "a network with ObservationNormalization"
        elif getattr(x, "prioritized", False):
            received = "prioritized=True"
        elif agent.seed is None:
            received = "an agent with seed=None"
        elif agent.whole_episodes and total_steps is not None:
            received = "`total_steps` of whole episodes"
        if received is not None:
            raise ValueError(
                "Expected, for several workers, networks without statistics of "
                "observations, replay without priorities, an agent of the "
                "same `seed` in each, and `epochs` where rounds differ in "
                f"length. Received: {received}"
            )
