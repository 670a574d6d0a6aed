"""Agents from files of keras-rl and keras-rl2."""

import os
from collections.abc import Sequence
from typing import Any
from typing import Literal

import keras

from keras_rl2.agents import DQN
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import standing_for
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.migrate.legacy_weights import load_weights
from keras_rl2.migrate.refusals import blamed_on
from keras_rl2.spaces.space_configs import GivenSpace


def _from_keras_rl(
    path: str | os.PathLike[str],
    network: keras.Model,
    env: GivenEnv | None = None,
    **settings: Any,
) -> DQN:
    """Implements `from_keras_rl`."""
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


@standing_for(_from_keras_rl)
def from_keras_rl(
    path: str | os.PathLike[str],
    network: keras.Model,
    env: GivenEnv | None = None,
    *,
    double: bool = True,
    dueling: bool = False,
    distributional: Literal["categorical", "quantile"] | None = None,
    atoms: int = 51,
    support: Sequence[float] = (-10.0, 10.0),
    loss: Literal["huber", "mse"] = "huber",
    epsilon: float
    | keras.optimizers.schedules.LearningRateSchedule
    | None = None,
    epsilon_spread: float = 0.0,
    max_gradient_norm: float | None = 10.0,
    tau: float = 0.01,
    gamma: float = 0.99,
    target_every: int = 1,
    observation_space: GivenSpace | None = None,
    action_space: GivenSpace | None = None,
    seed: int | None = None,
    name: str | None = None,
    dtype: str | None = None,
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
        double: bool. Whether the online network, rather than its target,
            chooses the next action. Defaults to `True`.
        dueling: bool. Whether the network outputs V and advantages. Defaults
            to `False`.
        distributional: None, `"categorical"` or `"quantile"`. Defaults to
            `None`.
        atoms: int. Atoms or quantiles of each distribution. Defaults to `51`.
        support: Sequence of two floats. Smallest and largest return on the
            atoms of `"categorical"`. Defaults to `(-10.0, 10.0)`.
        loss: str. `"huber"` (with a threshold of 1) or `"mse"` (half the
            square) of the TD error; distributions have their own losses.
            Defaults to `"huber"`.
        epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
            over environment steps. Probability of a random action; it changes
            from round to round. None for a linear decay from 1 to 0.05 over
            10,000 steps. Defaults to `None`.
        epsilon_spread: float. α of Ape-X: environment i of B explores with
            ε^(1 + α i / (B - 1)), so that some of many environments hardly
            explore; 7 as published. Defaults to `0.0`: the same ε in all.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. Defaults to `10.0`.
        tau: float. Polyak coefficient, above 0 and at most 1: the target
            network moves by this fraction towards the network; 1 copies it.
            With 0.01 at each update, the target is about as old as a copy made
            every 100 updates. Copies every 10,000 updates, as for Atari, would
            be two or three in a task of 50,000 steps, while values grow by
            about a reward with each copy. Defaults to `0.01`.
        gamma: float. Discount factor. Defaults to `0.99`.
        target_every: int. Number of updates per move of the target network;
            `tau=1.0, target_every=1000` copies it every 1000 updates. Defaults
            to `1`.
        observation_space: `gymnasium.Space` or its config. Space of one
            environment's observations; None to take it from the first
            environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. Space of one
            environment's actions; None to take it from the first environment.
            Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy; None for the global one.
            Defaults to `None`.

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
    raise NotImplementedError
