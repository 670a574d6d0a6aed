"""Arguments of Keras' `fit` that mean nothing where rounds are trained."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import tensorflow as tf

from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import refuse_unknown

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent


def refuse_other_data(
    agent: "Agent", x: object, total_steps: int | None
) -> None:
    """Refuses what an agent cannot be trained on, an environment above all."""
    if total_steps is not None or not isinstance(x, tf.data.Dataset):
        kind = "RolloutDataset" if agent.on_policy else "ReplayDataset"
        made = repr(x) if isinstance(x, str) else "env"
        raise ValueError(
            f"Expected a `keras_rl2.{kind}`, of an environment "
            f"`keras_rl2.{kind}({made})` (or a `tf.data.Dataset` of minibatch "
            f"dicts, with `epochs`). Received: x={x!r}, "
            f"total_steps={total_steps}"
        )


# With rounds; a `tf.data.Dataset` leaves all others to Keras.
_TAKEN = (
    *("epochs", "total_steps", "callbacks", "validation_data", "shuffle"),
    *("validation_freq", "initial_epoch", "verbose"),
)
# What Keras takes, and what says it here.
_SAID_ELSEWHERE = {
    "y": "nothing: actions and returns come from the environment",
    "batch_size": "`batch_size` of the dataset",
    "steps_per_epoch": "`rounds_per_epoch` of the dataset",
    "validation_steps": "`episodes` of the `EvaluationDataset`",
    "validation_batch_size": "`num_envs` of the `EvaluationDataset`",
    "validation_split": "`validation_data`, an `EvaluationDataset`",
    "class_weight": "nothing: there are no classes",
    "sample_weight": "`weight` of each minibatch, which the dataset gives",
}


def refuse_arguments(given: Mapping[str, object]) -> None:
    """Refuses arguments of Keras that mean nothing where rounds are trained."""
    refuse_said_elsewhere(given)
    check_flag(shuffle=given["shuffle"])
    others = {
        name: value
        for name, value in given.items()
        if name not in _SAID_ELSEWHERE
    }
    refuse_unknown("`fit`", others, _TAKEN)


def refuse_said_elsewhere(
    given: Mapping[str, object], of_minibatches: bool = False
) -> None:
    """Refuses arguments of Keras that something else says here."""
    for name, value in given.items():
        if of_minibatches and name == "steps_per_epoch":
            continue
        if name in _SAID_ELSEWHERE and value is not None:
            raise ValueError(
                f"Expected `fit` without `{name}`; what says it is "
                f"{_SAID_ELSEWHERE[name]}. Received: {name}={value!r}"
            )
