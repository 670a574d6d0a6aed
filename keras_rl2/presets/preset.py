"""Settings of one algorithm for one environment, and their files."""

import copy
import dataclasses
import difflib
import os
import typing
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.algorithms import algorithm_name
from keras_rl2.saving.atomic_files import read_json

#: Fields that are dicts of settings.
SECTIONS = ("networks", "agent", "optimizer", "dataset")
# Settings of an `OfflineDataset`, those of a `ReplayDataset` among them.
_RECORDED = ("batch_size", "n_step", "updates_per_epoch")


@dataclasses.dataclass(frozen=True)
class Preset:
    """Settings of one algorithm for one environment, as plain data.

    `keras_rl2.Training.from_preset` makes an agent and its dataset of them.

    A setting that changes over the run is a dict, `{"schedule": "linear",
    "initial": 1.0, "final": 0.05, "fraction": 0.1}`, where `fraction` is the
    part of the run after which `final` is reached, by default all of it. That
    goes for `optimizer.learning_rate` and `agent.clip_ratio`, which count
    updates, and for `agent.epsilon` and `agent.exploration`, which count
    environment steps.

    Args:
        algorithm: str. Name of the agent's class, such as `"PPO"`.
        environment: str. Id of the environment.
        total_steps: int. Environment steps of the run; 0 on recorded data.
            Defaults to `0`.
        num_envs: int. Environments that are stepped together. Defaults to `1`.
        env_kwargs: dict. Arguments of the environment, as `gymnasium.make`
            takes them. Defaults to `{}`.
        networks: dict. Arguments of `for_env` for the networks, such as
            `hidden`. Defaults to the algorithm's own.
        agent: dict. Arguments of the agent's constructor. Defaults to the
            algorithm's own.
        optimizer: dict. `name` of a Keras optimizer, `learning_rate` and
            further arguments; empty for the algorithm's own. Defaults to `{}`.
        dataset: dict. Arguments of `RolloutDataset`, `ReplayDataset` or
            `OfflineDataset`, but for environments, workers, data and seed;
            `hindsight` is a dict of the arguments of `keras_rl2.Hindsight`.
            Defaults to `{}`.
        laptop: bool. Whether a laptop is enough for the task. Defaults to
            `False`.
        source: str. Where the settings are from. Defaults to `""`.
        notes: str. Differences from the source. Defaults to `""`.
        updates: int. Updates of a run on recorded data, an `OfflineDataset`,
            which takes no steps; 0 for a run of `total_steps`. Defaults to
            `0`.

    Raises:
        ValueError: If a field is of a wrong type, or neither or both of
            `total_steps` and `updates` are above 0. Names and values of
            settings are checked when an agent is made.

    Example:

    >>> preset = Preset("PPO", "CartPole-v1", 100_000, agent={"gamma": 0.98})
    >>> changed = preset.with_settings({"agent.gamma": 0.9, "num_envs": 4})
    >>> changed.agent, changed.num_envs
    ({'gamma': 0.9}, 4)
    >>> preset.agent
    {'gamma': 0.98}
    """

    algorithm: str
    environment: str
    total_steps: int = 0
    num_envs: int = 1
    env_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    networks: dict[str, Any] = dataclasses.field(default_factory=dict)
    agent: dict[str, Any] = dataclasses.field(default_factory=dict)
    optimizer: dict[str, Any] = dataclasses.field(default_factory=dict)
    dataset: dict[str, Any] = dataclasses.field(default_factory=dict)
    laptop: bool = False
    source: str = ""
    notes: str = ""
    updates: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            # A copy: the argument may be changed later.
            value = _plain(getattr(self, field.name))
            kind: Any = typing.get_origin(field.type) or field.type
            if type(value) is not kind:
                raise ValueError(
                    f"Expected `{field.name}` to be a {kind.__name__}. "
                    f"Received: {field.name}={value!r}"
                )
            object.__setattr__(self, field.name, value)
        algorithm = ALGORITHMS.get(self.algorithm)
        if algorithm is None:
            raise unknown("an algorithm", self.algorithm, ALGORITHMS)
        if (
            (self.total_steps > 0) == (self.updates > 0)
            or min(self.total_steps, self.updates) < 0
            or (self.updates and algorithm.on_policy)
        ):
            raise ValueError(
                "Expected either `total_steps`, or `updates` for recorded "
                "data, from which no on-policy algorithm learns. Received: "
                f"{self.algorithm}, total_steps={self.total_steps}, "
                f"updates={self.updates}"
            )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Preset":
        """Makes a preset from plain data, such as a JSON file holds.

        Args:
            data: Mapping. See `to_dict`; a missing field has its default.

        Raises:
            ValueError: See `Preset`.
            TypeError: If `algorithm` or `environment` is missing.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for name in data:
            if name not in names:
                algorithm = data.get("algorithm", "")
                if algorithm in ALGORITHMS:
                    names += ALGORITHMS[algorithm].search
                raise unknown(f"a setting of {algorithm}", name, names)
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data, ready for JSON.

        Without `env_kwargs` where there are none, as few presets have any,
        and without the one of `total_steps` and `updates` that is 0.
        """
        data = copy.deepcopy(vars(self))
        for name in ("env_kwargs", "total_steps", "updates"):
            if not data[name]:
                del data[name]
        return data

    def with_settings(self, settings: Mapping[str, Any]) -> "Preset":
        """Returns a preset with some settings changed.

        Args:
            settings: Mapping from names, dotted within a section, to values:
                `{"agent.gamma": 0.9, "total_steps": 5000}`. The name of a
                section replaces all of it, `{"optimizer": {"name": "SGD"}}`;
                another `optimizer.name` keeps the learning rate and drops other
                arguments of the optimizer.

        Example:

        >>> preset = Preset("DQN", "CartPole-v1", 50_000)
        >>> preset.with_settings({"gama": 0.9})
        Traceback (most recent call last):
        ...
        ValueError: Expected a setting of DQN, perhaps 'agent.gamma'. ...
        """
        data = self.to_dict()
        for key, value in settings.items():
            section, dot, name = key.partition(".")
            if section in SECTIONS and dot:
                data[section] = {**data[section], name: value}
            else:
                data[key] = value
        name = settings.get("optimizer.name", self.optimizer.get("name"))
        if name != self.optimizer.get("name"):
            data["optimizer"] = {
                key: value
                for key, value in data["optimizer"].items()
                if key == "learning_rate" or f"optimizer.{key}" in settings
            }
        return Preset.from_dict(data)


def _plain(value: object) -> Any:
    """Returns a copy with lists for tuples, as JSON would give it back."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def is_schedule(value: object) -> bool:
    """Returns whether a value is a schedule over a run; see `Preset`."""
    if not isinstance(value, dict) or value.get("schedule") != "linear":
        return False
    return value.keys() - {"fraction"} == {"schedule", "initial", "final"}


def unknown(expected: str, name: str, choices: Iterable[str]) -> ValueError:
    """Makes the error for a name that is none of the choices."""
    choices = sorted(choices)
    section, _, key = name.rpartition(".")
    by_key = {each.lower().rpartition(".")[2]: each for each in choices}
    near = difflib.get_close_matches(key.lower(), by_key)
    hint = f"perhaps {' or '.join(repr(by_key[each]) for each in near)}"
    if not near:
        within = [each for each in choices if each.startswith(f"{section}.")]
        hint = f"one of {', '.join(within or choices)}"
    return ValueError(f"Expected {expected}, {hint}. Received: {name!r}")


_FOLDER = Path(__file__).parent / "data"


def find(algorithm: str, environment: str) -> Preset:
    """Returns the preset of an algorithm for an environment.

    Args:
        algorithm: str. Its name, in upper or lower case.
        environment: str. Id of the environment.

    Raises:
        ValueError: If there is none.

    Example:

    >>> preset = find("ppo", "CartPole-v1")
    >>> preset.algorithm, preset.total_steps, preset.dataset["horizon"]
    ('PPO', 100000, 32)
    """
    algorithm = algorithm_name(algorithm)
    path = _FOLDER / file_name(algorithm, environment)
    if not path.is_file():
        raise _no_preset(algorithm, environment)
    return read(path)


def available(environment: str | None = None) -> list[Preset]:
    """Returns all presets, sorted by environment and algorithm.

    Args:
        environment: str or None. Id of an environment; None for all. Defaults
            to `None`.

    Example:

    >>> [preset.algorithm for preset in available("CartPole-v1")]
    ['A2C', 'BehaviorCloning', 'CQL', 'DQN', 'PPO']
    """
    presets = [read(path) for path in _FOLDER.glob("*.json")]
    return sorted(
        (p for p in presets if environment in (None, p.environment)),
        key=lambda preset: (preset.environment, preset.algorithm),
    )


def file_name(algorithm: str, environment: str) -> str:
    """Returns the name of a preset's file."""
    # An id may have a namespace, `/`, and a module that registers it, `:`.
    name = str(environment).replace("/", "_").replace(":", "_")
    return f"{algorithm.lower()}-{name}.json"


def read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a file of JSON that holds an object."""
    # `arguments.check_path` would import more than the standard library.
    if not isinstance(path, str | os.PathLike):
        raise ValueError(
            f"Expected `path` to be a path. Received: path={path!r}"
        )
    data = read_json(path)
    if not isinstance(data, dict):
        raise ValueError(f"{path}: expected a JSON object")
    return data


def read(path: str | os.PathLike[str]) -> Preset:
    """Reads a preset from a file.

    Use files that you trust: an id of the form `module:id` imports a module
    when its environment is made.

    Args:
        path: str or path. A file of JSON, with the fields of `Preset`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no preset.

    Example:

    >>> import json
    >>> import pathlib
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> preset = find("PPO", "CartPole-v1")
    >>> text = json.dumps(preset.to_dict())
    >>> _ = (folder / "mine.json").write_text(text)
    >>> read(folder / "mine.json") == preset
    True
    """
    data = read_object(path)
    try:
        return Preset.from_dict(data)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: {error}") from error


def _no_preset(algorithm: str, environment: str) -> ValueError:
    """Makes the error for a preset that is not there."""
    presets = available()
    ids = [p.environment for p in presets if p.algorithm == algorithm]
    if not ids:
        names = {preset.algorithm for preset in presets}
        return unknown("an algorithm with presets", algorithm, names)
    expected = f"an environment with a preset of {algorithm}"
    others = [p.algorithm for p in presets if p.environment == environment]
    if others:
        expected += f" (for {environment} there are {', '.join(others)})"
    return unknown(expected, str(environment), ids)


_DEFAULT_LENGTH = 100_000


def default(algorithm: str, environment: str) -> Preset:
    """Returns a preset of the algorithm's own defaults.

    Args:
        algorithm: str. Its name, in upper or lower case.
        environment: str. Id of the environment.

    Returns:
        `Preset` of 100 000 steps.

    Example:

    >>> default("sac", "Pusher-v5").optimizer
    {'name': 'Adam', 'learning_rate': 0.0003}
    """
    name = algorithm_name(algorithm)
    return Preset(
        name,
        environment,
        _DEFAULT_LENGTH,
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
    agent = {k: v for k, v in preset.agent.items() if not is_schedule(v)}
    dataset = {
        name: preset.dataset[name]
        for name in _RECORDED
        if preset.dataset.get(name) not in ("auto", None)
    }
    return dataclasses.replace(
        preset,
        total_steps=0,
        updates=_DEFAULT_LENGTH,
        num_envs=1,
        agent=agent,
        dataset=dataset,
    )
