"""Agents from files of keras-rl and keras-rl2."""

import os
from typing import Any

import keras

from keras_rl2.agents import DQN
from keras_rl2.arguments import check_path
from keras_rl2.envs import as_vector_env
from keras_rl2.migrate.legacy_weights import load_weights
from keras_rl2.migrate.refusals import blamed_on


def from_keras_rl(
    path: str | os.PathLike[str],
    network: keras.Model,
    env: Any = None,
    **settings: Any,
) -> DQN:
    """Makes a `DQN` with the weights of a `DQNAgent` of keras-rl.

    Reads what `DQNAgent.save_weights` of keras-rl or keras-rl2 wrote: an HDF5
    file, or a checkpoint of TensorFlow where the name did not end in `.h5`.
    There is no network in it, only the weights of one, so that the network is
    to be made again: the same layers in the same order. The window of
    keras-rl, an axis in front of the observation, is no part of observations
    here; without frames that are stacked, leave it out.

    With `dueling=True` (their `enable_dueling_network`, of type `"avg"`) the
    network ends where theirs was changed, in n + 1 units: the value, then the
    advantages.

    Args:
        path: str or path. The file; of a checkpoint, what the names of its
            files begin with.
        network: `keras.Model` from observations to `[B, n]`, or with
            `dueling=True` to `[B, 1 + n]`. It is given the weights.
        env: An environment, vector environment or id string that the agent is
            for; None if that is to be the first that it meets. Defaults to
            `None`.
        **settings: Arguments of `DQN`.

    Returns:
        `DQN`, compiled.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged or is something else, or its weights
            do not fit the network.

    Example:

    >>> import keras_rl2 as rl
    >>> network = rl.networks.mlp((4,), 2, hidden=(16, 16, 16),
    ...                           activation="relu")
    >>> agent = rl.migrate.from_keras_rl("weights.h5", network, "CartPole-v1")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'weights.h5'
    """
    check_path(path=path)
    path = os.fspath(path)
    if env is not None:
        adapter = as_vector_env(env)
        settings = {
            "observation_space": adapter.observation_space,
            "action_space": adapter.action_space,
            **settings,
        }
    agent = DQN(network, **settings)
    if not network.built:
        raise ValueError(
            "Expected a network that is built: give it an input, or an `env`. "
            f"Received: {network.name!r}, which is not"
        )
    with blamed_on(path, f"weights of keras-rl for {network.name!r}"):
        load_weights(path, network)
    for target, followed in agent.target_pairs:
        if target is not None:
            target.set_weights(followed.get_weights())
    agent.compile()
    return agent
