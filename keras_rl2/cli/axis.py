"""The unit of a training's length."""

from typing import NamedTuple

from keras_rl2.presets import Preset


class Axis(NamedTuple):
    """Environment steps, or updates if no steps are taken.

    Attributes:
        name: str. The agent's counter, and the column in `progress.csv`.
        words: str. The unit in messages.
        option: str. The option that sets their number.

    Example:

    >>> axis_of(Preset("CQL", "CartPole-v1", updates=5000)).words
    'updates'
    """

    name: str
    words: str
    option: str

    def count(self, agent: object) -> int:
        """Returns the count of an agent.

        Args:
            agent: `keras_rl2.Agent`.

        Returns:
            int.
        """
        return int(getattr(agent, self.name))

    def length(self, preset: Preset) -> int:
        """Returns the length of a preset's run.

        Args:
            preset: `Preset`. A preset with this axis.

        Returns:
            int.
        """
        return preset.updates or preset.total_steps


STEPS = Axis("env_steps", "steps", "--steps")
UPDATES = Axis("updates", "updates", "--updates")


def axis_of(preset: Preset) -> Axis:
    """Returns the unit of a preset's run.

    Args:
        preset: `Preset`.

    Returns:
        `Axis`.
    """
    return UPDATES if preset.updates else STEPS
