"""Search spaces: the settings that a tuner varies, with their ranges."""

import dataclasses
import json
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol

from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.kinds import Kind
from keras_rl2.presets.kinds import is_schedule
from keras_rl2.presets.loading import algorithm_name
from keras_rl2.presets.loading import read_object
from keras_rl2.presets.preset import Preset
from keras_rl2.presets.schema import SECTIONS
from keras_rl2.presets.schema import settings_of
from keras_rl2.presets.schema import unknown

_SOURCE = "Settings that RL Baselines3 Zoo varies, in narrower ranges"
_MOST_CHOICES = 1000


class Trial(Protocol):
    """The methods of an `optuna.Trial` that a search space calls."""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Returns one of the choices."""

    def suggest_float(
        self, name: str, low: float, high: float, *, log: bool = False
    ) -> float:
        """Returns a number."""

    def suggest_int(
        self, name: str, low: int, high: int, *, log: bool = False
    ) -> int:
        """Returns a whole number."""


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """Settings of an algorithm that a tuner varies, as plain data.

    Args:
        algorithm: str. Name of the agent's class, e.g. `"PPO"`.
        ranges: Mapping from the dotted name of a setting to a list of choices,
            or to a dict `{"low": 1e-5, "high": 1e-2, "log": true}`, where
            `log` draws evenly over orders of magnitude and is false by
            default. Whole numbers are drawn for a setting that is one.
        source: str. The origin of the ranges. Defaults to `""`.

    Raises:
        ValueError: If a setting is unknown, or a range has fewer than two
            values, or values that the setting may not have.

    Example:

    >>> space = SearchSpace("PPO", {
    ...     "agent.gamma": [0.9, 0.99],
    ...     "optimizer.learning_rate": {"low": 1e-5, "high": 1e-2, "log": True},
    ... })
    >>> sorted(space.with_ranges({"agent.gamma": None}).ranges)
    ['optimizer.learning_rate']
    """

    algorithm: str
    ranges: Mapping[str, Any]
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "algorithm", algorithm_name(self.algorithm))
        if not isinstance(self.ranges, Mapping) or not self.ranges:
            raise ValueError(
                "Expected `ranges` of at least one setting. "
                f"Received: ranges={self.ranges!r}"
            )
        if not isinstance(self.source, str):
            raise ValueError(
                f"Expected `source` to be a string. Received: {self.source!r}"
            )
        for name, given in self.ranges.items():
            _check(name, given, self._kind(name))
        # A copy: the argument may be changed later.
        copied = json.loads(json.dumps(dict(self.ranges)))
        object.__setattr__(self, "ranges", copied)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SearchSpace":
        """Makes a search space from plain data, such as a JSON file holds.

        Args:
            data: Mapping. See `to_dict`.

        Returns:
            `SearchSpace`.

        Raises:
            ValueError: If a field is missing, unknown or invalid.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for name in data:
            if name not in names:
                raise unknown("a field of a search space", str(name), names)
        if not {"algorithm", "ranges"} <= set(data):
            raise ValueError(
                "Expected a search space with algorithm, ranges. "
                f"Received: {sorted(data)}"
            )
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data, ready for JSON."""
        return {**vars(self), "ranges": dict(self.ranges)}

    def with_ranges(self, ranges: Mapping[str, Any]) -> "SearchSpace":
        """Returns a search space with other ranges.

        Args:
            ranges: Mapping. See the constructor; None for a setting takes
                it out of the search.

        Returns:
            `SearchSpace`.

        Raises:
            ValueError: If a setting is unknown, or a range is invalid.
        """
        for name in ranges:
            self._kind(name)
        merged = {**self.ranges, **ranges}
        kept = {k: value for k, value in merged.items() if value is not None}
        return dataclasses.replace(self, ranges=kept)

    def suggest(self, trial: Trial) -> dict[str, Any]:
        """Draws all settings by a trial of Optuna.

        Args:
            trial: `optuna.Trial`.

        Returns:
            dict of values by the names of settings, for `apply`.
        """
        return {
            name: _suggest(trial, name, given, self._kind(name))
            for name, given in self.ranges.items()
        }

    def apply(self, preset: Preset, values: Mapping[str, Any]) -> Preset:
        """Returns a preset with values of a search.

        A schedule of the preset stays one: the value is its beginning, and
        its end changes in proportion.

        Args:
            preset: `Preset`. A preset of the algorithm.
            values: Mapping. See `suggest`.

        Returns:
            `Preset`.

        Raises:
            ValueError: If the values are not settings of the preset.

        Example:

        >>> space = SearchSpace("PPO", {"agent.clip_ratio": [0.1, 0.2]})
        >>> preset = Preset("PPO", "CartPole-v1", 1000, agent={
        ...     "clip_ratio": {"schedule": "linear", "initial": 0.4,
        ...                    "final": 0.2}})
        >>> space.apply(preset, {"agent.clip_ratio": 0.2}).agent["clip_ratio"]
        {'schedule': 'linear', 'initial': 0.2, 'final': 0.1}
        """
        settings = {}
        for name, value in values.items():
            section, _, key = name.rpartition(".")
            now = getattr(preset, section).get(key) if section else None
            settings[name] = _scaled(now, value)
        if preset.optimizer == {} and any(
            name.startswith("optimizer.") for name in values
        ):
            own = ALGORITHMS[preset.algorithm].optimizer
            settings = {"optimizer": dict(own), **settings}
        return preset.with_settings(settings)

    def _kind(self, name: str) -> Kind:
        """Returns the kind of a setting's values."""
        own = ALGORITHMS[self.algorithm].optimizer["name"]
        given = self.ranges if isinstance(self.ranges, Mapping) else {}
        optimizers = given.get("optimizer.name", [own])
        kinds = settings_of(self.algorithm)
        for each in optimizers if isinstance(optimizers, list) else []:
            kinds = settings_of(self.algorithm, str(each)) | kinds
        known = [
            key
            for key in kinds
            if key == "num_envs" or key.partition(".")[0] in SECTIONS
        ]
        if name not in known:
            raise unknown(f"a setting of {self.algorithm}", name, known)
        return kinds[name]


def find_space(algorithm: str) -> SearchSpace:
    """Returns the search space of an algorithm that comes with the library.

    Args:
        algorithm: str. Its name, in upper or lower case.

    Returns:
        `SearchSpace`.

    Raises:
        ValueError: If there is no such algorithm, or no space for it.

    Example:

    >>> find_space("sac").ranges["dataset.batch_size"]
    [64, 128, 256, 512]
    """
    name = algorithm_name(algorithm)
    if ALGORITHMS[name].offline:
        there = [key for key, each in ALGORITHMS.items() if not each.offline]
        raise ValueError(
            "Expected an algorithm with a search space, one of "
            f"{', '.join(there)}. Received: {name!r}"
        )
    return SearchSpace(name, ALGORITHMS[name].search, _SOURCE)


def read_space(path: str | os.PathLike[str]) -> SearchSpace:
    """Reads a search space from a file.

    Args:
        path: str or path. A file of JSON, with the fields of `SearchSpace`.

    Returns:
        `SearchSpace`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file holds no search space.

    Example:

    >>> import keras_rl2 as rl
    >>> rl.presets.read_space("space.json")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'space.json'
    """
    data = read_object(path)
    try:
        return SearchSpace.from_dict(data)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: {error}") from error


def _check(name: str, given: object, kind: Kind) -> None:
    """Raises an error for a value that is no range of a setting."""
    if isinstance(given, list):
        right = 2 <= len(given) <= _MOST_CHOICES and all(
            kind.accepts(each) for each in given
        )
        texts = [json.dumps(each, sort_keys=True) for each in given]
        right = right and len(set(texts)) == len(texts)
    else:
        right = isinstance(given, Mapping) and _is_interval(given, kind)
    if not right:
        raise ValueError(
            f"Expected `{name}` to be a list of at least two choices, each "
            f"{kind.words}, or two numbers of that kind, "
            '{"low": 1, "high": 10, "log": true}, low below high, and above 0 '
            f"with log. Received: {name}={given!r}"
        )


def _is_interval(given: Mapping[str, Any], kind: Kind) -> bool:
    """Returns whether a dict is an interval of a setting's values."""
    low, high, log = given.get("low"), given.get("high"), given.get("log")
    numbers = all(
        isinstance(each, int | float) and not isinstance(each, bool)
        for each in (low, high)
    )
    return (
        numbers
        and {"low", "high"} <= given.keys() <= {"low", "high", "log"}
        and log in (None, True, False)
        and kind.accepts(low)
        and kind.accepts(high)
        and bool(low < high)  # type: ignore[operator]
        and (not log or bool(low > 0))  # type: ignore[operator]
    )


def _suggest(
    trial: Trial, name: str, given: list[Any] | dict[str, Any], kind: Kind
) -> Any:
    """Draws one setting."""
    if isinstance(given, list):
        # Optuna stores plain values only, and widths are a list.
        texts = {
            json.dumps(each) if isinstance(each, list | dict) else each: each
            for each in given
        }
        return texts[trial.suggest_categorical(name, list(texts))]
    low, high = given["low"], given["high"]
    log = bool(given.get("log"))
    if kind.accepts(low + 0.5):
        return trial.suggest_float(name, low, high, log=log)
    return trial.suggest_int(name, low, high, log=log)


def _scaled(now: Any, value: object) -> Any:
    """Returns a schedule that begins with a value, or the value."""
    if not is_schedule(now) or is_schedule(value) or value is None:
        return value
    if not isinstance(value, int | float) or not now["initial"]:
        return value
    final = now["final"] * (value / now["initial"])
    return {**now, "initial": value, "final": final}
