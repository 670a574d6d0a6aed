"""What an agent is, in a few lines: algorithm, spaces, hyper-parameters."""

import shutil
import textwrap
from collections.abc import Iterator
from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent

# Of `get_config`: said elsewhere, or of no interest.
_SAID = frozenset({"name", "dtype", "observation_space", "action_space"})
_WIDEST = 80


def describe(agent: "Agent", line_length: int | None = None) -> str:
    """Describes an agent, for what stands above the table of its layers.

    Args:
        agent: `keras_rl2.Agent`. Need not know its spaces yet.
        line_length: int or None. Where lines are broken; None for the width
            of the terminal, at most 80. Defaults to `None`.

    Returns:
        str, of several lines.
    """
    width = line_length or min(shutil.get_terminal_size().columns, _WIDEST)
    unknown = "not known before `fit`"
    rows = {
        "Agent": _algorithm(agent),
        "Observation space": agent.observation_space or unknown,
        "Action space": agent.action_space or unknown,
        "Hyper-parameters": ", ".join(_hyper_parameters(agent)),
        "Optimizer": ", ".join(_optimizers(agent)) or "none before `compile`",
        "Environment steps": f"{agent.env_steps:,}",
    }
    return "\n".join(
        textwrap.fill(
            f"{name}: {' '.join(str(text).split())}",
            max(width, 20),
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, text in rows.items()
    )


def _algorithm(agent: "Agent") -> str:
    """Returns the name of the class, and how it learns."""
    learns = "on-policy" if agent.on_policy else "off-policy"
    return f"{type(agent).__name__} ({learns})"


def _hyper_parameters(agent: "Agent") -> Iterator[str]:
    """Yields the arguments of the constructor, but for networks."""
    for name, value in agent.get_config().items():
        if name not in _SAID and name not in agent.given_networks():
            yield f"{name}={_short(value)}"


def _optimizers(agent: "Agent") -> Iterator[str]:
    """Yields each optimizer with its learning rate."""
    given = agent.compile_arguments
    for part in (
        ()
        if given is None
        else (
            given.optimizer,
            given.critic_optimizer,
        )
    ):
        if isinstance(part, keras.optimizers.Optimizer):
            rate = part.get_config()["learning_rate"]
            name = type(part).__name__
            yield f"{name} (learning_rate={_short(rate)})"


def _short(value: Any) -> str:
    """Writes a setting; what was serialised as `Name(argument=value)`."""
    if isinstance(value, Mapping) and "class_name" in value:
        settings = value.get("config") or {}
        given = ", ".join(
            f"{key}={_short(each)}"
            for key, each in settings.items()
            if key != "name"
        )
        return f"{value['class_name']}({given})"
    if isinstance(value, float | np.floating):
        # Of an optimizer they are float32, with all their digits.
        return f"{float(value):.6g}"
    return repr(value)
