"""What callbacks ask of an agent, of its dataset and of a trajectory.

Callbacks know neither `keras_rl2.agents` nor `keras_rl2.data`: this is all
that they rely on, and a plain Keras model has none of it.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from typing import Protocol

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.updates.observers import Observers


class StepsTaken(Protocol):
    """T steps of B environments; see `keras_rl2.data.Trajectory`."""

    @property
    def observation(self) -> np.ndarray:
        """`[T + 1, B, ...]`. Observation before each step, and the last."""

    @property
    def action(self) -> np.ndarray:
        """`[T, B, ...]`. The policy's actions."""

    @property
    def reward(self) -> np.ndarray:
        """`[T, B]` float32. Rewards."""

    @property
    def valid(self) -> np.ndarray:
        """`[T, B]` bool. False for the resets of NEXT_STEP environments."""


class Rounds(Protocol):
    """A dataset that hands out rounds; see `keras_rl2.data.RoundDataset`."""

    #: Steps of a round, of all environments together; 0 where there are none.
    steps_per_round: int
    #: Updates of a round.
    updates_per_round: int
    #: Rounds of one Keras epoch.
    rounds_per_epoch: int
    #: Is told what a round is at; None where nobody measures.
    stopwatch: Stopwatch | None

    @property
    def agent(self) -> "LearningAgent":
        """The agent that it is bound to."""

    @property
    def steps_per_epoch(self) -> int:
        """Updates of one Keras epoch."""

    @property
    def fewest_steps_per_round(self) -> int:
        """Steps that a round has at least."""

    @property
    def steps_before_first_round(self) -> int:
        """Steps that are still to be taken before there are any updates."""

    def begin(self) -> None:
        """Drops what an earlier `fit` left over."""

    def refresh(self) -> None:
        """Collects the next round."""

    def logs(self) -> dict[str, float]:
        """Returns what the last rounds say about training."""

    @property
    def outliers(self) -> Mapping[str, Outliers]:
        """What running statistics did not follow, by its key in the logs."""

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that it was made with."""

    def own_settings(self) -> dict[str, Any]:
        """Returns those of them that the algorithm chose."""

    def close(self) -> None:
        """Closes environments, where it has some."""

    def shielded(self) -> AbstractContextManager[None]:
        """Keeps signals from processes of environments, where it has some."""

    def get_state(self, log: Any = None) -> dict[str, Any]:
        """Returns all that later rounds depend on, as plain data."""

    def set_state(self, state: dict[str, Any], log: Any = None) -> None:
        """Takes back what `get_state` gave."""


class SavedAgent(Protocol):
    """A model that gives its state away and takes it back."""

    def get_state(self) -> dict[str, Any]:
        """Returns all that later updates depend on, as plain data."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave."""


class LearningAgent(Protocol):
    """A model that acts and counts its steps; see `keras_rl2.Agent`."""

    #: Environment steps that it has been given so far.
    env_steps: int
    #: Are told of each trajectory.
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
        """The network of the policy that remembers, if there is one."""

    def values_of_taken(self, observation: Any, action: Any) -> list[Any]:
        """Returns what each critic thinks of actions, `[B]`."""

    def encode(self, observation: Any) -> Any:
        """Turns observations `[B, ...]` into what the networks take."""

    def policy_function(self, deterministic: bool = True) -> Any:
        """Returns the policy as a `tf.function` of observations `[B, ...]`."""


class Episodes(Protocol):
    """Episodes to evaluate on; see `keras_rl2.EvaluationDataset`."""

    def play(self, agent: Any) -> dict[str, float]:
        """Plays with the agent, and returns what it gave."""


def as_agent(model: Any) -> LearningAgent | None:
    """Returns the model of a callback as an agent.

    Args:
        model: `keras.Model`.

    Returns:
        The same; None if it is one that does not act.
    """
    return model if hasattr(model, "policy_function") else None


def env_steps(model: Any) -> int | None:
    """Returns the environment steps that a model has been given so far.

    Args:
        model: `keras.Model`.

    Returns:
        int; None if it does not count them.
    """
    return getattr(model, "env_steps", None)


def rollouts_of(model: Any) -> Rounds | None:
    """Returns the dataset that a model has been trained on last.

    Args:
        model: `keras.Model`.

    Returns:
        The dataset; None for a plain Keras model, or before the first `fit`.
    """
    return getattr(model, "rollouts", None)


def updates(model: Any) -> int:
    """Returns the updates that a model has made so far.

    Args:
        model: `keras.Model`, compiled.

    Returns:
        int.
    """
    count = getattr(model, "updates", None)
    count = model.optimizer.iterations if count is None else count
    return int(keras.ops.convert_to_numpy(count))


def takes_steps(rounds: Rounds | None) -> bool:
    """Says whether the rounds of a dataset begin with environment steps.

    Args:
        rounds: A dataset; None where it is not known.

    Returns:
        bool. False for an `OfflineDataset`, of which updates are counted.
    """
    return rounds is None or rounds.steps_per_round > 0


def rounds_of_fit(callback: keras.callbacks.Callback) -> Rounds | None:
    """Returns the dataset that the present `fit` trains an agent on.

    Args:
        callback: `keras.callbacks.Callback`. One that takes part in it.

    Returns:
        The dataset; None for a plain Keras model, or where `fit` was given a
        `tf.data.Dataset`: an agent then still has the rollouts of an earlier
        one, which are told by their size.
    """
    rounds = rollouts_of(callback.model)
    updates = (callback.params or {}).get("steps")
    if rounds is None or updates != rounds.steps_per_epoch:
        return None
    return rounds
