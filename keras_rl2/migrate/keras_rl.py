"""Agents from files of keras-rl and keras-rl2."""

import os
from typing import Any

import keras

from keras_rl2.agents import DQN
from keras_rl2.basics.arguments import check_path
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.migrate.legacy_weights import load_weights
from keras_rl2.migrate.refusals import blamed_on
from keras_rl2.spaces.space_configs import GivenSpace


def from_keras_rl(
    path: str | os.PathLike[str],
    network: keras.Model,
    env: GivenEnv | None = None,
    *,
    observation_space: GivenSpace | None = None,
    action_space: GivenSpace | None = None,
    **settings: Any,
) -> DQN:
    """Makes a `DQN` with the weights of a `DQNAgent` of keras-rl.

    Reads a file of `DQNAgent.save_weights` of keras-rl or keras-rl2: an HDF5
    file, or a checkpoint of TensorFlow where the name did not end in `.h5`.
    The file contains only the weights, so that the network must be made again
    with the same layers in the same order. The window of keras-rl, an axis in
    front of the observation, is not part of observations here; without stacked
    frames, leave it out.

    With `dueling=True` (`enable_dueling_network` in keras-rl, of type `"avg"`)
    the network ends in the layer of n + 1 units: the value, then the
    advantages.

    Args:
        path: str or path. The file, or the prefix of the names of a
            checkpoint's files.
        network: `keras.Model` from observations to `[B, n]`, or with
            `dueling=True` to `[B, 1 + n]`. Receives the weights.
        env: An environment, vector environment or id string that the agent is
            for; None if that is to be the first that it meets. Defaults to
            `None`.
        observation_space: `gymnasium.Space` or its config. Space of one
            environment's observations; None to take it from the first
            environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. Space of one
            environment's actions; None to take it from the first environment.
            Defaults to `None`.
        **settings: Further arguments of `DQN`.

    Returns:
        `DQN`, compiled.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged or of another kind, or its weights do
            not fit the network.

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
        observation_space = observation_space or adapter.observation_space
        action_space = action_space or adapter.action_space
    agent = DQN(
        network,
        observation_space=observation_space,
        action_space=action_space,
        **settings,
    )
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
