"""The head of an action space."""

import functools
from typing import Any

import gymnasium
import numpy as np

from keras_rl2.distributions.box_head import BoxHead
from keras_rl2.distributions.composite_head import CompositeHead
from keras_rl2.distributions.discrete_head import DiscreteHead
from keras_rl2.distributions.multi_binary_head import MultiBinaryHead
from keras_rl2.distributions.multi_discrete_head import MultiDiscreteHead
from keras_rl2.distributions.policy_head import PolicyHead


def policy_head(
    space: gymnasium.Space[Any], squash: bool = False, scaled: bool = False
) -> PolicyHead:
    """Makes the head for an action space.

    Args:
        space: `gymnasium.Space` of a single environment: `Discrete`,
            `MultiDiscrete`, `MultiBinary`, `Box` of floating dtype, or a `Dict`
            or `Tuple` of such.
        squash: bool. Of a `Box`: whether actions come from the unit box, by
            tanh (see `BoxHead`). No other space knows it. Defaults to `False`.
        scaled: bool. Of a `Box`: whether actions are in units of half the
            range of finite bounds. Defaults to `False`.

    Returns:
        `PolicyHead`.

    Raises:
        ValueError: If the space is none of these, or a `Box` is to be squashed
            into bounds that are not finite.

    Example:

    >>> policy_head(gymnasium.spaces.Discrete(4)).parameter_sizes
    (4,)
    """
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return DiscreteHead(int(space.n), int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        return MultiDiscreteHead(space.nvec.tolist(), space.start.tolist())
    if isinstance(space, spaces.MultiBinary):
        return MultiBinaryHead(space.shape)
    if isinstance(space, spaces.Box) and np.issubdtype(
        space.dtype, np.floating
    ):
        return BoxHead(
            space.low,
            space.high,
            space.shape,
            str(space.dtype),
            squash,
            scaled,
        )
    part = functools.partial(policy_head, squash=squash, scaled=scaled)
    if isinstance(space, spaces.Dict) and len(space):
        return CompositeHead({key: part(each) for key, each in space.items()})
    if isinstance(space, spaces.Tuple) and len(space):
        return CompositeHead([*map(part, space)])
    raise ValueError(
        "Expected a Discrete, MultiDiscrete, MultiBinary or floating-point Box "
        "action space, or a Dict or Tuple of such. "
        f"Received: {space}"
    )
