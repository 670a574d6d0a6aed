"""Schedules of Stable-Baselines3, as Keras schedules."""

import math
from typing import Any

import keras

from keras_rl2.migrate.linear_fall import LinearFall
from keras_rl2.migrate.sb3_file import SB3File

# Default steps of each environment per update of DQN, since the setting is in a
# pickle; and of the other off-policy algorithms.
TRAIN_FREQ = {"DQN": 4, "SAC": 1, "TD3": 1}
_WORDS = {
    "learning_rate": "the learning rate",
    "clip_range": "clip_range",
    "clip_range_vf": "clip_range_vf",
}


def value_of(file: SB3File, name: str, notes: list[str], every: int = 1) -> Any:
    """Returns a number, or the Keras schedule of a changing one.

    Stable-Baselines3's schedules count the steps of `learn`, Keras' count
    updates.

    Args:
        file: `SB3File`.
        name: str. Name of the setting.
        notes: list of str. The names of ignored settings are appended.
        every: int. Updates per step of the schedule. Defaults to `1`.

    Returns:
        float, `keras.optimizers.schedules.PolynomialDecay`, or None if the file
        has neither.

    Raises:
        ValueError: If a number is not finite.
    """
    number = file.number(name)
    if number is not None:
        return number
    if not file.has_object(name):
        return None
    words = _WORDS.get(name, name)
    fall = file.linear_fall(name)
    if fall is None:
        notes.append(f"{words}, a function that is in a pickle only")
        return None
    updates = _updates(file) // every
    if not updates:
        notes.append(
            f"the course of {words} from {fall.start:g} to {fall.end:g}, over "
            "a run of unknown length"
        )
        return fall.start
    return _decay(fall, updates)


def _decay(
    fall: LinearFall, updates: int
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Returns the schedule over a number of updates."""
    return keras.optimizers.schedules.PolynomialDecay(
        fall.start, max(int(fall.end_fraction * updates), 1), fall.end
    )


def updates_per_call(file: SB3File) -> float:
    """Returns the number of updates per round of an off-policy algorithm.

    Args:
        file: `SB3File`. A file of an algorithm in `TRAIN_FREQ`.
    """
    made = file.number("gradient_steps") or 1.0
    if made > 0:
        return made
    # As many as there were steps.
    return TRAIN_FREQ[file.algorithm] * (file.number("n_envs") or 1.0)


def _updates(file: SB3File) -> int:
    """Returns the updates of the requested run, 0 if unknown."""
    steps = file.number("_total_timesteps") or 0.0
    envs = file.number("n_envs") or 1.0
    if steps < 1 or envs < 1:
        return 0
    if file.algorithm in TRAIN_FREQ:
        every = TRAIN_FREQ[file.algorithm]
        learned = steps - (file.number("learning_starts") or 0.0)
        made = learned / (every * envs) * updates_per_call(file)
        return max(int(made), 0)
    size = (file.number("n_steps") or 0.0) * envs
    if size < 1:
        return 0
    batch = file.number("batch_size") or size
    if batch < 1:
        return 0
    passes = file.number("n_epochs") or 1.0
    return int(math.ceil(steps / size) * passes * math.ceil(size / batch))
