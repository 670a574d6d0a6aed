"""The noise of a policy: the interface."""

import abc
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Shape: TypeAlias = Sequence[int]
Drawn: TypeAlias = tuple[npt.NDArray[np.float32], Any]


class PolicyNoise(abc.ABC):
    """The random numbers that a policy turns into actions.

    An agent's property `noise` returns it. An agent of your own overrides that
    property, to return another one. It is drawn for all steps of a rollout at
    once, before the first of them.

    Attributes:
        size: int. Random numbers of one action, n.

    Example:

    >>> class Alternating(PolicyNoise):
    ...     size = 1
    ...     def draw(self, generator, shape, state=None):
    ...         sign = 1.0 if state is None else -state
    ...         return np.full((*shape, 1), sign, "float32"), sign
    >>> noise = Alternating()
    >>> _, state = noise.draw(np.random.default_rng(0), (2,))
    >>> drawn, _ = noise.draw(np.random.default_rng(0), (2,), state)
    >>> drawn.tolist(), noise.parts
    ([[-1.0], [-1.0]], [{'kind': 'Alternating', 'size': 1}])
    """

    size: int

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Description of the parts side by side, as plain data.

        Programs that draw the noise themselves need the kind and the size of
        each part. Those of the library are listed on the page about export;
        noise of any other kind is drawn by `draw` only.
        """
        return [{"kind": type(self).__name__, "size": self.size}]

    @abc.abstractmethod
    def draw(
        self, generator: np.random.Generator, shape: Shape, state: Any = None
    ) -> Drawn:
        """Draws the noise of many actions at once.

        Args:
            generator: `np.random.Generator`. The only source of chance.
            shape: tuple of int. Leading shape: `(T, B)`, steps and
                environments, or `(B,)`, a single step.
            state: State that the last call returned, to continue from there;
                None to begin. Defaults to `None`.

        Returns:
            tuple: `[*shape, n]` float32; and the state, plain data, for noise
            that depends on earlier steps.
        """
