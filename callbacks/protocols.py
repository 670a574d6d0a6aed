"""The dataset of a `fit`, as callbacks see it, and counts of its model.

Callbacks import neither `keras_rl2.agents` nor `keras_rl2.data`; a plain Keras
model has none of these members.
"""

from typing import Any
from typing import Protocol
from typing import TypeAlias
from typing import cast

import keras

#: What Keras passes to the methods of a callback.
Logs: TypeAlias = dict[str, Any] | None


class Rounds(Protocol):
    """A dataset of rounds; see `keras_rl2.data.RoundDataset`."""

    #: Steps of a round, of all environments together; 0 without environments.
    steps_per_round: int
    #: Updates of a round.
    updates_per_round: int
    #: Rounds of one Keras epoch.
    rounds_per_epoch: int

    @property
    def agent(self) -> Any:
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

    def own_settings(self) -> dict[str, Any]:
        """Returns the settings chosen by the algorithm."""

    def close(self) -> None:
        """Closes environments, if it has any."""


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
    rounds = getattr(callback.model, "rollouts", None)
    steps = (callback.params or {}).get("steps")
    if rounds is None or steps != rounds.steps_per_epoch:
        return None
    return cast(Rounds, rounds)
