"""Hyper-parameters of Stable-Baselines3, by the names of keras_rl2."""

import math
from collections.abc import Collection
from typing import Any

import keras

from keras_rl2.migrate.sb3_file import SB3File
from keras_rl2.migrate.sb3_schedules import TRAIN_FREQ
from keras_rl2.migrate.sb3_schedules import updates_per_call
from keras_rl2.migrate.sb3_schedules import value_of

_ON_POLICY = {
    "gamma": "gamma",
    "gae_lambda": "gae_lambda",
    "ent_coef": "entropy_coefficient",
    "vf_coef": "value_coefficient",
    "max_grad_norm": "max_gradient_norm",
}
_OFF_POLICY = {"gamma": "gamma", "tau": "tau"}
#: Numbers with the same meaning in both libraries.
NUMBERS: dict[str, dict[str, str]] = {
    "PPO": {
        **_ON_POLICY,
        "clip_range": "clip_ratio",
        "clip_range_vf": "value_clip_range",
        "target_kl": "target_kl",
    },
    "A2C": _ON_POLICY,
    "DQN": {**_OFF_POLICY, "max_grad_norm": "max_gradient_norm"},
    "SAC": {**_OFF_POLICY, "target_entropy": "target_entropy"},
    "TD3": {
        **_OFF_POLICY,
        "target_policy_noise": "target_noise",
        "target_noise_clip": "target_noise_clip",
    },
}
# In place of a temperature of 0, since its logarithm must be finite.
_LEAST_TEMPERATURE = 1e-12


def settings_of(
    file: SB3File, allowed: Collection[str], notes: list[str]
) -> dict[str, Any]:
    """Returns arguments of an agent's constructor.

    Args:
        file: `SB3File`.
        allowed: Collection of str. The agent's arguments.
        notes: list of str. The names of ignored settings are appended.

    Returns:
        dict of the settings that the file stores as plain numbers.
    """
    settings: dict[str, Any] = {}
    for theirs, ours in NUMBERS[file.algorithm].items():
        if ours not in allowed:
            continue
        value = _value_of(file, theirs, notes)
        if value is not None:
            settings[ours] = value
    if file.algorithm in ("PPO", "A2C"):
        settings["normalize_advantages"] = file.flag("normalize_advantage")
    elif file.algorithm == "DQN":
        settings |= _dqn(file)
    elif file.algorithm == "SAC":
        settings |= _sac(file)
    elif file.algorithm == "TD3":
        settings["policy_delay"] = int(file.number("policy_delay") or 1)
        if file.has_object("action_noise"):
            notes.append("action_noise")
        else:
            settings["exploration"] = None
    return {name: settings[name] for name in settings if name in allowed}


def _value_of(file: SB3File, theirs: str, notes: list[str]) -> Any:
    """Returns the value of a setting, or its schedule."""
    if theirs == "clip_range":
        return value_of(file, theirs, notes)
    value = file.number(theirs)
    if theirs == "clip_range_vf" and value is None and file.has_object(theirs):
        notes.append("clip_range_vf, which is not a constant number")
    return value


def _dqn(file: SB3File) -> dict[str, Any]:
    """Returns the settings of target updates and of epsilon."""
    # True is the default of keras_rl2.
    settings: dict[str, Any] = {"double": False}
    interval = file.number("target_update_interval")
    if interval is not None:
        # Stable-Baselines3 counts steps of all environments, keras_rl2 updates.
        calls = max(int(interval) // int(file.number("n_envs") or 1), 1)
        updates = calls * updates_per_call(file) / TRAIN_FREQ["DQN"]
        settings["target_every"] = max(int(updates), 1)
    first = file.number("exploration_initial_eps")
    last = file.number("exploration_final_eps")
    share = file.number("exploration_fraction")
    steps = file.number("_total_timesteps")
    if first is not None and last is not None:
        settings["epsilon"] = last
        if share and steps:
            settings["epsilon"] = keras.optimizers.schedules.PolynomialDecay(
                first, max(int(share * steps), 1), last
            )
    return settings


def _sac(file: SB3File) -> dict[str, Any]:
    """Returns the temperature, and whether it is learned."""
    learned = file.variable("log_ent_coef")
    fixed = file.number("ent_coef")
    # Pink noise is the default of keras_rl2.
    settings: dict[str, Any] = {"noise_color": "white"}
    if learned is not None and learned.size == 1:
        settings["temperature"] = math.exp(float(learned.item()))
    elif fixed is not None:
        settings["temperature"] = max(fixed, _LEAST_TEMPERATURE)
        settings["learn_temperature"] = False
    interval = file.number("target_update_interval")
    if interval:
        settings["target_every"] = int(interval)
    return settings
