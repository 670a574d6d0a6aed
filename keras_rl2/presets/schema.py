"""The settings of presets, and their kinds.

Written out, since asking the constructors would import TensorFlow. The tests
compare the two.
"""

import difflib
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.kinds import COUNT
from keras_rl2.presets.kinds import FLAG
from keras_rl2.presets.kinds import NONE
from keras_rl2.presets.kinds import NUMBER
from keras_rl2.presets.kinds import SCHEDULE
from keras_rl2.presets.kinds import SETTINGS
from keras_rl2.presets.kinds import TEXT
from keras_rl2.presets.kinds import WHOLE
from keras_rl2.presets.kinds import WIDTHS
from keras_rl2.presets.kinds import Kind
from keras_rl2.presets.kinds import either
from keras_rl2.presets.kinds import one_of

#: Fields that are one value each.
VALUES: dict[str, Kind] = {
    "algorithm": one_of(*ALGORITHMS),
    "environment": TEXT,
    "total_steps": WHOLE,
    "updates": WHOLE,
    "num_envs": COUNT,
    "env_kwargs": SETTINGS,
    "laptop": FLAG,
    "source": TEXT,
    "notes": TEXT,
}

_NETWORKS = {
    "hidden": WIDTHS,
    "activation": TEXT,
    "normalize_observations": FLAG,
    "normalization": one_of("none", "layer", "batch", "spectral"),
}
_ON_POLICY_NETWORKS = {
    **_NETWORKS,
    "initialization": one_of("orthogonal", "fan_in"),
}
_OPTIONAL_NUMBER = either(NUMBER, NONE)
_SCHEDULED = either(NUMBER, SCHEDULE)
_OPTIONAL_COUNT = either(COUNT, NONE)
_AUTO_COUNT = either(COUNT, one_of("auto"))

_COLLECTING = {"on_env_error": one_of("raise", "restart")}
_ROLLOUTS = {
    "horizon": COUNT,
    "passes": COUNT,
    "batch_size": either(_AUTO_COUNT, NONE),
    "rounds_per_epoch": COUNT,
    "scale_rewards": FLAG,
    "sequence_length": _OPTIONAL_COUNT,
    **_COLLECTING,
}
_REPLAY = {
    "capacity": COUNT,
    "batch_size": _AUTO_COUNT,
    "steps_per_round": _OPTIONAL_COUNT,
    "updates_per_round": _OPTIONAL_COUNT,
    "warm_up": WHOLE,
    "n_step": COUNT,
    "prioritized": FLAG,
    "alpha": NUMBER,
    "beta": NUMBER,
    "rounds_per_epoch": _OPTIONAL_COUNT,
    "sequence_length": _OPTIONAL_COUNT,
    "burn_in": either(WHOLE, NONE),
    **_COLLECTING,
}
_RECORDED = {
    "batch_size": COUNT,
    "n_step": COUNT,
    "updates_per_epoch": COUNT,
    "best": _OPTIONAL_NUMBER,
    "min_return": _OPTIONAL_NUMBER,
    "memory_limit": COUNT,
}
_ADAM = {"beta_1": NUMBER, "beta_2": NUMBER, "epsilon": NUMBER}
#: Keras optimizers, and their arguments beside the learning rate.
_OPTIMIZERS: dict[str, dict[str, Kind]] = {
    "Adam": {**_ADAM, "amsgrad": FLAG},
    "AdamW": {**_ADAM, "amsgrad": FLAG},
    "Nadam": _ADAM,
    "RMSprop": {
        "rho": NUMBER,
        "momentum": NUMBER,
        "epsilon": NUMBER,
        "centered": FLAG,
    },
    "SGD": {"momentum": NUMBER, "nesterov": FLAG},
}

#: Fields that are dicts of settings.
SECTIONS = ("networks", "agent", "optimizer", "dataset")


def settings_of(
    algorithm: str, optimizer: str = "Adam", offline: bool = False
) -> dict[str, Kind]:
    """Returns all settings of an algorithm's presets.

    Args:
        algorithm: str. One of `ALGORITHMS`.
        optimizer: str. Name of the optimizer. Defaults to `"Adam"`.
        offline: bool. Whether they are of presets for recorded data. Defaults
            to `False`.

    Returns:
        dict from dotted names, e.g. `"agent.gamma"`, to kinds.

    Example:

    >>> settings_of("PPO")["agent.gamma"].words
    'a number'
    """
    on_policy = ALGORITHMS[algorithm].on_policy
    dataset: Mapping[str, Kind] = _ROLLOUTS if on_policy else _REPLAY
    if offline:
        dataset = _RECORDED
    sections = {
        "networks": _ON_POLICY_NETWORKS if on_policy else _NETWORKS,
        "agent": ALGORITHMS[algorithm].settings,
        "optimizer": {
            "name": one_of(*_OPTIMIZERS),
            "learning_rate": _SCHEDULED,
            "weight_decay": _OPTIONAL_NUMBER,
            **_OPTIMIZERS.get(optimizer, {}),
        },
        "dataset": dataset,
    }
    return VALUES | {
        f"{section}.{name}": kind
        for section, kinds in sections.items()
        for name, kind in kinds.items()
    }


def check(data: Mapping[str, Any]) -> None:
    """Raises an error for settings that are unknown or of the wrong type.

    Args:
        data: Mapping. All fields of a preset, as plain data.

    Raises:
        ValueError: If a setting is unknown, or its value of a wrong type.
    """
    _check_value("algorithm", data["algorithm"], VALUES["algorithm"])
    for section in SECTIONS:
        _check_section(section, data[section])
    optimizer = data["optimizer"]
    name = optimizer.get("name", "Adam")
    kinds = settings_of(
        data["algorithm"],
        name if isinstance(name, str) else "Adam",
        bool(data["updates"]),
    )
    for key, value in _flat(data).items():
        if key not in kinds:
            raise unknown(
                f"a setting of {data['algorithm']}", key, [*kinds, *SECTIONS]
            )
        _check_value(key, value, kinds[key])
    if optimizer and "name" not in optimizer:
        raise ValueError(
            "Expected `optimizer.name`, or no settings of the optimizer for "
            f"the algorithm's own. Received: optimizer={optimizer}"
        )
    _check_length(data)


def unknown(expected: str, name: str, choices: Iterable[str]) -> ValueError:
    """Makes the error for a name that is not among the choices.

    Args:
        expected: str. The kind of name, for the message.
        name: str. The name received.
        choices: Iterable of str. The right names.

    Returns:
        ValueError that names the nearest choices; if none is near, all of
        the section, or all.

    Example:

    >>> unknown("a setting", "gama", ["agent.gamma", "total_steps"])
    ValueError("Expected a setting, perhaps 'agent.gamma'. Received: 'gama'")
    """
    choices = list(choices)
    near = nearest(name, choices)
    if near:
        listed = "perhaps " + " or ".join(repr(choice) for choice in near)
    else:
        section = name.rpartition(".")[0] + "."
        within = [choice for choice in choices if choice.startswith(section)]
        listed = "one of " + ", ".join(sorted(within or choices))
    return ValueError(f"Expected {expected}, {listed}. Received: {name!r}")


def nearest(name: str, choices: Iterable[str]) -> list[str]:
    """Returns the choices that a name may have been meant for.

    Args:
        name: str. The name received.
        choices: Iterable of str. The right names. Of dotted names
            only the last parts are compared.

    Returns:
        list of at most three, the nearest first.
    """

    def likeness(choice: str) -> float:
        return difflib.SequenceMatcher(None, last(name), last(choice)).ratio()

    def last(dotted: str) -> str:
        return dotted.lower().rpartition(".")[2]

    near = sorted(choices, key=likeness, reverse=True)[:3]
    least = max([0.6, *(likeness(choice) - 0.2 for choice in near)])
    return [choice for choice in near if likeness(choice) >= least]


def _check_section(section: str, value: object) -> None:
    """Raises an error for a section that is not a dict of settings."""
    if not isinstance(value, dict) or not all(
        isinstance(name, str) for name in value
    ):
        raise ValueError(
            f"Expected `{section}` to be a dict of settings. "
            f"Received: {section}={value!r}"
        )


def _check_length(data: Mapping[str, Any]) -> None:
    """Raises an error for a run of neither steps nor updates, or of both."""
    steps, updates = data["total_steps"], data["updates"]
    if bool(steps) == bool(updates) or min(steps, updates) < 0:
        raise ValueError(
            "Expected either `total_steps` to be at least 1, or `updates`, for "
            "recorded data, to be. "
            f"Received: total_steps={steps}, updates={updates}"
        )
    if updates and ALGORITHMS[data["algorithm"]].on_policy:
        raise ValueError(
            f"Expected `total_steps` of {data['algorithm']}, which does not "
            f"learn from recorded data. Received: updates={updates}"
        )


def _check_value(key: str, value: object, kind: Kind) -> None:
    """Raises an error for a value of a wrong type."""
    if not kind.accepts(value):
        raise ValueError(
            f"Expected `{key}` to be {kind.words}. Received: {key}={value!r}"
        )


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all settings by their dotted names."""
    flat = {key: data[key] for key in data if key not in SECTIONS}
    for section in SECTIONS:
        for name, value in data[section].items():
            flat[f"{section}.{name}"] = value
    return flat
