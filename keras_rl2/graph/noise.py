"""The noise of actions, drawn in the graph."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers

# This is added to the value of an action that is taken in any case.
_FORCED = 1e30
# This is half of the distance between two of 2^24 numbers.
_HALF_STEP = 2.0**-25
_KINDS = ("epsilon_greedy", "gumbel", "logistic", "normal", "zeros")


def can_draw(parts: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether noise can be drawn in the graph.

    Noise that is correlated over time, and noise of a user's own kind, cannot.

    Example:

    >>> can_draw([{"kind": "gumbel", "size": 2}])
    True
    """
    return all(part["kind"] in _KINDS for part in parts)


def noise_inputs(parts: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Returns the numbers of the noise that change from round to round.

    Returns:
        `[P]` float32, a number for each part: the present ε, or 0.
    """
    return np.array([part.get("epsilon", 0.0) for part in parts], np.float32)


def draw_noise(
    parts: Sequence[Mapping[str, Any]],
    inputs: Tensor,
    seed: Tensor,
    shape: tuple[int, ...],
) -> Any:
    """Draws the noise of many actions at once.

    Args:
        parts: Sequence of dict. Those of a policy's noise, see `can_draw`.
        inputs: `[P]` float32. See `noise_inputs`.
        seed: `[2]` uint32. The only source of random numbers.
        shape: tuple of int. Leading axes, such as `(T, B)`.

    Returns:
        `[*shape, n]` float32, the parts side by side.

    Example:

    >>> seed = ops.convert_to_tensor([0, 1], "uint32")
    >>> parts = [{"kind": "normal", "size": 3}]
    >>> draw_noise(parts, noise_inputs(parts), seed, (8, 2)).shape
    TensorShape([8, 2, 3])
    """
    seeds = ops.unstack(random_numbers.split(seed, len(parts)))
    drawn = [
        _draw_part(part, inputs[k], each, shape)
        for k, (part, each) in enumerate(zip(parts, seeds, strict=True))
    ]
    return ops.concatenate(drawn, axis=-1)


def _draw_part(
    part: Mapping[str, Any],
    epsilon: Tensor,
    seed: Tensor,
    shape: tuple[int, ...],
) -> Any:
    """Draws the noise of one part."""
    hold = part.get("hold", 1) or shape[0]
    if hold > 1:
        few = (-(-shape[0] // hold), *shape[1:])
        drawn = _draw_part({**part, "hold": 1}, epsilon, seed, few)
        return ops.repeat(drawn, hold, axis=0)[: shape[0]]
    kind, whole = part["kind"], (*shape, part["size"])
    if kind == "epsilon_greedy":
        return _epsilon_greedy(part, epsilon, seed, shape)
    if kind == "zeros":
        return ops.zeros(whole, "float32")
    if kind == "normal":
        return random_numbers.normal(seed, whole)
    drawn = _uniform(seed, whole)
    if kind == "gumbel":
        return -ops.log(-ops.log(drawn))
    # The kind is "logistic".
    return ops.log(drawn) - ops.log1p(-drawn)


def _uniform(seed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Draws numbers above 0 and below 1."""
    drawn = random_numbers.uniform(seed, shape)
    return drawn * (1.0 - 2.0 * _HALF_STEP) + _HALF_STEP


def _epsilon_greedy(
    part: Mapping[str, Any],
    epsilon: Tensor,
    seed: Tensor,
    shape: tuple[int, ...],
) -> Any:
    """See `EpsilonNoise`."""
    seeds = ops.unstack(random_numbers.split(seed, 2))
    explores = random_numbers.uniform(seeds[0], shape) < epsilon
    explores = ops.cast(explores, "float32")[..., None]
    if part["ranked"]:
        drawn = _uniform(seeds[1], (*shape, part["size"]))
        return explores * drawn * _FORCED
    action = random_numbers.integers(seeds[1], shape, 0, part["size"])
    return ops.one_hot(action, part["size"]) * explores * _FORCED
