"""Keras' methods for single batches, as agents have them."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics import arguments
from keras_rl2.basics.direct_call import on_device


@arguments.refusing({"class_weight": "no weights of classes: there are none"})
def train_on_batch(
    agent: Any,
    x: Mapping[str, Any],
    y: None = None,
    sample_weight: npt.ArrayLike | None = None,
    *,
    return_dict: bool = False,
) -> Any:
    """Makes one update; see `keras.Model.train_on_batch`.

    Args:
        agent: `keras_rl2.Agent`.
        x: dict of `[B, ...]`. A minibatch; see `train_step`.
        y: None. Actions and returns are entries of the minibatch. Defaults
            to `None`.
        sample_weight: `[B]` or None. Weight of each row, multiplied by its
            `weight` in the minibatch. Defaults to `None`.
        return_dict: bool. Whether logs are returned as a dict. Defaults to
            `False`.

    Returns:
        Logs, as a list or a dict.

    Raises:
        ValueError: If the agent is not bound or compiled, nothing is
            trainable, or agents do not support an argument.
    """
    _ = agent.policy
    agent.check_loaded()
    agent.check_trained()
    with agent.devices.placement():
        agent.make_train_function()
        logs = agent.rounds.update((x, y, sample_weight))
    numbers = {name: np.array(logs[name]) for name in sorted(logs)}
    return numbers if return_dict else [*numbers.values()]


def make_test_function(agent: Any, force: bool = False) -> Any:
    """Raises an error: a batch does not measure a policy."""
    raise NotImplementedError(
        "Expected `evaluate(env)`, which plays episodes; or "
        "`evaluate(offline)`, which estimates from recorded ones. "
        f"Received: `test_on_batch` of {type(agent).__name__}"
    )


def make_predict_function(agent: Any, force: bool = False) -> Any:
    """Makes the function of `predict` and `predict_on_batch`.

    They return the outputs of `call`: the parameters of a policy or
    Q-values; `act` returns actions. Recurrent networks raise an error, as
    rows are not episodes.
    """
    memory = agent.policy.memory
    agent.check_loaded()
    if memory is not None:
        raise NotImplementedError(
            "Expected `act(observation, state)` of an agent with recurrent "
            f"networks. Received: `predict` of {type(agent).__name__}"
        )
    if agent.predict_function is None or force:
        # It sets `predict_function`, and returns nothing.
        keras.Model.make_predict_function(agent, force)
        agent.predict_function = on_device(
            agent.devices.placed, agent.predict_function
        )
    return agent.predict_function
