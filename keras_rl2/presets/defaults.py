"""Presets for environments that nobody has tuned them for."""

from typing import Any

from keras_rl2.presets.loading import algorithm_name
from keras_rl2.presets.preset import Preset

_TOTAL_STEPS = 100_000
_ADAM = {"name": "Adam", "learning_rate": 3e-4}
_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "A2C": {
        "name": "RMSprop",
        "learning_rate": 7e-4,
        "rho": 0.99,
        "epsilon": 1e-5,
    },
    "DDPG": {"name": "Adam", "learning_rate": 1e-3},
    "DQN": {"name": "Adam", "learning_rate": 1e-3},
    "PPO": {**_ADAM, "epsilon": 1e-5},
    "REINFORCE": {**_ADAM, "epsilon": 1e-5},
    "SAC": _ADAM,
    "TD3": {"name": "Adam", "learning_rate": 1e-3},
}
# Where the dataset's own defaults are those of another algorithm.
_DATASETS: dict[str, dict[str, Any]] = {
    # Rounds are short: an epoch of a single one would be Keras' work only.
    "A2C": {
        "horizon": 5,
        "passes": 1,
        "batch_size": None,
        "rounds_per_epoch": 200,
    },
    # The horizon is the longest length of an episode.
    "REINFORCE": {"horizon": 1000, "passes": 1, "batch_size": None},
}


def default(algorithm: str, environment: str) -> Preset:
    """Returns a preset of the algorithm's own defaults.

    Args:
        algorithm: str. Its name, in upper or lower case.
        environment: str. Id of the environment.

    Returns:
        `Preset` of 100 000 steps.

    Raises:
        ValueError: If there is no such algorithm.

    Example:

    >>> default("sac", "Pusher-v5").optimizer
    {'name': 'Adam', 'learning_rate': 0.0003}
    """
    name = algorithm_name(algorithm)
    return Preset(
        name,
        environment,
        _TOTAL_STEPS,
        optimizer=_OPTIMIZERS[name],
        dataset=_DATASETS.get(name, {}),
        source="Defaults of the algorithm",
    )
