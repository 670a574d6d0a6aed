"""Loading saved agents."""

import warnings
from pathlib import Path

from keras_rl2.agents import Agent
from keras_rl2.cli.errors import CommandError
from keras_rl2.loading import load as load_agent


def load(path: Path) -> Agent:
    """Loads a saved agent of unknown origin.

    Args:
        path: Path. A `.keras` file.

    Returns:
        `keras_rl2.Agent`, compiled as it was.

    Raises:
        CommandError: If the file holds no agent, or cannot be trusted.
    """
    try:
        return load_agent(path)
    except ValueError as error:
        raise CommandError(str(error)) from error


def load_into(agent: Agent, path: Path) -> None:
    """Loads weights, optimizer state and step count into an agent.

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
            # Keras only warns if it does not load an optimizer.
            warnings.simplefilter("error", UserWarning)
            agent.load_weights(path)
    except (ValueError, UserWarning) as error:
        raise CommandError(
            f"{path}: does not fit the settings of its preset.json: {error}"
        ) from error
