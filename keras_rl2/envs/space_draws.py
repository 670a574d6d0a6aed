"""What environments draw from their spaces, as many draw their goals."""

import copy
from collections.abc import Iterator
from typing import Any

from gymnasium import Space
from gymnasium.vector import VectorEnv

# Those of a class may be of all its environments.
_OF_CLASSES = ("action_space", "observation_space")
_BATCHED = (*_OF_CLASSES, "_action_space", "_observation_space")


def of(env: Any) -> dict[str, Space[Any]]:
    """Returns the spaces of an environment, by attribute.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`. What it is wrapped
            around is left out, and so are spaces of several environments
            together, which nobody seeds.
    """
    together = _BATCHED if isinstance(env, VectorEnv) else ()
    of_class = {name: getattr(type(env), name, None) for name in _OF_CLASSES}
    return {
        name: value
        for name, value in {**of_class, **vars(env)}.items()
        if isinstance(value, Space) and name not in together
    }


def read(space: Space[Any]) -> list[Any]:
    """Returns where the random numbers of a space are, and of those within it.

    Args:
        space: `gymnasium.Space`.

    Returns:
        list of plain data, copied; None of a space that nobody has drawn from
        or seeded.
    """
    return [
        copy.deepcopy(each.np_random.bit_generator.state)
        # `np_random` makes one, which would differ from process to process.
        if vars(each).get("_np_random") is not None
        else None
        for each in _all(space)
    ]


def write(space: Space[Any], states: list[Any]) -> None:
    """Has a space go on with its random numbers.

    Args:
        space: `gymnasium.Space`.
        states: list, as returned by `read`.

    Raises:
        ValueError: If they are those of another space.
    """
    for each, state in zip(_all(space), states, strict=True):
        if state is not None:
            each.np_random.bit_generator.state = state


def _all(space: Space[Any]) -> Iterator[Space[Any]]:
    """Yields a space, and those that it is made of."""
    yield space
    for value in vars(space).values():
        if isinstance(value, dict):
            value = value.values()
        elif not isinstance(value, list | tuple):
            value = (value,)
        for each in value:
            if isinstance(each, Space):
                yield from _all(each)
