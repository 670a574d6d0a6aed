"""Presets for environments without tuned settings."""

from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.kinds import is_schedule
from keras_rl2.presets.loading import algorithm_name
from keras_rl2.presets.preset import Preset
from keras_rl2.presets.schema import settings_of

_TOTAL_STEPS = 100_000
_UPDATES = 100_000


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
        source="Defaults of the algorithm",
    )


def on_recorded_data(preset: Preset) -> Preset:
    """Returns a preset for recorded data, as near to another as can be.

    Networks, optimizer and the settings of both datasets stay. Schedules over
    the steps of a run go, as none are taken.

    Args:
        preset: `Preset`. A preset of an off-policy algorithm.

    Returns:
        `Preset` of 100 000 updates; the same where it was for recorded data.

    Raises:
        ValueError: If the algorithm is on-policy.

    Example:

    >>> preset = Preset("DQN", "CartPole-v1", 50_000,
    ...                 dataset={"batch_size": 64, "warm_up": 1000})
    >>> changed = on_recorded_data(preset)
    >>> changed.updates, changed.total_steps, changed.dataset
    (100000, 0, {'batch_size': 64})
    """
    if preset.updates:
        return preset
    known = settings_of(preset.algorithm, offline=True)
    changed = {
        "total_steps": 0,
        "updates": _UPDATES,
        "num_envs": 1,
        "agent": {
            name: value
            for name, value in preset.agent.items()
            if not is_schedule(value)
        },
        "dataset": {
            name: value
            for name, value in preset.dataset.items()
            if (kind := known.get(f"dataset.{name}")) and kind.accepts(value)
        },
    }
    return preset.with_settings(changed)
