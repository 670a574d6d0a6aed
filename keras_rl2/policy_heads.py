"""Policy heads: between a network's output and an environment's actions.

A head belongs to an action space. It says how wide the network's output has
to be, makes the distribution from it, draws the noise that sampling needs, and
turns the policy's own action into what the environment takes.

`B` is the batch, `P` the width of the network's output, `A` the number of
action dimensions, `K` that of independent choices.
"""

import abc
import math
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Self

import gymnasium
import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.distributions import Bernoulli
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import Distribution
from keras_rl2.distributions import MultiCategorical
from keras_rl2.distributions import SquashedGaussian
from keras_rl2.distributions import noise
from keras_rl2.shapes import Tensor
from keras_rl2.shapes import check_rank
from keras_rl2.shapes import check_shape
from keras_rl2.shapes import static_shape

_MIN_LOG_STD = -20.0
_MAX_LOG_STD = 2.0


class PolicyHead(abc.ABC):
    """What every head offers; made by `policy_head` or from plain numbers.

    Attributes:
        parameter_sizes: Accepted widths of the network's last axis.
        log_std_size: Width of a log standard deviation that does not depend
            on the observation; 0 where the distribution has none.
        noise_shape: Shape of the noise for one action.
        action_shape: Shape of the policy's own action, as stored.
        action_dtype: Its dtype.
        changes_action: False where `to_environment` is the identity.
    """

    parameter_sizes: tuple[int, ...]
    log_std_size: int = 0
    noise_shape: tuple[int, ...]
    action_shape: tuple[int, ...]
    action_dtype: str = "int32"
    changes_action: bool
    _noise: Callable[[np.random.Generator, tuple[int, ...]], noise.Noise] = (
        staticmethod(noise.gumbel)
    )

    @abc.abstractmethod
    def __call__(
        self, parameters: Tensor, log_std: Tensor | None = None
    ) -> Distribution:
        """Make the distribution from the network's output.

        Args:
            parameters: `[B, P]`, P one of `parameter_sizes`.
            log_std: `[A]`, where the network gives the mean only. Default
                `None`.

        Returns:
            The distribution over the policy's own actions.

        Raises:
            ValueError: If the width is not accepted, or `log_std` is missing
                or not wanted.
        """

    @abc.abstractmethod
    def to_environment(self, action: Tensor) -> Tensor:
        """Turn the policy's actions into the environment's.

        Args:
            action: `[B, *action_shape]`.

        Returns:
            `[B, *space.shape]`, int32 or float32.
        """

    def draw_noise(
        self, generator: np.random.Generator, leading_shape: Sequence[int]
    ) -> noise.Noise:
        """Draw the noise for many actions at once.

        Args:
            generator: NumPy generator; the only source of chance in acting.
            leading_shape: E.g. `(B,)`, or `(T, B)` for a whole rollout.

        Returns:
            `[*leading_shape, *noise_shape]` float32, finite.
        """
        shape = (*leading_shape, *self.noise_shape)
        return type(self)._noise(generator, shape)

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make a head from what `get_config` returned."""
        return cls(**config)

    def _check(self, parameters: Tensor, log_std: Tensor | None) -> None:
        """Refuse a network's output that does not fit the head."""
        check_rank(2, parameters=parameters)
        width = (static_shape(parameters) or (None, None))[-1]
        if width is not None and width not in self.parameter_sizes:
            raise ValueError(
                "expected the network's output to be of width "
                f"{' or '.join(map(str, self.parameter_sizes))} for "
                f"{type(self).__name__}. Received: width {width}"
            )
        if log_std is not None and not self.log_std_size:
            raise ValueError(
                f"expected no log_std for {type(self).__name__}. "
                f"Received: log_std={log_std}"
            )


@keras.saving.register_keras_serializable(package="keras_rl2")
class DiscreteHead(PolicyHead):
    """One of n actions.

    Args:
        n: Number of actions, at least 1.
        start: Number of the environment's first action. Default 0.

    Raises:
        ValueError: If `n` is less than 1.

    Example:
    >>> head = DiscreteHead(3, start=1)
    >>> action = head([[0.0, 5.0, 0.0]]).mode()
    >>> action.numpy().tolist(), head.to_environment(action).numpy().tolist()
    ([1], [2])
    """

    def __init__(self, n: int, start: int = 0) -> None:
        if n < 1:
            raise ValueError(f"expected n of 1 or more. Received: n={n}")
        self.n = int(n)
        self.start = int(start)
        self.parameter_sizes = (self.n,)
        self.noise_shape = (self.n,)
        self.action_shape = ()
        self.changes_action = self.start != 0

    def __call__(
        self, parameters: Tensor, log_std: Tensor | None = None
    ) -> Categorical:
        """Return a `Categorical` over n actions from logits `[B, n]`."""
        self._check(parameters, log_std)
        return Categorical(parameters)

    def to_environment(self, action: Tensor) -> Tensor:
        """Add `start`: `[B]` int32."""
        action = ops.cast(action, "int32")
        return action + self.start if self.changes_action else action

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON."""
        return {"n": self.n, "start": self.start}


@keras.saving.register_keras_serializable(package="keras_rl2")
class MultiDiscreteHead(PolicyHead):
    """Several independent choices.

    Args:
        nvec: Number of actions of each choice, nested as the environment's
            action is; the policy's own action is flat, `[B, K]`.
        start: Number of the first action of each choice, nested alike.
            Default `None`: 0.

    Raises:
        ValueError: If a number is less than 1, or the shapes differ.

    Example:
    >>> head = MultiDiscreteHead([2, 3])
    >>> head([[0.0, 1.0, 5.0, 0.0, 0.0]]).mode().numpy().tolist()
    [[1, 0]]
    """

    def __init__(
        self, nvec: Sequence[Any], start: Sequence[Any] | None = None
    ) -> None:
        self.nvec = np.asarray(nvec, dtype="int32")
        self.start = np.asarray(
            np.zeros_like(self.nvec) if start is None else start, dtype="int32"
        )
        if self.nvec.size == 0 or self.nvec.min() < 1:
            raise ValueError(
                f"expected nvec of 1 or more each. Received: nvec={nvec}"
            )
        check_shape(self.nvec.shape, start=self.start)
        self.parameter_sizes = (int(self.nvec.sum()),)
        self.noise_shape = self.parameter_sizes
        self.action_shape = (self.nvec.size,)
        self.changes_action = self.nvec.ndim != 1 or bool(self.start.any())

    def __call__(
        self, parameters: Tensor, log_std: Tensor | None = None
    ) -> MultiCategorical:
        """Return a `MultiCategorical` from logits `[B, sum(nvec)]`."""
        self._check(parameters, log_std)
        return MultiCategorical(parameters, self.nvec.ravel().tolist())

    def to_environment(self, action: Tensor) -> Tensor:
        """Add `start`, in the space's shape: `[B, *nvec.shape]` int32."""
        action = ops.cast(action, "int32")
        if self.start.any():
            action = action + ops.convert_to_tensor(self.start.ravel())
        return _reshape(action, self.nvec.shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON."""
        return {"nvec": self.nvec.tolist(), "start": self.start.tolist()}


@keras.saving.register_keras_serializable(package="keras_rl2")
class MultiBinaryHead(PolicyHead):
    """Independent switches.

    Args:
        shape: Shape of the environment's action, or the number of switches.

    Raises:
        ValueError: If there is no switch.

    Example:
    >>> head = MultiBinaryHead(2)
    >>> head([[-1.0, 1.0]]).mode().numpy().tolist()
    [[0, 1]]
    """

    _noise = staticmethod(noise.logistic)

    def __init__(self, shape: int | Sequence[int]) -> None:
        self.shape = tuple(int(size) for size in np.atleast_1d(shape))
        switches = math.prod(self.shape)
        if switches < 1:
            raise ValueError(
                f"expected at least one switch. Received: shape={shape}"
            )
        self.parameter_sizes = (switches,)
        self.noise_shape = (switches,)
        self.action_shape = (switches,)
        self.changes_action = len(self.shape) != 1

    def __call__(
        self, parameters: Tensor, log_std: Tensor | None = None
    ) -> Bernoulli:
        """Return a `Bernoulli` from logits `[B, K]`."""
        self._check(parameters, log_std)
        return Bernoulli(parameters)

    def to_environment(self, action: Tensor) -> Tensor:
        """Return the action in the space's shape: `[B, *shape]` int32."""
        return _reshape(ops.cast(action, "int32"), self.shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON."""
        return {"shape": list(self.shape)}


@keras.saving.register_keras_serializable(package="keras_rl2")
class BoxHead(PolicyHead):
    """Continuous actions from a Gaussian.

    The network gives the mean, `[B, A]`, and `log_std` comes separately; or it
    gives both side by side, `[B, 2A]`, and the log standard deviation is
    clipped to -20 ... 2. The policy's own action is flat, `[B, A]`.

    Args:
        low: Lower bounds, a number or nested as the action; `None` or -inf
            where there is none.
        high: Upper bounds, alike.
        shape: Shape of the environment's action.
        dtype: Floating dtype of the space. Default "float32".
        squash: Squash the Gaussian into the bounds by tanh, as SAC does. By
            default (False) actions are clipped on their way to the
            environment only, as PPO does.

    Raises:
        ValueError: If the dtype is not floating, the bounds do not fit the
            shape, or `squash` is asked for without finite bounds.

    Example:
    >>> head = BoxHead(-1.0, 1.0, shape=(2,))
    >>> action = head([[0.5, 3.0]], log_std=[0.0, 0.0]).mode()
    >>> head.to_environment(action).numpy().tolist()
    [[0.5, 1.0]]
    """

    action_dtype = "float32"
    _noise = staticmethod(noise.normal)

    def __init__(
        self,
        low: Any,
        high: Any,
        shape: Sequence[int],
        dtype: str = "float32",
        squash: bool = False,
    ) -> None:
        if not np.issubdtype(np.dtype(dtype), np.floating):
            raise ValueError(
                f"expected a Box of floating dtype. Received: dtype={dtype}"
            )
        self.shape = tuple(int(size) for size in shape)
        self.dtype = str(dtype)
        self.squash = bool(squash)
        self.low = _bounds(low, -math.inf, self.shape)
        self.high = _bounds(high, math.inf, self.shape)
        size = math.prod(self.shape)
        self.parameter_sizes = (size, 2 * size)
        self.log_std_size = size
        self.noise_shape = (size,)
        self.action_shape = (size,)
        bounded = np.isfinite(self.low) | np.isfinite(self.high)
        self._bounded = bool(bounded.any())
        self.changes_action = self._bounded or len(self.shape) != 1
        if self.squash and not np.isfinite(self.high - self.low).all():
            raise ValueError(
                "expected finite bounds to squash into. "
                f"Received: low={low}, high={high}"
            )

    def __call__(
        self, parameters: Tensor, log_std: Tensor | None = None
    ) -> DiagonalGaussian | SquashedGaussian:
        """Return a Gaussian from `[B, A]` with `log_std`, or `[B, 2A]`."""
        self._check(parameters, log_std)
        parameters = ops.convert_to_tensor(parameters)
        size = self.log_std_size
        if (parameters.shape[-1] == size) == (log_std is None):
            raise ValueError(
                f"expected a log_std beside parameters of width {size} and "
                f"none beside width {2 * size}. Received: parameters of width "
                f"{parameters.shape[-1]}, log_std={log_std}"
            )
        if log_std is None:
            parameters, log_std = ops.split(parameters, 2, axis=-1)
            log_std = ops.clip(log_std, _MIN_LOG_STD, _MAX_LOG_STD)
        else:
            check_shape((size,), log_std=log_std)
        if self.squash:
            return SquashedGaussian(
                parameters, log_std, self.low.ravel(), self.high.ravel()
            )
        return DiagonalGaussian(parameters, log_std)

    def to_environment(self, action: Tensor) -> Tensor:
        """Clip to the bounds: `[B, *shape]` float32."""
        action = ops.cast(action, "float32")
        if self._bounded:
            low = self.low.ravel().astype("float32")
            high = self.high.ravel().astype("float32")
            action = ops.minimum(ops.maximum(action, low), high)
        return _reshape(action, self.shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON."""
        return {
            "low": _plain(self.low),
            "high": _plain(self.high),
            "shape": list(self.shape),
            "dtype": self.dtype,
            "squash": self.squash,
        }


def policy_head(space: gymnasium.Space[Any]) -> PolicyHead:
    """Make the head for an action space.

    Args:
        space: `Discrete`, `MultiDiscrete`, `MultiBinary`, or `Box` of floating
            dtype, from `gymnasium.spaces`; of a single environment.

    Returns:
        The head; for a `Box` one that does not squash.

    Raises:
        ValueError: If the space is none of these.

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
        return BoxHead(space.low, space.high, space.shape, str(space.dtype))
    raise ValueError(
        "expected a Discrete, MultiDiscrete, MultiBinary or floating-point Box "
        f"action space. Received: {space}"
    )


def _reshape(action: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Give flat actions [B, K] the shape that the environment has."""
    return action if len(shape) == 1 else ops.reshape(action, (-1, *shape))


def _bounds(
    bound: Any, unbounded: float, shape: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """Take bounds as a float64 array of the space's shape."""
    array = np.asarray(bound, dtype=object)
    array = np.where(array == None, unbounded, array)  # noqa: E711
    if array.shape not in ((), shape):
        raise ValueError(
            f"expected a bound that is a number or of shape {list(shape)}. "
            f"Received: {bound}"
        )
    return np.broadcast_to(array.astype("float64"), shape)


def _plain(bounds: npt.NDArray[np.float64]) -> Any:
    """Write bounds as JSON, which has no infinity: a number where all agree."""
    plain = bounds.astype(object)
    plain[~np.isfinite(bounds)] = None
    if bounds.size and (bounds == bounds.flat[0]).all():
        return plain.flat[0]
    return plain.tolist()
