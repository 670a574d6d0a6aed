"""Loading what `train` or `agent.save` wrote."""

import warnings
import zipfile
from pathlib import Path

import keras

# Keras finds a saved agent's class once it has been imported.
from keras_rl2.agents import Agent
from keras_rl2.cli.errors import CommandError


def load(path: Path) -> Agent:
    """Loads a saved agent.

    Args:
        path: Path. A `.keras` file.

    Returns:
        `keras_rl2.Agent`, compiled as it was.

    Raises:
        CommandError: If the file holds no agent.
    """
    if not zipfile.is_zipfile(path):
        raise CommandError(f"{path}: not a .keras file, or not all of one")
    try:
        agent = keras.models.load_model(path)
    except Exception as error:
        # Of any type: it depends on where the file is damaged.
        raise CommandError(f"{path}: cannot be loaded: {error}") from error
    if not isinstance(agent, Agent):
        raise CommandError(
            f"{path}: expected a saved agent of keras_rl2, received a "
            f"{type(agent).__name__}"
        )
    return agent


def load_into(agent: Agent, path: Path) -> None:
    """Gives an agent all that another one of its kind had learned.

    Args:
        agent: `keras_rl2.Agent`. Compiled; gets weights, the state of its
            optimizers, and the count of its steps.
        path: Path. A `.keras` file.

    Raises:
        CommandError: If the file's agent is another one.
    """
    agent.optimizer.build(agent.trainable_variables)
    try:
        with warnings.catch_warnings():
            # Keras only warns of an optimizer that it leaves as it was.
            warnings.simplefilter("error", UserWarning)
            agent.load_weights(path)
    except (ValueError, UserWarning) as error:
        raise CommandError(
            f"{path}: does not fit the settings of its preset.json: {error}"
        ) from error
