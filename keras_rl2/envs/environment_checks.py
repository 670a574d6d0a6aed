"""What an environment gives, beside what it declares."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from keras_rl2.envs.mismatch_error import MismatchError
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import named_leaves

# Widths of a space, or ones, that an observation may lie outside of it: real
# environments overshoot a little, and a picture of 0 to 255 in a space of 0
# to 1 is a mistake.
_MOST_WIDTHS = 10.0

_STEP = "(observation, reward, terminated, truncated, info)"


class EnvironmentChecks:
    """Compares what one kind of environment gives with what it declares.

    Args:
        name: str. What the environment is called.
        observation_space: `gymnasium.Space` of one environment.
        observation_spec: tree of `ArraySpec` of one observation.
        leading: tuple of ints. What stands before the shape of one
            observation: `(B,)`, or `()` for a single environment.
    """

    def __init__(
        self,
        name: str,
        observation_space: gymnasium.Space[Any],
        observation_spec: Any,
        leading: tuple[int, ...],
    ) -> None:
        self._name = name
        self._space = observation_space
        self._spec = observation_spec
        self._leading = leading

    def check_reset(self, given: Any) -> None:
        """Refuses what is not `(observation, info)`.

        Args:
            given: What `reset` returned.

        Raises:
            MismatchError: If it is something else.
        """
        if not isinstance(given, tuple) or len(given) != 2:
            raise MismatchError(
                f"Expected `reset` of {self._name} to return (observation, "
                "info), as Gymnasium's environments do (old Gym's returned the "
                f"observation only). Received: {_words(given)}"
            )

    def check_step(self, given: Any) -> None:
        """Refuses what is no step, or has an observation that does not fit.

        Args:
            given: What `step` returned.

        Raises:
            MismatchError: If something is wrong with it.
        """
        if not isinstance(given, tuple) or len(given) != 5:
            raise MismatchError(
                f"Expected `step` of {self._name} to return {_STEP}, as "
                "Gymnasium's environments do (old Gym's returned four). "
                f"Received: {_words(given)}"
            )
        observation, reward, terminated, truncated, _ = given
        self.check_observation(observation)
        self.check_range(observation)
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

    def check_observation(self, observation: Any) -> None:
        """Refuses an observation of another form, shape or kind.

        Args:
            observation: A tree of arrays `[*leading, ...]`.

        Raises:
            MismatchError: If it does not fit its space.
        """
        self._check_branch(observation, self._spec, "")

    def check_range(self, observation: Any) -> None:
        """Refuses numbers that lie far outside of their space.

        Args:
            observation: A tree of arrays `[*leading, ...]`, which fits.

        Raises:
            MismatchError: If there are such numbers. What is not finite is
                left to others.
        """
        bounds = dict(named_leaves(spaces.space_tree(self._space)))
        for path, array in named_leaves(observation):
            self._check_bounds(path, np.asarray(array), bounds[path])

    def _check_bounds(self, path: str, array: np.ndarray, space: Any) -> None:
        """Refuses numbers of one array that lie far outside."""
        low, high, margin = _bounds(space)
        with np.errstate(invalid="ignore"):
            outside = (array < low - margin) | (array > high + margin)
        outside = outside & np.isfinite(array)
        if outside.any():
            where = tuple(int(index) for index in np.argwhere(outside)[0])
            name = f"observation {path}" if path else "observation"
            raise MismatchError(
                f"Expected an {name} from {self._name} in its space, {space}. "
                f"Received: {array[where]} at {where}. If the environment is "
                "right, its `observation_space` is to say so"
            )

    def _check_branch(self, received: Any, expected: Any, path: str) -> None:
        """Refuses what does not fit below a path."""
        where = f"observation{path}"
        if isinstance(expected, ArraySpec):
            self._check_array(received, expected, where)
            return
        kind: type[Any] = tuple if isinstance(expected, tuple) else Mapping
        keys = _keys(expected)
        if not isinstance(received, kind) or _keys(received) != keys:
            given = _words(received)
            if isinstance(received, kind):
                given = f"{type(received).__name__} of {_keys(received)}"
            raise MismatchError(
                f"Expected {where} from {self._name} to be a "
                f"{type(expected).__name__} of {keys}. Received: {given}"
            )
        for key in keys:
            self._check_branch(received[key], expected[key], f"{path}[{key!r}]")

    def _check_array(
        self, received: Any, expected: ArraySpec, where: str
    ) -> None:
        """Refuses an array of another shape or kind."""
        array = np.asarray(received)
        shape = (*self._leading, *expected.shape)
        if array.shape == shape and np.can_cast(
            array.dtype, expected.dtype, "same_kind"
        ):
            return
        raise MismatchError(
            f"Expected an {where} of shape {shape} and dtype "
            f"{expected.dtype} from {self._name}, whose space is "
            f"{spaces.describe(self._space)}. Received: "
            f"{where} of shape {array.shape} and dtype {array.dtype}"
        )


def find_mismatch(
    env: gymnasium.Env[Any, Any], name: str, call: str
) -> MismatchError | None:
    """Says what one of several environments gives otherwise than it declares.

    Gymnasium stacks what they give, and what it raises of that names neither
    the environment nor the array.

    Args:
        env: `gymnasium.Env`. Is reset, and stepped where that is asked for.
        name: str. What it is called.
        call: str. `"reset"` or `"step"`, after which to stop.

    Returns:
        `MismatchError`, or None if nothing was found.
    """
    space = env.observation_space
    checks = EnvironmentChecks(name, space, spaces.observation_spec(space), ())
    given: Any = None
    try:
        given = env.reset()
        checks.check_reset(given)
        checks.check_observation(given[0])
        if call == "step":
            given = env.step(env.action_space.sample())
            checks.check_step(given)
            _check_one_number(name, given[1])
    except MismatchError as found:
        return found
    except Exception:
        # Something else than what is being asked about.
        return None
    return None


def _check_one_number(name: str, reward: Any) -> None:
    """Refuses a reward that cannot stand in a row with others."""
    if np.ndim(reward):
        raise MismatchError(
            f"Expected `reward` from {name} to be a number, reward.item() "
            f"say. Received: reward of shape {np.shape(reward)}"
        )


def _bounds(space: Any) -> tuple[Any, Any, Any]:
    """Returns the bounds of one array, and how far outside it may lie."""
    if isinstance(space, gymnasium.spaces.Box):
        low = np.asarray(space.low, np.float64)
        high = np.asarray(space.high, np.float64)
        bounded = np.isfinite(low) & np.isfinite(high)
        # Bounds near the largest float have no width that is one.
        with np.errstate(over="ignore"):
            width = np.where(bounded, high, 1.0) - np.where(bounded, low, 0.0)
            margin = _MOST_WIDTHS * np.maximum(width, 1.0)
        return low, high, np.where(bounded, margin, np.inf)
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return 0, 1, 0
    first: Any = space.start
    count: Any = getattr(space, "n", None)
    return first, first + (space.nvec if count is None else count) - 1, 0


def _keys(tree: Any) -> list[Any]:
    """Returns keys or positions of a branch."""
    if isinstance(tree, tuple):
        return [*range(len(tree))]
    return sorted(tree, key=str)


def _words(given: Any) -> str:
    """Says for people what was returned."""
    if isinstance(given, tuple):
        kinds = ", ".join(type(each).__name__ for each in given)
        return f"a tuple of {len(given)}, ({kinds})"
    return f"a {type(given).__name__}"
