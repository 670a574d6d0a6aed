"""The head of an action space, which may have several kinds of actions."""

import functools
import itertools
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import gymnasium
import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions.box_head import BoxHead
from keras_rl2.distributions.composite import Composite
from keras_rl2.distributions.composite import cut
from keras_rl2.distributions.discrete_head import DiscreteHead
from keras_rl2.distributions.multi_binary_head import MultiBinaryHead
from keras_rl2.distributions.multi_discrete_head import MultiDiscreteHead
from keras_rl2.distributions.policy_head import PolicyHead
from keras_rl2.exploration import JoinedNoise
from keras_rl2.spaces.supported import bounds


@keras.saving.register_keras_serializable(package="keras_rl2")
class CompositeHead(PolicyHead):
    """Dict and Tuple actions: parts that are drawn independently.

    The policy's own action is the parts' actions side by side, `[B, K]`
    floats; the network's output and the noise are laid out alike, in the order
    of sorted keys. An action mask has the flags of those parts that can be
    masked.

    Args:
        heads: dict from keys to `PolicyHead`, or sequence of them for a Tuple;
            not empty. A part may be composite itself.

    Raises:
        ValueError: If there is no part.

    Example:

    >>> from keras_rl2.distributions import BoxHead, DiscreteHead
    >>> head = CompositeHead(
    ...     {"gear": DiscreteHead(3), "wheel": BoxHead(-1.0, 1.0, (1,))})
    >>> head.parameter_sizes, head.log_std_size
    ((4, 5), 1)
    >>> action = head([[0.0, 9.0, 0.0, 0.5]], log_std=[0.0]).mode()
    >>> {k: v.numpy().tolist() for k, v in head.to_environment(action).items()}
    {'gear': [1], 'wheel': [[0.5]]}
    """

    action_dtype = "float32"
    changes_action = True

    def __init__(
        self, heads: Mapping[str, PolicyHead] | Sequence[PolicyHead]
    ) -> None:
        if not heads:
            raise ValueError(f"Expected at least one part. Received: {heads}")
        self._keys: list[str] | None = None
        self.heads: list[PolicyHead]
        if isinstance(heads, Mapping):
            self._keys = sorted(heads)
            self.heads = [heads[key] for key in self._keys]
        else:
            self.heads = [*heads]
        narrow = sum(head.parameter_sizes[0] for head in self.heads)
        wide = sum(head.parameter_sizes[-1] for head in self.heads)
        self.parameter_sizes = (narrow, wide) if wide > narrow else (narrow,)
        self._log_std_sizes = [head.log_std_size for head in self.heads]
        self._mask_sizes = [head.mask_size for head in self.heads]
        self.noise = JoinedNoise([head.noise for head in self.heads])
        self._action_sizes = [
            math.prod(head.action_shape) for head in self.heads
        ]
        self.log_std_size = sum(self._log_std_sizes)
        self.mask_size = sum(self._mask_sizes)
        self.action_shape = (sum(self._action_sizes),)

    def _distribution(
        self, parameters: Tensor, log_std: Tensor | None
    ) -> Composite:
        """Returns a `Composite` of the parts' distributions."""
        log_stds: list[Any] = [None] * len(self.heads)
        if log_std is not None:
            log_stds = cut(ops.convert_to_tensor(log_std), self._log_std_sizes)
        pieces = self._pieces(parameters)
        parts = [
            head(piece, each if head.log_std_size else None)
            for head, piece, each in self._each(pieces, log_stds)
        ]
        noise_sizes = [head.noise.size for head in self.heads]
        return Composite(parts, self._action_sizes, noise_sizes)

    def _pieces(self, parameters: Tensor) -> list[Tensor]:
        """Cuts the network's output into those of the parts."""
        which = 0 if parameters.shape[-1] == self.parameter_sizes[0] else -1
        return cut(
            parameters, [head.parameter_sizes[which] for head in self.heads]
        )

    def _each(self, *values: Any) -> Iterator[Any]:
        """Yields each part with its own of some values."""
        return zip(self.heads, *values, strict=True)

    def forbid(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Masks forbidden actions in the parts that can be masked."""
        pieces = self._pieces(parameters)
        masks = cut(mask, self._mask_sizes)
        allowed = [
            head.forbid(piece, flags)
            if head.mask_size
            else ops.cast(piece, "float32")
            for head, piece, flags in self._each(pieces, masks)
        ]
        return ops.concatenate(allowed, axis=-1)

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Where each choice of any part stands in the common mask."""
        starts = itertools.accumulate(self._mask_sizes[:-1], initial=0)
        return tuple(
            (first + start, first + end)
            for head, first in self._each(starts)
            for start, end in head.choices
        )

    def to_environment(self, action: Tensor) -> Any:
        """Returns a dict or tuple of the parts' actions."""
        parts = []
        for head, piece in self._each(cut(action, self._action_sizes)):
            if not head.action_shape:
                piece = piece[..., 0]  # [B, 1] -> [B]
            if head.action_dtype != "float32":
                # In eight bits a choice is not exact, and a cast cuts off.
                piece = ops.cast(piece + 0.5, head.action_dtype)
            parts.append(head.to_environment(piece))
        return self._tree(parts)

    def _tree(self, parts: list[Any]) -> Any:
        """Returns a dict or tuple of the parts, as the space has."""
        if self._keys is None:
            return tuple(parts)
        return dict(zip(self._keys, parts, strict=True))

    def from_environment(self, action: Any) -> Tensor:
        """Lays the parts' actions side by side: `[B, K]` float32."""
        if self._keys is not None:
            action = [action[key] for key in self._keys]
        columns = [
            ops.reshape(
                ops.cast(head.from_environment(part), "float32"), (-1, size)
            )
            for head, part, size in self._each(action, self._action_sizes)
        ]
        return ops.concatenate(columns, axis=-1)

    def _draw(
        self, generator: np.random.Generator, shape: tuple[int, ...], mask: Any
    ) -> npt.NDArray[Any]:
        """Draws each part: `[..., K]` float32."""
        leading = shape[:-1]
        masks: list[Any] = [None] * len(self.heads)
        if mask is not None:
            masks = cut(mask, self._mask_sizes)
        drawn = [
            head.random_action(
                generator, leading, flags if head.mask_size else None
            ).reshape(*leading, size)
            for head, flags, size in self._each(masks, self._action_sizes)
        ]
        return np.concatenate(drawn, axis=-1).astype("float32")

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        heads = self._tree(self.heads)
        return {"heads": keras.saving.serialize_keras_object(heads)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "CompositeHead":
        """Makes a head from its config."""
        return cls(keras.saving.deserialize_keras_object(config["heads"]))


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
    if isinstance(space, spaces.Box) and space.dtype.kind == "f":
        kind = str(space.dtype)
        return BoxHead(*bounds(space), space.shape, kind, squash, scaled)
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
