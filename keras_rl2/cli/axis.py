"""What the length of a training is counted in."""

from typing import Any
from typing import NamedTuple

from keras_rl2.presets import Preset


class Axis(NamedTuple):
    """Environment steps, or updates where none are taken.

    Attributes:
        name: str. Of the agent's count, and of the column in `progress.csv`.
        words: str. The same, for people.
        option: str. What asks for a number of them.

    Example:

    >>> axis_of(Preset("CQL", "CartPole-v1", updates=5000)).words
    'updates'
    """

    name: str
    words: str
    option: str

    def count(self, agent: Any) -> int:
        """Returns how many there have been in the life of an agent.

        Args:
            agent: `keras_rl2.Agent`.

        Returns:
            int.
        """
        return int(getattr(agent, self.name))

    def length(self, preset: Preset) -> int:
        """Returns how many there are in the run of a preset.

        Args:
            preset: `Preset`. One that has this axis.

        Returns:
            int.
        """
        return preset.updates or preset.total_steps


STEPS = Axis("env_steps", "steps", "--steps")
UPDATES = Axis("updates", "updates", "--updates")


def axis_of(preset: Preset) -> Axis:
    """Returns what the run of a preset is counted in.

    Args:
        preset: `Preset`.

    Returns:
        `Axis`.
    """
    return UPDATES if preset.updates else STEPS
