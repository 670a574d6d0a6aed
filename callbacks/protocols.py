"""Protocols of an agent, its dataset and a trajectory, for callbacks.

Callbacks import neither `keras_rl2.agents` nor `keras_rl2.data`, and need only
these members; a plain Keras model has none of them.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from typing import Protocol

import gymnasium
import keras

from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.networks.task import Task
from keras_rl2.updates.observing import Observers


class Rounds(Protocol):
    """A dataset of rounds; see `keras_rl2.data.RoundDataset`."""

    #: Steps of a round, of all environments together; 0 without environments.
    steps_per_round: int
    #: Updates of a round.
    updates_per_round: int
    #: Rounds of one Keras epoch.
    rounds_per_epoch: int
    #: Measures the sections of a round; None for no measurement.
    stopwatch: Stopwatch | None

    @property
    def agent(self) -> "LearningAgent":
        """The agent to which it is bound."""

    @property
    def steps_per_epoch(self) -> int:
        """Updates of one Keras epoch."""

    @property
    def fewest_steps_per_round(self) -> int:
        """The smallest number of steps of a round."""

    @property
    def steps_before_first_round(self) -> int:
        """Steps that are still to be taken before the first update."""

    def begin(self) -> None:
        """Discards leftover data from a previous `fit`."""

    def refresh(self) -> None:
        """Collects the next round."""

    def logs(self) -> dict[str, float]:
        """Returns statistics of the last rounds."""

    @property
    def outliers(self) -> Mapping[str, Outliers]:
        """Outliers that running statistics ignore, by their key in the logs."""

    def settings(self) -> dict[str, Any]:
        """Returns the arguments of its constructor."""

    def own_settings(self) -> dict[str, Any]:
        """Returns the settings chosen by the algorithm."""

    def close(self) -> None:
        """Closes environments, if it has any."""

    def shielded(self) -> AbstractContextManager[None]:
        """Keeps signals from processes of environments, if it has any."""

    def get_state(self, log: object = None) -> dict[str, Any]:
        """Returns the state that later rounds depend on, as plain data."""

    def set_state(self, state: dict[str, Any], log: object = None) -> None:
        """Restores the state that `get_state` returned."""


class SavedAgent(Protocol):
    """A model whose state can be saved and restored."""

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later updates depend on, as plain data."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state that `get_state` returned."""


class LearningAgent(Protocol):
    """A model that acts and counts its steps; see `keras_rl2.Agent`."""

    #: Environment steps so far.
    env_steps: int
    #: Called with each trajectory.
    observers: Observers[Any]
    #: Its networks.
    layers: Sequence[keras.layers.Layer]
    #: Of a single environment; None until it is bound.
    action_space: gymnasium.Space[Any] | None

    @property
    def rollouts(self) -> Rounds | None:
        """The dataset of its last `fit`; None before that."""

    @property
    def observation_spec(self) -> Any:
        """Shapes and dtypes of one observation, a tree of `ArraySpec`."""

    @property
    def memory(self) -> Any:
        """The recurrent network of the policy, if there is one."""

    @property
    def task(self) -> Task:
        """Its spaces, the encoder and the policy head."""

    def policy_function(self, deterministic: bool = True) -> Any:
        """Returns the policy as a `tf.function` of observations `[B, ...]`."""


class Episodes(Protocol):
    """Episodes to evaluate on; see `keras_rl2.EvaluationDataset`."""

    def play(self, agent: Any) -> dict[str, float]:
        """Plays with the agent, and returns statistics of the episodes."""


def as_agent(model: Any) -> LearningAgent | None:
    """Returns the model of a callback as an agent.

    Args:
        model: `keras.Model`.

    Returns:
        The model; None if it does not act.
    """
    return model if hasattr(model, "policy_function") else None


def env_steps(model: object) -> int | None:
    """Returns the environment steps of a model so far.

    Args:
        model: `keras.Model`.

    Returns:
        int; None if it does not count them.
    """
    return getattr(model, "env_steps", None)


def rollouts_of(model: object) -> Rounds | None:
    """Returns the dataset of a model's last training.

    Args:
        model: `keras.Model`.

    Returns:
        The dataset; None for a plain Keras model, or before the first `fit`.
    """
    return getattr(model, "rollouts", None)


def updates(model: keras.Model) -> int:
    """Returns the updates of a model so far.

    Args:
        model: `keras.Model`, compiled.

    Returns:
        int.
    """
    count = getattr(model, "updates", None)
    count = model.optimizer.iterations if count is None else count
    return int(keras.ops.convert_to_numpy(count))


def takes_steps(rounds: Rounds | None) -> bool:
    """Returns whether the rounds of a dataset begin with environment steps.

    Args:
        rounds: A dataset; None if it is unknown.

    Returns:
        bool. False for an `OfflineDataset`, whose updates are counted.
    """
    return rounds is None or rounds.steps_per_round > 0


def rounds_of_fit(callback: keras.callbacks.Callback) -> Rounds | None:
    """Returns the dataset of the present `fit`.

    Args:
        callback: `keras.callbacks.Callback`. A callback of the `fit`.

    Returns:
        The dataset; None for a plain Keras model, or for a `fit` with a
        `tf.data.Dataset`: an agent then still has the dataset of an earlier
        `fit`, which is recognized by its size.
    """
    rounds = rollouts_of(callback.model)
    updates = (callback.params or {}).get("steps")
    if rounds is None or updates != rounds.steps_per_epoch:
        return None
    return rounds
