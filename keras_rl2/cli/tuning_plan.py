"""The settings that all trials of a study share."""

import argparse
import dataclasses
from typing import Any

from keras_rl2 import presets
from keras_rl2.cli import checks
from keras_rl2.cli import environments
from keras_rl2.cli import random_rollout
from keras_rl2.cli.argument_types import asked_settings
from keras_rl2.cli.argument_types import find_preset
from keras_rl2.cli.errors import CommandError
from keras_rl2.presets import ALGORITHMS
from keras_rl2.presets import Preset
from keras_rl2.presets import SearchSpace
from keras_rl2.presets.loading import algorithm_name

_NORMALIZE = "networks.normalize_observations"
# The same number as `doctor` plays.
_RANDOM_STEPS = 1000


@dataclasses.dataclass(frozen=True)
class TuningPlan:
    """The settings that are searched, and how a trial is evaluated.

    Attributes:
        preset: `Preset`. The settings that are not searched.
        space: `SearchSpace`. The ranges of the searched settings.
        seeds: list of int. Each trial is trained with all of them.
        reports: int. Evaluations of a run.
    """

    preset: Preset
    space: SearchSpace
    seeds: list[int]
    reports: int

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> "TuningPlan":
        """Makes the plan that a command line asks for.

        Args:
            arguments: argparse.Namespace. The arguments of `keras-rl2 tune`.

        Returns:
            `TuningPlan`.

        Raises:
            CommandError: If options contradict each other.
            ValueError: If a setting or a range is invalid.
        """
        name = algorithm_name(arguments.algorithm)
        if ALGORITHMS[name].offline:
            raise CommandError(
                f"tune takes environment steps, and {name} learns from "
                "recorded data"
            )
        space = _searched(name, arguments)
        preset = find_preset(name, arguments)
        if preset.updates:
            raise CommandError(
                f"--preset {arguments.preset} is for recorded data"
            )
        preset = preset.with_settings(asked_settings(preset, arguments))
        space = _with_normalization(space, preset, arguments)
        if arguments.reports > preset.total_steps:
            raise CommandError(
                f"--reports {arguments.reports} are more than the steps of a "
                f"run, {preset.total_steps}"
            )
        wide = space
        space = without_long_rounds(wide, preset, arguments.reports)
        if space != wide:
            print(
                "dataset.horizon: no rounds longer than a report, "
                f"{preset.total_steps // arguments.reports:,} steps"
            )
        seeds = range(arguments.seed, arguments.seed + arguments.seeds)
        return cls(preset, space, list(seeds), arguments.reports)

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as plain data."""
        return {
            "preset": self.preset.to_dict(),
            "ranges": dict(self.space.ranges),
            "seeds": self.seeds,
            "reports": self.reports,
        }

    def headline(self) -> str:
        """Returns the plan in one line."""
        preset, seeds = self.preset, len(self.seeds)
        return (
            f"{preset.algorithm} on {preset.environment}, "
            f"{len(self.space.ranges)} settings, {seeds} "
            f"seed{'s' if seeds > 1 else ''} of {preset.total_steps:,} steps"
        )

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Compares with another plan: trials of equal plans are comparable.

        Args:
            other: dict, as returned by `to_dict`.

        Returns:
            list of str: dotted names of the settings that differ.
        """
        return _differences(self.to_dict(), other)


def without_long_rounds(
    space: SearchSpace, preset: Preset, reports: int
) -> SearchSpace:
    """Leaves out horizons with rounds longer than a part of the run.

    A trial ends with the round in which its steps are reached: with long rounds
    it would have an advantage by a longer training.

    Args:
        space: `SearchSpace`.
        preset: `Preset`. The settings that are not searched.
        reports: int. Parts of a run.

    Returns:
        `SearchSpace`; the same if no horizon is searched.

    Example:

    >>> space = SearchSpace("PPO", {"dataset.horizon": [8, 64, 512],
    ...                             "agent.gamma": [0.9, 0.99]})
    >>> preset = Preset("PPO", "CartPole-v1", 4000, num_envs=4)
    >>> without_long_rounds(space, preset, 10).ranges["dataset.horizon"]
    [8, 64]
    """
    horizon = space.ranges.get("dataset.horizon")
    if horizon is None:
        return space
    envs = space.ranges.get("num_envs", [preset.num_envs])
    most_envs = envs["high"] if isinstance(envs, dict) else max(envs)
    longest = max(preset.total_steps // reports // most_envs, 1)
    fitting: Any
    if isinstance(horizon, list):
        fitting = [each for each in horizon if each <= longest]
        fitting = fitting if len(fitting) > 1 else None
    else:
        fitting = {**horizon, "high": min(horizon["high"], longest)}
        fitting = fitting if fitting["high"] > fitting["low"] else None
    return space.with_ranges({"dataset.horizon": fitting})


def _searched(name: str, arguments: argparse.Namespace) -> SearchSpace:
    """Returns the search space, without the settings that have a value."""
    if arguments.space is None:
        space = presets.find_space(name)
    else:
        space = presets.read_space(arguments.space)
    if space.algorithm != name:
        raise CommandError(
            f"--space {arguments.space} is one of {space.algorithm}, not of "
            f"{name}"
        )
    settings, search = dict(arguments.settings), dict(arguments.search)
    if arguments.envs is not None:
        settings["num_envs"] = arguments.envs
    if twice := sorted(settings.keys() & search.keys()):
        raise CommandError(
            f"{', '.join(twice)}: expected either a value, by --set or --envs, "
            "or a range, by --search"
        )
    fixed = {
        key: None
        for key in space.ranges
        if key in settings or key.partition(".")[0] in settings
    }
    return space.with_ranges({**fixed, **search})


def _with_normalization(
    space: SearchSpace, preset: Preset, arguments: argparse.Namespace
) -> SearchSpace:
    """Searches normalization too, where `doctor` would advise it."""
    given = {**dict(arguments.settings), **dict(arguments.search)}
    if arguments.space is not None or {_NORMALIZE, "networks"} & given.keys():
        return space
    with environments.make(preset.environment, preset.env_kwargs) as env:
        if not checks.check_spaces(env.observation_space, env.action_space).ok:
            # The agent raises the error, which names the part at fault.
            return space
        rollout = random_rollout.play(env, _RANDOM_STEPS, seed=0)
        found = checks.check_observations(rollout, env.observation_space)
    wrong = [
        each for each in found if each.name == checks.SCALE and not each.ok
    ]
    if not wrong:
        return space
    print(f"{_NORMALIZE}: searched too: {wrong[0].text}")
    return space.with_ranges({_NORMALIZE: [False, True]})


def _differences(one: object, other: object, name: str = "") -> list[str]:
    """Returns the dotted names of unequal values in nested dicts."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return [] if one == other else [name]
    found = []
    for key in sorted({*one, *other}):
        below = f"{name}.{key}" if name else key
        found += _differences(one.get(key), other.get(key), below)
    return found
