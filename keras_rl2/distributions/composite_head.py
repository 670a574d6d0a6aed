"""Several kinds of actions at once."""

import itertools
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions.composite import Composite
from keras_rl2.distributions.policy_head import PolicyHead


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
        self._keys = sorted(heads) if isinstance(heads, Mapping) else None
        self.heads = (
            [heads[key] for key in self._keys]
            if isinstance(heads, Mapping) and self._keys is not None
            else [*heads]
        )
        narrow = sum(head.parameter_sizes[0] for head in self.heads)
        wide = sum(head.parameter_sizes[-1] for head in self.heads)
        self.parameter_sizes = (narrow, wide) if wide > narrow else (narrow,)
        self.log_std_size = sum(head.log_std_size for head in self.heads)
        self.mask_size = sum(head.mask_size for head in self.heads)
        self._noise_sizes = [head.noise_shape[0] for head in self.heads]
        self.noise_shape = (sum(self._noise_sizes),)
        # () -> 1
        self._action_sizes = [
            int(np.prod(head.action_shape)) for head in self.heads
        ]
        self.action_shape = (sum(self._action_sizes),)

    def __call__(
        self, parameters: Tensor, log_std: Tensor | None = None
    ) -> Composite:
        """Returns a `Composite` of the parts' distributions."""
        self._check(parameters, log_std)
        parameters = ops.convert_to_tensor(parameters)
        which = 0 if log_std is not None or not self.log_std_size else -1
        widths = [head.parameter_sizes[which] for head in self.heads]
        stds = (
            [None] * len(self.heads)
            if log_std is None
            else self._own_log_stds(ops.convert_to_tensor(log_std))
        )
        pieces = _cut(parameters, widths)
        return Composite(
            [
                head(piece, own)
                for head, piece, own in zip(
                    self.heads, pieces, stds, strict=True
                )
            ],
            self._action_sizes,
            self._noise_sizes,
            [not head.action_shape for head in self.heads],
            [head.action_dtype for head in self.heads],
        )

    def _own_log_stds(self, log_std: Tensor) -> list[Tensor | None]:
        """Cuts a log standard deviation `[A]` into those of the parts."""
        pieces = _cut(log_std, [head.log_std_size for head in self.heads])
        return [
            piece if head.log_std_size else None
            for head, piece in zip(self.heads, pieces, strict=True)
        ]

    def forbid(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Masks forbidden actions in the parts that can be masked."""
        width = int(parameters.shape[-1])
        which = 0 if width == self.parameter_sizes[0] else -1
        widths = [head.parameter_sizes[which] for head in self.heads]
        masks = _cut(mask, [head.mask_size for head in self.heads])
        pieces = [
            head.forbid(piece, own)
            if head.mask_size
            else ops.cast(piece, "float32")
            for head, piece, own in zip(
                self.heads, _cut(parameters, widths), masks, strict=True
            )
        ]
        return ops.concatenate(pieces, axis=-1)

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Where each choice of any part stands in the common mask."""
        sizes = [head.mask_size for head in self.heads]
        starts = itertools.accumulate(sizes, initial=0)
        return tuple(
            (first + start, first + end)
            for first, head in zip(starts, self.heads, strict=False)
            for start, end in head.choices
        )

    def to_environment(self, action: Tensor) -> Any:
        """Returns a dict or tuple of the parts' actions."""
        parts = []
        for head, piece in zip(
            self.heads, _cut(action, self._action_sizes), strict=True
        ):
            if not head.action_shape:
                piece = piece[..., 0]  # [B, 1] -> [B]
            if head.action_dtype != "float32":
                # In eight bits a choice is not exact, and a cast cuts off.
                piece = ops.cast(piece + 0.5, head.action_dtype)
            parts.append(head.to_environment(piece))
        if self._keys is None:
            return tuple(parts)
        return dict(zip(self._keys, parts, strict=True))

    def from_environment(self, action: Any) -> Tensor:
        """Lays the parts' actions side by side: `[B, K]` float32."""
        given = (
            action
            if self._keys is None
            else [action[key] for key in self._keys]
        )
        columns = [
            ops.reshape(
                ops.cast(head.from_environment(part), "float32"), (-1, size)
            )
            for head, part, size in zip(
                self.heads, given, self._action_sizes, strict=True
            )
        ]
        return ops.concatenate(columns, axis=-1)

    @property
    def noise_parts(self) -> list[dict[str, Any]]:
        """The noise distribution of each part."""
        return [each for head in self.heads for each in head.noise_parts]

    def draw_noise(
        self, generator: np.random.Generator, leading_shape: Sequence[int]
    ) -> npt.NDArray[np.float32]:
        """Draws the noise of all parts, concatenated."""
        drawn = [
            head.draw_noise(generator, leading_shape) for head in self.heads
        ]
        return np.concatenate(drawn, axis=-1)

    def random_action(
        self,
        generator: np.random.Generator,
        leading_shape: Sequence[int],
        mask: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Draws each part: `[..., K]` float32."""
        masks: list[Any] = [None] * len(self.heads)
        if mask is not None:
            masks = _cut(mask, [head.mask_size for head in self.heads])
        drawn = [
            head.random_action(
                generator, leading_shape, own if head.mask_size else None
            ).reshape(*leading_shape, size)
            for head, own, size in zip(
                self.heads, masks, self._action_sizes, strict=True
            )
        ]
        return np.concatenate(drawn, axis=-1).astype("float32")

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        heads = [keras.saving.serialize_keras_object(h) for h in self.heads]
        if self._keys is None:
            return {"heads": heads}
        return {"heads": dict(zip(self._keys, heads, strict=True))}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "CompositeHead":
        """Makes a head from its config."""
        read = keras.saving.deserialize_keras_object
        heads = config["heads"]
        if isinstance(heads, Mapping):
            return cls({key: read(each) for key, each in heads.items()})
        return cls([read(each) for each in heads])


def _cut(array: Tensor, sizes: Sequence[int]) -> list[Any]:
    """Cuts the last axis into pieces of these sizes."""
    pieces, start = [], 0
    for size in sizes:
        pieces.append(array[..., start : start + size])
        start += size
    return pieces
