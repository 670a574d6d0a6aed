"""The Gymnasium spaces that an agent can use."""

import functools
import operator
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.spaces import Box
from gymnasium.spaces import Dict
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiBinary
from gymnasium.spaces import MultiDiscrete
from gymnasium.spaces import Tuple

from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

_BOX_KINDS = "fiub"

#: Key of a Dict observation with the mask of allowed actions.
ACTION_MASK = "action_mask"
#: Name of the input for actions of a critic, beside a tree.
ACTION = "action"
#: Axes of an image: height and width, optionally channels and a stack.
IMAGE_AXES = (2, 3, 4)
#: Smallest side of an image, in pixels.
SMALLEST_IMAGE = 5
# Axes of so many pixels are sides of an image, and no channels.
_MOST_CHANNELS = 36
#: `"channels_first"` or `"channels_last"` where both are images; or None.
IMAGE_FORMAT: ContextVar[str | None] = ContextVar("data_format", default=None)


def space_tree(space: Space[Any]) -> Tree[Space[Any]]:
    """Returns the spaces of the leaves, as a tree of the observation's form.

    Example:

    >>> space_tree(Dict({"on": MultiBinary(2), "at": Tuple([Discrete(3)])}))
    {'at': (Discrete(3),), 'on': MultiBinary(2)}
    """
    if isinstance(space, Dict):
        return {key: space_tree(space[key]) for key in sorted(space, key=str)}
    if isinstance(space, Tuple):
        return tuple(space_tree(each) for each in space)
    return space


def bounds(leaf: Space[Any]) -> tuple[Any, Any]:
    """Returns the lowest and the highest numbers of one array of a space.

    Example:

    >>> bounds(Discrete(4, start=1))
    (1, 4)
    """
    if isinstance(leaf, Box):
        return leaf.low, leaf.high
    if isinstance(leaf, Discrete):
        return int(leaf.start), int(leaf.start + leaf.n - 1)
    if isinstance(leaf, MultiDiscrete):
        return leaf.start, leaf.start + leaf.nvec - 1
    return 0, 1


def action_spec(space: Space[Any]) -> Tree[ArraySpec]:
    """Returns shape and dtype of each array of an action, as declared.

    Example:

    >>> action_spec(Discrete(3))
    ArraySpec(shape=(), dtype='int64')
    """
    return map_leaves(
        lambda leaf: ArraySpec(tuple(leaf.shape or ()), str(leaf.dtype)),
        space_tree(space),
    )


def observation_spec(space: Space[Any]) -> Tree[ArraySpec]:
    """Returns shape and dtype of each array of an observation.

    Example:

    >>> observation_spec(Discrete(3))
    ArraySpec(shape=(), dtype='int32')
    """
    return map_leaves(
        lambda leaf: ArraySpec(
            tuple(leaf.shape or ()), observation_dtype(leaf).name
        ),
        space_tree(space),
    )


def is_masked(space: Space[Any]) -> bool:
    """Returns whether observations contain an action mask."""
    return isinstance(space, Dict) and ACTION_MASK in space.spaces


def allowed_choice(
    mask: npt.NDArray[Any], scores: npt.NDArray[Any]
) -> npt.NDArray[np.int32]:
    """Returns the choice with the highest score of those that are allowed.

    Args:
        mask: `[..., n]`. Above 0 where a choice is allowed.
        scores: `[..., n]`, at least 0.

    Returns:
        `[...]` int32, from 0 on; 0 where nothing is allowed.

    Example:

    >>> allowed_choice(np.array([1, 0, 1]), np.array([0.2, 0.9, 0.4])).item()
    2
    """
    allowed = np.where(mask > 0, scores, -1.0)
    return allowed.argmax(axis=-1).astype(np.int32)


def check_mask_space(space: Space[Any], size: int) -> None:
    """Raises if an action mask does not fit the actions."""
    if isinstance(space, Dict) and is_masked(space):
        mask = space[ACTION_MASK]
        if not size or mask.shape != (size,):
            raise ValueError(
                f"Expected {ACTION_MASK!r} of the observation to have a flag "
                f"for each of the {size} options of the action space, or "
                f"another key where it is no mask. Received: {mask}"
            )


def network_shape(space: Space[Any]) -> tuple[int, ...]:
    """Returns the shape in which networks get one array of an observation.

    Example:

    >>> network_shape(MultiDiscrete([2, 3]))
    (5,)
    """
    if isinstance(space, Discrete):
        return (int(space.n),)
    if isinstance(space, MultiDiscrete):
        return (int(space.nvec.sum()),)
    return tuple(space.shape or (1,))


def network_dtype(space: Space[Any]) -> str:
    """Returns the dtype in which networks get one array of an observation.

    Example:

    >>> network_dtype(Box(0, 255, (84, 84, 4), np.uint8))
    'uint8'
    """
    is_of_bytes = observation_dtype(space) == np.uint8
    stays = is_of_bytes and len(space.shape or ()) in (3, 4)
    return "uint8" if stays else "float32"


def is_image(space: Space[Any]) -> bool:
    """Returns whether observations are images for a convolution.

    They are if they are bytes or bools of at least 5 x 5 pixels, with or
    without channels, or a stack of such; or floats of three or four axes with
    the bounds of brightness: finite, and none below 0.

    Args:
        space: `gymnasium.Space`. The observation space.

    Returns:
        bool.

    Example:

    >>> is_image(Box(0, 255, (84, 84, 4), np.uint8))
    True
    """
    if not isinstance(space, Box):
        return False
    shape = space.shape
    if len(shape) not in IMAGE_AXES or min(sides(shape)) < SMALLEST_IMAGE:
        return False
    if space.dtype in (np.uint8, np.bool_):
        return True
    bounded = np.isfinite(space.high).all() and (space.low >= 0).all()
    return len(shape) > 2 and space.dtype.kind == "f" and bool(bounded)


def sides(shape: Sequence[int]) -> Sequence[int]:
    """Returns the height and width of an image, or of each in a stack."""
    if len(shape) == 2:
        return shape
    if len(shape) == 4:
        return shape[1:3]
    return shape[1:] if channels_first(shape) else shape[:-1]


def channels_first(shape: Sequence[int]) -> bool:
    """Returns whether the first of three axes, the smallest, is channels."""
    if IMAGE_FORMAT.get() and len(shape) == 3 and min(shape) >= SMALLEST_IMAGE:
        return IMAGE_FORMAT.get() == "channels_first"
    is_smallest = len(shape) == 3 and shape[0] < min(shape[1:])
    return is_smallest and not may_be_either(shape)


def may_be_either(shape: Sequence[int]) -> bool:
    """Returns whether the first or the last of three axes may be channels."""
    if len(shape) != 3 or min(shape) < SMALLEST_IMAGE:
        return False
    is_small = max(shape[0], min(shape[1:])) < _MOST_CHANNELS
    return is_small and shape[0] != shape[1] and shape[2] >= min(shape[:2])


def input_name(path: str) -> str:
    """Returns the name of a network's input for an array.

    Example:

    >>> input_name("arm/left.angle")
    'arm_left.angle'
    """
    return path.replace("/", "_")


def check_critic_space(space: Space[Any], further: str = ACTION) -> None:
    """Raises if a critic cannot tell an observation from a further input."""
    if isinstance(space, Dict) and further in space.spaces:
        raise ValueError(
            f"Expected no array of the observation to be called {further!r}, "
            "the name of a further input of a critic: rename the key. "
            f"Received: {describe(space)}"
        )


def check_observation_space(space: object) -> None:
    """Raises if no agent can use an observation space.

    Example:

    >>> from gymnasium.spaces import Text
    >>> check_observation_space(Dict({"at": Discrete(3)}))
    >>> check_observation_space(Dict({"at": Discrete(3), "say": Text(9)}))
    Traceback (most recent call last):
    ValueError: Expected an observation space of Box (with a numeric dtype)...
    """
    _check_leaves(space, "observation", "numeric", _BOX_KINDS, input_name)


def _check_leaves(
    space: object,
    what: str,
    kind: str,
    kinds: str,
    name_of: Callable[[str], str],
) -> None:
    """Raises if a leaf of a space is not supported, or two have one name."""
    names = set()
    for path, leaf in _leaf_spaces(space):
        is_usable = isinstance(
            leaf, Discrete | MultiDiscrete | MultiBinary
        ) or (isinstance(leaf, Box) and leaf.dtype.kind in kinds)
        if not is_usable:
            raise ValueError(
                f"Expected an {what} space of Box (with a {kind} dtype), "
                "Discrete, MultiDiscrete, MultiBinary, or a Dict (with strings "
                "for keys) or Tuple of these that is not empty. "
                "`gymnasium.wrappers.FilterObservation` leaves parts out. "
                f"Received: {f'{path}: ' if path else f'{what}_space='}{leaf}"
            )
        name = name_of(path)
        if name in names:
            raise ValueError(
                "Expected keys by which arrays can be told apart, with `.` "
                f"between nested ones. Received: more than one {name!r}"
            )
        names.add(name)


def _leaf_spaces(space: object) -> Iterator[tuple[str, Any]]:
    """Yields the leaves of a space, supported or not, with their paths."""
    if isinstance(space, Tuple):
        branches = {str(index): each for index, each in enumerate(space)}
    elif isinstance(space, Dict) and all(
        isinstance(key, str) and key for key in space
    ):
        branches = dict(sorted(space.items()))
    else:
        branches = {}
    if not branches:
        yield "", space
    for key, branch in branches.items():
        for path, leaf in _leaf_spaces(branch):
            yield f"{key}.{path}" if path else key, leaf


def check_action_space(space: object) -> None:
    """Raises if no agent can use an action space.

    Example:

    >>> check_action_space(Discrete(2, start=1))
    >>> check_action_space(Box(0, 255, (2,), "uint8"))
    Traceback (most recent call last):
    ValueError: Expected an action space of Box (with a floating dtype)...
    """
    # The names of an exported policy's outputs have no dots.
    name_of = operator.methodcaller("replace", ".", "_")
    _check_leaves(space, "action", "floating", "f", name_of)


def describe(space: Space[Any]) -> str:
    """Describes a space in one short line, for any number of bounds.

    Example:

    >>> describe(Box(-1, 1, (3,)))
    'Box([-1, 1], (3,), float32)'
    >>> describe(Discrete(4, start=1))
    'Discrete(4, start=1)'
    """
    if isinstance(space, Dict):
        inner = ", ".join(f"{k}: {describe(v)}" for k, v in space.items())
        return f"Dict({inner})"
    if isinstance(space, Tuple):
        return f"Tuple({', '.join(map(describe, space))})"
    if isinstance(space, Box) and space.low.size:
        low, high = float(space.low.min()), float(space.high.max())
        return f"Box([{low:g}, {high:g}], {space.shape}, {space.dtype})"
    return str(space)


def same_space(a: Space[Any], b: Space[Any]) -> bool:
    """Returns whether an agent made for one space can be used with another.

    The width of a dtype does not matter, since observations and actions are
    cast: a MuJoCo environment of Gymnasium (float64) is the same as one with
    float32. Its kind does: an image of uint8 is not the same as one of floats.

    Example:

    >>> same_space(Box(-1, 1, (3,), "float32"), Box(-1, 1, (3,), "float64"))
    True
    >>> same_space(Discrete(3), Discrete(3, start=1))
    False
    """
    if type(a) is not type(b) or a.shape != b.shape:
        return False
    if isinstance(a, Dict) and isinstance(b, Dict):
        return set(a) == set(b) and all(same_space(a[k], b[k]) for k in a)
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a) == len(b) and all(map(same_space, a, b))
    if not isinstance(a, Box):
        return all(map(np.array_equal, bounds(a), bounds(b)))
    # With rtol alone, bounds of float32 and float64 agree; zero is exact.
    is_close = functools.partial(np.allclose, rtol=1e-5, atol=0.0)
    same_kind = np.dtype(a.dtype).kind == np.dtype(b.dtype).kind
    return same_kind and all(map(is_close, bounds(a), bounds(b)))


def check_same(owner: str, **pairs: tuple[Space[Any], Space[Any]]) -> None:
    """Raises if spaces differ from those that an object was made for."""
    for what, (ours, theirs) in pairs.items():
        if not same_space(ours, theirs):
            raise ValueError(
                f"Expected an environment with the {what} space that {owner} "
                f"was made for, {describe(ours)}. Received: {describe(theirs)}"
            )


def observation_dtype(space: Space[Any]) -> np.dtype[Any]:
    """Returns the dtype in which observations are stored and passed on.

    Example:

    >>> observation_dtype(Box(0, 255, (84, 84, 4), np.uint8)).name
    'uint8'
    """
    if isinstance(space, Discrete | MultiDiscrete):
        return np.dtype(np.int32)
    if space.dtype == np.float64:
        return np.dtype(np.float32)
    return np.dtype(space.dtype)
