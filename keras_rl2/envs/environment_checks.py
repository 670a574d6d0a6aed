"""Checks of the values that an environment returns against its spaces."""

from collections.abc import Mapping
from collections.abc import Sequence
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

_STEP = "(observation, reward, terminated, truncated, info)"


class EnvironmentChecks:
    """Compares the return values of an environment with its declarations.

    Args:
        name: str. Name of the environment in messages.
        observation_space: `gymnasium.Space` of one environment.
        observation_spec: tree of `ArraySpec` of one observation.
        leading: tuple of ints. Leading dimensions before the shape of one
            observation: `(B,)`, or `()` for a single environment.
    """

    def __init__(
        self,
        name: str,
        observation_space: gymnasium.Space[Any],
        observation_spec: Tree[ArraySpec],
        leading: tuple[int, ...],
    ) -> None:
        self._name = name
        self._space = observation_space
        self._spec = observation_spec
        self._leading = leading

    def check_reset(self, given: object, in_range: bool) -> None:
        """Raises an error unless a reset returned `(observation, info)`.

        Args:
            given: Return value of `reset`.
            in_range: bool. Whether to compare the numbers with their bounds.

        Raises:
            MismatchError: If it is something else, or the observation does not
                fit its space.
        """
        if not isinstance(given, tuple) or len(given) != 2:
            raise MismatchError(
                f"Expected `reset` of {self._name} to return (observation, "
                "info), as Gymnasium's environments do (old Gym's returned the "
                f"observation only). Received: {_words(given)}"
            )
        self.check_observation(given[0])
        if in_range:
            self._check_range(given[0])

    def check_step(self, given: object) -> None:
        """Raises an error if a step or its observation has another form.

        Args:
            given: Return value of `step`.

        Raises:
            MismatchError: If it is no step, or does not fit its space.
        """
        if not isinstance(given, tuple) or len(given) != 5:
            raise MismatchError(
                f"Expected `step` of {self._name} to return {_STEP}, as "
                "Gymnasium's environments do (old Gym's returned four). "
                f"Received: {_words(given)}"
            )
        observation, reward, terminated, truncated, _ = given
        self.check_observation(observation)
        self._check_range(observation)
        numbers = {
            "reward": (reward, "fiub"),
            "terminated": (terminated, "biu"),
            "truncated": (truncated, "biu"),
        }
        for key, (value, kinds) in numbers.items():
            array = np.asarray(value)
            # [1] from one environment passes: many rewards are like that.
            fits = array.shape == self._leading or (
                not self._leading and array.size == 1
            )
            if not fits or array.dtype.kind not in kinds:
                kind = "numbers" if key == "reward" else "bools"
                raise MismatchError(
                    f"Expected `{key}` of shape {self._leading} from "
                    f"{self._name}, {kind}. Received: {key} of shape "
                    f"{array.shape} and dtype {array.dtype}"
                )

    def check_observation(
        self,
        observation: object,
        spec: Tree[ArraySpec] | None = None,
        path: str = "",
    ) -> None:
        """Raises an error if an observation has another form, shape or kind.

        Args:
            observation: A tree of arrays `[*leading, ...]`.
            spec: tree of `ArraySpec`. The branch to compare with. Defaults to
                `None`: the whole one.
            path: str. The keys that lead to the branch. Defaults to `""`.

        Raises:
            MismatchError: If it does not fit its space.
        """
        spec = self._spec if spec is None else spec
        where = f"observation{path}"
        if isinstance(spec, ArraySpec):
            array = np.asarray(observation)
            shape = (*self._leading, *spec.shape)
            if array.shape == shape and np.can_cast(
                array.dtype, spec.dtype, "same_kind"
            ):
                return
            raise MismatchError(
                f"Expected an {where} of shape {shape} and dtype "
                f"{spec.dtype} from {self._name}, whose space is "
                f"{spaces.describe(self._space)}. Received: "
                f"{where} of shape {array.shape} and dtype {array.dtype}"
            )
        kind: type[Any] = tuple if isinstance(spec, tuple) else Mapping
        keys = _keys(spec)
        if not isinstance(observation, kind) or _keys(observation) != keys:
            given = _words(observation)
            if isinstance(observation, kind):
                given = f"{type(observation).__name__} of {_keys(observation)}"
            raise MismatchError(
                f"Expected {where} from {self._name} to be a "
                f"{type(spec).__name__} of {keys}. Received: {given}"
            )
        for key in keys:
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
            low, high, margin = _bounds(bounds[path])
            with np.errstate(invalid="ignore"):
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


def find_mismatch(
    envs: Sequence[gymnasium.Env[Any, Any]], name: str, call: str
) -> MismatchError | None:
    """Returns the first mismatch among environments that are stepped together.

    Gymnasium stacks their return values. The errors that it raises for values
    that cannot be stacked name neither the environment nor the array.

    Args:
        envs: Sequence of `gymnasium.Env`. They are reset, and stepped if `call`
            is `"step"`.
        name: str. Name of all of them together in messages.
        call: str. `"reset"` or `"step"`, after which to stop.

    Returns:
        `MismatchError`, or None if nothing was found.
    """
    for index, env in enumerate(envs):
        kind = type(env.unwrapped).__name__
        try:
            _check_env(env, f"{kind}, environment {index} of {name}", call)
        except MismatchError as found:
            return found
        except Exception:
            # An error of the environment itself, which is no mismatch.
            continue
    return None


def _check_env(env: gymnasium.Env[Any, Any], name: str, call: str) -> None:
    """Resets an environment, and steps it, with checks."""
    space = env.observation_space
    checks = EnvironmentChecks(name, space, spaces.observation_spec(space), ())
    checks.check_reset(env.reset(), in_range=False)
    if call == "step":
        given: Any = env.step(env.action_space.sample())
        checks.check_step(given)
        reward = given[1]
        if np.ndim(reward):
            # It cannot be stacked with others.
            raise MismatchError(
                f"Expected `reward` from {name} to be a number, e.g. "
                f"reward.item(). Received: reward of shape {np.shape(reward)}"
            )


def _bounds(space: Any) -> tuple[Any, Any, Any]:
    """Returns the bounds of one array, and how far outside it may lie."""
    if isinstance(space, gymnasium.spaces.Box):
        low = np.asarray(space.low, np.float64)
        high = np.asarray(space.high, np.float64)
        bounded = np.isfinite(low) & np.isfinite(high)
        # The width between bounds near the largest float overflows.
        with np.errstate(over="ignore"):
            width = np.where(bounded, high, 1.0) - np.where(bounded, low, 0.0)
            margin = _MOST_WIDTHS * np.maximum(width, 1.0)
        return low, high, np.where(bounded, margin, np.inf)
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return 0, 1, 0
    first: Any = space.start
    count: Any = getattr(space, "n", None)
    return first, first + (space.nvec if count is None else count) - 1, 0


def _keys(tree: Tree[Any]) -> list[Any]:
    """Returns keys or positions of a branch."""
    if isinstance(tree, tuple):
        return [*range(len(tree))]
    return sorted(tree, key=str)


def _words(given: object) -> str:
    """Describes a return value for messages."""
    if isinstance(given, tuple):
        kinds = ", ".join(type(each).__name__ for each in given)
        return f"a tuple of {len(given)}, ({kinds})"
    return f"a {type(given).__name__}"
