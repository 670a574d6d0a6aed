"""Presets for environments that nobody has tuned them for."""

from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.loading import algorithm_name
from keras_rl2.presets.preset import Preset

_TOTAL_STEPS = 100_000


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
        optimizer=dict(ALGORITHMS[name].optimizer),
        dataset=dict(ALGORITHMS[name].dataset),
        source="Defaults of the algorithm",
    )
