"""Checks of the values that an environment returns against its spaces."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from keras_rl2.envs.errors import MismatchError
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import named_leaves

# How far an observation may lie outside of its space, in widths of the space
# and at least in ones: real environments overshoot a little, but a picture of
# 0 to 255 in a space of 0 to 1 is a mistake.
_MOST_WIDTHS = 10.0


class EnvironmentChecks:
    """Compares the return values of an environment with its declarations.

    Each method raises a `MismatchError` if something does not fit.

    Args:
        name: str. Name of the environment in messages.
        observation_space: `gymnasium.Space` of one environment.
        leading: tuple of ints. Leading dimensions before the shape of one
            observation: `(B,)`, or `()` for a single environment.
    """

    def __init__(
        self,
        name: str,
        observation_space: gymnasium.Space[Any],
        leading: tuple[int, ...],
    ) -> None:
        self._name = name
        self._space = observation_space
        self._spec = spaces.observation_spec(observation_space)
        self._leading = leading

    def check_reset(self, given: object, in_range: bool) -> None:
        """Checks that a reset returned `(observation, info)`.

        Args:
            given: Return value of `reset`.
            in_range: bool. Whether to compare the numbers with their bounds.
        """
        if not isinstance(given, tuple) or len(given) != 2:
            raise MismatchError(
                f"Expected (observation, info) from `reset` of {self._name}. "
                f"Received: {_words(given)}"
            )
        self.check_observation(given[0])
        if in_range:
            self._check_range(given[0])

    def check_step(self, given: object) -> None:
        """Checks a step and its observation.

        Args:
            given: Return value of `step`.
        """
        if not isinstance(given, tuple) or len(given) != 5:
            raise MismatchError(
                "Expected five values, (observation, reward, terminated, "
                f"truncated, info), from `step` of {self._name}. "
                f"Received: {_words(given)}"
            )
        self.check_observation(given[0])
        self._check_range(given[0])
        # Kinds of the dtypes of numbers, and of bools.
        for key, value, kinds in (
            ("reward", given[1], "fiub"),
            ("terminated", given[2], "biu"),
            ("truncated", given[3], "biu"),
        ):
            array = np.asarray(value)
            # [1] from one environment passes: many rewards are like that.
            fits = array.shape == self._leading or (
                not self._leading and array.size == 1
            )
            if not fits or array.dtype.kind not in kinds:
                raise MismatchError(
                    f"Expected `{key}` of shape {self._leading} from "
                    f"{self._name}, numbers or bools. Received: {key} of shape "
                    f"{array.shape} and dtype {array.dtype}"
                )

    def check_observation(
        self,
        observation: object,
        spec: Tree[ArraySpec] | None = None,
        path: str = "",
    ) -> None:
        """Checks the form of an observation, its shapes and kinds of dtypes.

        Args:
            observation: A tree of arrays `[*leading, ...]`.
            spec: tree of `ArraySpec`. The branch to compare with. Defaults to
                `None`: the whole one.
            path: str. The keys that lead to the branch. Defaults to `""`.
        """
        spec = self._spec if spec is None else spec
        if isinstance(spec, ArraySpec):
            array = np.asarray(observation)
            shape = (*self._leading, *spec.shape)
            if array.shape != shape or not np.can_cast(
                array.dtype, spec.dtype, "same_kind"
            ):
                raise MismatchError(
                    f"Expected an observation{path} of shape {shape} and "
                    f"dtype {spec.dtype} from {self._name}, whose space is "
                    f"{spaces.describe(self._space)}. Received: shape "
                    f"{array.shape} and dtype {array.dtype}"
                )
            return
        kind: type[Any] = tuple if isinstance(spec, tuple) else Mapping
        if not isinstance(observation, kind) or _keys(observation) != _keys(
            spec
        ):
            raise MismatchError(
                f"Expected observation{path} from {self._name} to be "
                f"{_words(spec)}. Received: {_words(observation)}"
            )
        for key in _keys(spec):
            self.check_observation(
                observation[key], spec[key], f"{path}[{key!r}]"
            )

    def _check_range(self, observation: object) -> None:
        """Raises an error if numbers lie far outside of their space.

        Numbers that are not finite pass: they are checked elsewhere.
        """
        bounds = dict(named_leaves(spaces.space_tree(self._space)))
        for path, leaf in named_leaves(observation):
            array = np.asarray(leaf)
            # The width between bounds near the largest float overflows.
            with np.errstate(invalid="ignore", over="ignore"):
                low, high, margin = _bounds(bounds[path])
                outside = (array < low - margin) | (array > high + margin)
            outside = outside & np.isfinite(array)
            if outside.any():
                where = tuple(int(index) for index in np.argwhere(outside)[0])
                name = f"observation {path}" if path else "observation"
                raise MismatchError(
                    f"Expected an {name} from {self._name} in its space, "
                    f"{bounds[path]}. Received: {array[where]} at {where}. If "
                    "the environment is right, correct its `observation_space`"
                )


def _bounds(space: Any) -> tuple[Any, Any, Any]:
    """Returns the bounds of one array, and how far outside it may lie."""
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return 0, 1, 0
    if isinstance(space, gymnasium.spaces.Discrete):
        return space.start, space.start + space.n - 1, 0
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1, 0
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    margin = _MOST_WIDTHS * np.maximum(high - low, 1.0)
    is_bounded = np.isfinite(low) & np.isfinite(high)
    return low, high, np.where(is_bounded, margin, np.inf)


def _keys(tree: Any) -> list[Any]:
    """Returns keys or positions of a branch."""
    if isinstance(tree, tuple):
        return [*range(len(tree))]
    return sorted(tree, key=str)


def _words(given: object) -> str:
    """Describes a value for messages."""
    kind = type(given).__name__
    if isinstance(given, tuple):
        kinds = ", ".join(type(each).__name__ for each in given)
        return f"a tuple of {len(given)}, ({kinds})"
    if isinstance(given, Mapping):
        return f"a {kind} of {_keys(given)}"
    return f"a {kind}"
