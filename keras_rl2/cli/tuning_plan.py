"""What all trials of a study have in common."""

import dataclasses
from typing import Any

from keras_rl2.presets import Preset
from keras_rl2.presets import SearchSpace


@dataclasses.dataclass(frozen=True)
class TuningPlan:
    """What is tried, and how it is judged.

    Attributes:
        preset: `Preset`. What trials begin with.
        space: `SearchSpace`. What they vary.
        seeds: list of int. Each trial is trained with all of them.
        reports: int. Evaluations of a run.
    """

    preset: Preset
    space: SearchSpace
    seeds: list[int]
    reports: int

    def to_dict(self) -> dict[str, Any]:
        """Returns all of it as plain data: of equal plans, trials compare."""
        return {
            "preset": self.preset.to_dict(),
            "ranges": dict(self.space.ranges),
            "seeds": self.seeds,
            "reports": self.reports,
        }

    def headline(self) -> str:
        """Says in one line what is tried."""
        preset, seeds = self.preset, len(self.seeds)
        return (
            f"{preset.algorithm} on {preset.environment}, "
            f"{len(self.space.ranges)} settings, {seeds} "
            f"seed{'s' if seeds > 1 else ''} of {preset.total_steps:,} steps"
        )

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Returns where another plan differs.

        Args:
            other: dict, as of `to_dict`.

        Returns:
            list of str: dotted names.
        """
        return _differences(self.to_dict(), other)


def without_long_rounds(
    space: SearchSpace, preset: Preset, reports: int
) -> SearchSpace:
    """Leaves out horizons whose rounds are longer than a part of the run.

    Trials end with the round in which their steps are reached: one of a long
    round would be trained for longer, and would win by that.

    Args:
        space: `SearchSpace`.
        preset: `Preset`. What trials begin with.
        reports: int. Parts of a run.

    Returns:
        `SearchSpace`; the same where no rollouts are searched.

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


def _differences(one: Any, other: Any, name: str = "") -> list[str]:
    """Returns the names of what is not the same."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return [] if one == other else [name]
    found = []
    for key in sorted({*one, *other}):
        below = f"{name}.{key}" if name else key
        found += _differences(one.get(key), other.get(key), below)
    return found
