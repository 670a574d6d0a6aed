"""The interface of policy heads."""

import abc
from collections.abc import Sequence
from typing import Any
from typing import Self

import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import check_rank
from keras_rl2.distributions.distribution import Distribution
from keras_rl2.distributions.distribution import forbid
from keras_rl2.exploration import PolicyNoise
from keras_rl2.spaces.action_format import ActionFormat


class PolicyHead(abc.ABC):
    """Base of all heads; made by `policy_head` or from plain numbers.

    Attributes:
        parameter_sizes: tuple of int. Accepted widths of the network's last
            axis.
        log_std_size: int. Width of a log standard deviation that does not
            depend on the observation; 0 where the distribution has none.
        noise: `PolicyNoise`. Noise by which its distributions are sampled.
        shape: tuple of int. Shape of the environment's action.
        start: int or array of int. The environment's numbers of the first
            choices; 0 for actions that are no choices.
        action_shape: tuple of int. Shape of the policy's own action, as
            stored.
        action_dtype: str. Its dtype.
        changes_action: bool. Whether `to_environment` changes any action of
            the policy.
        mask_size: int. Width of an action mask, one flag for each thing that
            can be chosen; 0 where nothing can be forbidden.

    Example:

    >>> import gymnasium
    >>> from keras_rl2.distributions import policy_head
    >>> head = policy_head(gymnasium.spaces.Discrete(3))
    >>> isinstance(head, PolicyHead), head.parameter_sizes
    (True, (3,))
    """

    parameter_sizes: tuple[int, ...]
    log_std_size: int = 0
    mask_size: int = 0
    shape: tuple[int, ...] = ()
    start: Any = 0
    noise: PolicyNoise
    action_shape: tuple[int, ...]
    action_dtype: str = "int32"
    changes_action: bool

    def __call__(
        self, parameters: Tensor, log_std: Tensor | None = None
    ) -> Distribution:
        """Makes the distribution from the network's output.

        Args:
            parameters: `[B, P]` float. P is one of `parameter_sizes`.
            log_std: `[A]` float if the network's output is the mean only, or
                None. Defaults to `None`.
        """
        check_rank(2, parameters=parameters)
        width = np.shape(parameters)[-1]
        if width not in self.parameter_sizes:
            raise ValueError(
                "Expected the network's output to be of width "
                f"{' or '.join(map(str, self.parameter_sizes))} for "
                f"{type(self).__name__}. Received: width {width}"
            )
        if log_std is not None and not self.log_std_size:
            raise ValueError(
                f"Expected no log_std for {type(self).__name__}. "
                f"Received: log_std={log_std}"
            )
        return self._distribution(ops.convert_to_tensor(parameters), log_std)

    @abc.abstractmethod
    def _distribution(
        self, parameters: Tensor, log_std: Tensor | None
    ) -> Distribution:
        """Makes the distribution from a tensor that fits the head."""

    def to_environment(self, action: Tensor) -> Any:
        """Turns the policy's actions into the environment's.

        Args:
            action: `[B, *action_shape]` of `action_dtype`.

        Returns:
            `[B, *space.shape]` int32 or float32.
        """
        action = ops.cast(action, self.action_dtype)
        if np.any(self.start):
            action = action + np.ravel(self.start).astype("int32")
        if self.shape == self.action_shape:
            return action
        return ops.reshape(action, (-1, *self.shape))

    def from_environment(self, action: Any) -> Tensor:
        """Turns the environment's actions into the policy's own.

        The inverse of `to_environment`, for actions from other sources, such as
        a user's trajectory or a dataset.

        Args:
            action: `[B, *space.shape]`. Members of the action space.

        Returns:
            `[B, *action_shape]` of `action_dtype`.
        """
        # [B, *shape] -> [B, K]
        action = ops.reshape(
            ops.cast(action, self.action_dtype), (-1, *self.action_shape)
        )
        if np.any(self.start):
            action = action - np.ravel(self.start).astype("int32")
        return action

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Where each choice that has to be made stands in an action mask."""
        return ((0, self.mask_size),) if self.mask_size else ()

    @property
    def format(self) -> ActionFormat:
        """The form of the policy's own actions, as plain data."""
        return ActionFormat(
            tuple(self.action_shape), self.action_dtype, self.choices
        )

    def forbid(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Masks forbidden actions in the network's output.

        Args:
            parameters: `[B, P]` float. The network's output, as for a call.
            mask: `[B, mask_size]`. 1 for an allowed choice, else 0.

        Returns:
            `[B, P]` float32, for the head.
        """
        return forbid(parameters, mask)

    def random_action(
        self,
        generator: np.random.Generator,
        leading_shape: Sequence[int],
        mask: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Draws actions uniformly over the space, whatever the policy is.

        Off-policy agents fill their replay so before they learn. The actions
        are the policy's own, as stored: `to_environment` turns them into
        actions of the space.

        Args:
            generator: `np.random.Generator`.
            leading_shape: Sequence of int. For example, `(B,)`, or `(T, B)` for
                a whole rollout.
            mask: `[*leading_shape, mask_size]` or None. 1 for allowed choices.
                Defaults to `None`: all.

        Returns:
            `[*leading_shape, *action_shape]` of `action_dtype`.
        """
        shape = (*leading_shape, *self.action_shape)
        return self._draw(generator, shape, mask)

    @abc.abstractmethod
    def _draw(
        self, generator: np.random.Generator, shape: tuple[int, ...], mask: Any
    ) -> npt.NDArray[Any]:
        """Draws actions of a shape; see `random_action`."""

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes a head from its config."""
        return cls(**config)
