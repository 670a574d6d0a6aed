"""The interface of an agent for training."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Protocol

import gymnasium
import keras
import tensorflow as tf

from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.training.compile_arguments import CompileArguments
from keras_rl2.training.devices import Devices
from keras_rl2.training.overriding import Overridden
from keras_rl2.updates.skipped_updates import SkippedUpdates
from keras_rl2.updates.target_networks import TargetNetworks
from keras_rl2.updates.updater import TrainedVariables

# The forms that Keras takes.
GivenCallbacks = (
    keras.callbacks.Callback | Iterable[keras.callbacks.Callback] | None
)


class RoundSize(NamedTuple):
    """The updates that one call of TensorFlow makes.

    Attributes:
        updates: int. Updates of a round.
        compiled: bool. Whether XLA compiles the loop over them.
        from_trajectory: bool. Whether the one update is made from the
            trajectory itself.
        rounds: `GraphRounds`, `ReplayRounds` or None. Makes the rounds within
            the call; None, the default, where they are made before it.
    """

    updates: int
    compiled: bool
    from_trajectory: bool
    rounds: Any = None


class Learner(CollectingAgent, Protocol):
    """A `keras.Model` that `fit` trains; see `keras_rl2.Agent`."""

    #: Set by callbacks to end `fit` after the present epoch.
    stop_training: bool

    # The model.

    @property
    def name(self) -> str:
        """The name of the model."""

    @property
    def layers(self) -> Sequence[keras.layers.Layer]:
        """The agent's networks."""

    def given_networks(self) -> dict[str, Any]:
        """Returns the networks, keyed by constructor argument."""

    @classmethod
    def for_action_space(cls, action_space: gymnasium.Space[Any]) -> type[Any]:
        """Returns the class of agents for an action space."""

    @property
    def memory(self) -> keras.Model | None:
        """The recurrent network of the policy, if there is one."""

    @property
    def variables(self) -> list[keras.Variable]:
        """All variables of the agent's networks."""

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """Variables that an optimizer changes."""

    @property
    def seed(self) -> int | None:
        """Seeds updates and `act`."""

    @property
    def shared_numbers(self) -> tuple[str, ...]:
        """Names of floats that agents with one program may differ in."""

    # Compiled.

    @property
    def compiled(self) -> bool:
        """Whether it has an optimizer."""

    @property
    def overridden(self) -> Overridden:
        """The methods of training that a custom class overrides."""

    @property
    def compile_arguments(self) -> CompileArguments | None:
        """The arguments of `compile`; None before it."""

    @property
    def optimizer(self) -> keras.optimizers.Optimizer:
        """The optimizer."""

    @property
    def run_eagerly(self) -> bool:
        """Whether nothing is traced."""

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Sets the optimizers; by default the algorithm's own."""

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the algorithm's own optimizer."""

    def critic_variables(self) -> list[keras.Variable]:
        """Returns the variables that a `critic_optimizer` owns."""

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """Metrics that Keras resets at each epoch."""

    def build_optimizer(self) -> None:
        """Makes the variables of the optimizer."""

    # Updates.

    @property
    def devices(self) -> Devices:
        """The devices that make an update together."""

    @property
    def skipped(self) -> SkippedUpdates:
        """The skipped updates."""

    @property
    def update_variables(self) -> list[tf.Variable]:
        """Variables of an update, beside networks and optimizers."""

    @property
    def trained(self) -> TrainedVariables:
        """Variables that are not frozen."""

    @property
    def target_networks(self) -> TargetNetworks:
        """Target networks, and how they follow."""

    def reset_targets(self) -> None:
        """Restores the agent's own updates of target networks."""

    @property
    def learns_from_trajectories(self) -> bool:
        """Whether a round of one update may skip `prepare`."""

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """Makes one update from a minibatch."""

    # One call of TensorFlow.

    @property
    def steps_per_execution(self) -> int:
        """Updates of one call."""

    @property
    def train_function(self) -> Callable[[Any], Any]:
        """Makes these updates, from an iterator."""

    def make_train_function(self) -> Any:
        """Makes `train_function`, unless it exists."""

    def set_execution(self, steps: int, size: RoundSize | None) -> None:
        """Drops `train_function` if it was made for another size."""

    # Its state.

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later updates depend on, as plain data."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state that `get_state` returned."""

    # Logs.

    @property
    def history(self) -> keras.callbacks.History:
        """The logs of all epochs of the last `fit`."""

    def reset_metrics(self) -> None:
        """Begins the means of an epoch."""

    def get_metrics_result(self) -> dict[str, Any]:
        """Returns the means of the epoch so far."""

    @property
    def observers(self) -> set[Callable[[Trajectory], object]]:
        """Functions that see each trajectory."""

    def begin_training(self, dataset: RoundDataset) -> None:
        """Prepares training on a dataset; called by `fit`."""
