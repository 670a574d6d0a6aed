"""Search spaces: the settings that a tuner varies, with their ranges."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.algorithms import algorithm_name
from keras_rl2.presets.preset import Preset
from keras_rl2.presets.preset import default
from keras_rl2.presets.preset import is_schedule


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """Settings of an algorithm that a tuner varies, as plain data.

    Args:
        algorithm: str. Name of the agent's class, such as `"PPO"`.
        ranges: Mapping from dotted names of settings to ranges; empty for the
            algorithm's own. A range is a list of choices, where `"preset"`
            leaves the setting as the preset has it, or a dict `{"low": 1e-5,
            "high": 1e-2, "log": true}`, where `log` draws evenly over orders
            of magnitude. Between two whole numbers, whole numbers are drawn.
            Defaults to `{}`.

    Raises:
        ValueError: If a range has fewer than two values, or a field of a
            preset may not have them.

    Example:

    >>> SearchSpace("sac").ranges["dataset.batch_size"]
    [64, 128, 256, 512]
    """

    algorithm: str
    ranges: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "algorithm", algorithm_name(self.algorithm))
        ranges = self.ranges or ALGORITHMS[self.algorithm].search
        object.__setattr__(self, "ranges", ranges)
        preset = default(self.algorithm, "any")
        for name, choices in ranges.items():
            for value in _values(name, choices):
                self.apply(preset, {name: value})

    def suggest(self, trial: Any) -> dict[str, Any]:
        """Draws values for `apply` from an `optuna.Trial`."""
        return {
            name: _suggest(trial, name, choices)
            for name, choices in self.ranges.items()
        }

    def apply(self, preset: Preset, values: Mapping[str, Any]) -> Preset:
        """Returns a preset with values of `suggest`.

        A schedule of the preset stays one: the value is its beginning, and
        its end changes in proportion.
        """
        settings: dict[str, Any] = {}
        if not preset.optimizer:
            settings["optimizer"] = dict(ALGORITHMS[self.algorithm].optimizer)
        for name, value in values.items():
            if value == "preset":
                continue
            section, _, key = name.rpartition(".")
            now: Any = getattr(preset, section, {}).get(key)
            if is_schedule(now) and isinstance(value, float) and now["initial"]:
                final = now["final"] * (value / now["initial"])
                value = {**now, "initial": value, "final": final}
            settings[name] = value
        return preset.with_settings(settings)


def _values(name: str, choices: Any) -> list[Any]:
    """Returns the choices of a range, or its ends; raises if it is none."""
    if isinstance(choices, Mapping):
        choices = [choices[end] for end in ("low", "high") if end in choices]
    if not isinstance(choices, list) or len(choices) < 2 or "." not in name:
        raise ValueError(
            "Expected `ranges` from names as agent.gamma to at least two "
            'choices, or to {"low": 1, "high": 10}. '
            f"Received: {name}={choices!r}"
        )
    return choices


def _suggest(trial: Any, name: str, choices: Any) -> Any:
    """Draws one setting."""
    if isinstance(choices, list):
        texts = [json.dumps(choice) for choice in choices]
        return json.loads(trial.suggest_categorical(name, texts))
    low, high = choices["low"], choices["high"]
    are_whole = isinstance(low, int) and isinstance(high, int)
    suggest = trial.suggest_int if are_whole else trial.suggest_float
    return suggest(name, low, high, log=choices.get("log", False))
