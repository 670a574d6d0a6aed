"""The settings of presets, written out: constructors import TensorFlow.

A test compares the two. Most values are checked by what is made of them.
"""

import difflib
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from keras_rl2.presets.algorithms import ALGORITHMS

#: Fields that are dicts of settings.
SECTIONS = ("networks", "agent", "optimizer", "dataset")
#: Types of the other fields.
FIELDS = {
    **dict.fromkeys(("algorithm", "environment", "source", "notes"), str),
    **dict.fromkeys(("total_steps", "updates", "num_envs"), int),
    **{"env_kwargs": dict, "laptop": bool},
}
_NETWORKS = "hidden activation normalize_observations normalization"
_BOTH = "batch_size rounds_per_epoch sequence_length on_env_error "
_ROLLOUTS = _BOTH + "horizon passes scale_rewards"
_REPLAY = _BOTH + (
    "capacity steps_per_round updates_per_round warm_up n_step prioritized "
    "alpha beta burn_in"
)
_RECORDED = "batch_size n_step updates_per_epoch best min_return memory_limit"
_OPTIMIZERS = {
    **dict.fromkeys(("Adam", "AdamW"), "beta_1 beta_2 epsilon amsgrad"),
    "Nadam": "beta_1 beta_2 epsilon",
    "RMSprop": "rho momentum epsilon centered",
    "SGD": "momentum nesterov",
}


def settings_of(
    algorithm: str, optimizer: str = "Adam", offline: bool = False
) -> list[str]:
    """Returns the dotted names of all settings of an algorithm's presets."""
    known = ALGORITHMS[algorithm]
    more = " initialization" if known.on_policy else ""
    dataset = _ROLLOUTS if known.on_policy else _REPLAY
    arguments = _OPTIMIZERS.get(optimizer, "")
    sections = {
        "networks": _NETWORKS + more,
        "agent": " ".join(known.settings),
        "optimizer": f"name learning_rate weight_decay {arguments}",
        "dataset": _RECORDED if offline else dataset,
    }
    return [*FIELDS] + [
        f"{section}.{name}"
        for section, names in sections.items()
        for name in names.split()
    ]


def check(data: Mapping[str, Any]) -> None:
    """Raises an error for settings that are unknown or of a wrong type."""
    for name, type_ in {**FIELDS, **dict.fromkeys(SECTIONS, dict)}.items():
        _require(type(data[name]) is type_, data, name, f"a {type_.__name__}")
    algorithm, optimizer = data["algorithm"], str(data["optimizer"].get("name"))
    kinds = ALGORITHMS.get(algorithm)
    _require(kinds, data, "algorithm", " or ".join(ALGORITHMS))
    assert kinds is not None
    names = settings_of(algorithm, optimizer, bool(data["updates"]))
    for section in SECTIONS:
        for name in data[section]:
            if f"{section}.{name}" not in names:
                what, choices = f"a setting of {algorithm}", [*names, *SECTIONS]
                raise unknown(what, f"{section}.{name}", choices)
    right = not data["optimizer"] or optimizer in _OPTIMIZERS
    _require(right, data, "optimizer", f"of a name, {', '.join(_OPTIMIZERS)}")
    for name, value in data["agent"].items():
        kind, name = kinds.settings[name], f"agent.{name}"
        _require(kind.accepts(value), {name: value}, name, kind.words)
    steps, updates = data["total_steps"], data["updates"]
    wrong = bool(steps) == bool(updates) or min(steps, updates) < 0
    if wrong or (updates and kinds.on_policy):
        raise ValueError(
            "Expected either `total_steps`, or `updates` for recorded data, "
            "from which no on-policy algorithm learns. Received: "
            f"{algorithm}, total_steps={steps}, updates={updates}"
        )


def _require(
    right: object, data: Mapping[str, Any], name: str, expected: str
) -> None:
    """Raises an error for a value that is not right."""
    if not right:
        raise ValueError(
            f"Expected `{name}` to be {expected}. "
            f"Received: {name}={data[name]!r}"
        )


def unknown(expected: str, name: str, choices: Iterable[str]) -> ValueError:
    """Makes the error for a name that is none of the choices."""
    choices = sorted(choices)
    section = name.rpartition(".")[0] + "."
    within = [choice for choice in choices if choice.startswith(section)]
    near = [repr(each) for each in nearest(name, choices)]
    listed = "one of " + ", ".join(within or choices)
    listed = f"perhaps {' or '.join(near)}" if near else listed
    return ValueError(f"Expected {expected}, {listed}. Received: {name!r}")


def nearest(name: str, choices: Iterable[str]) -> list[str]:
    """Returns the choices that are like a name, by the parts after dots."""
    last = {each.lower().rpartition(".")[2]: each for each in choices}
    near = difflib.get_close_matches(name.lower().rpartition(".")[2], last)
    return [last[each] for each in near]
